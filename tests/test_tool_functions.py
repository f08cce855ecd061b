"""``@crystal.tool`` makes a tool that does what the function says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pytest

import crystal
from crystal.testing.crystaler import Crystaler
from crystal.tool_functions import ToolFunctionError
from crystal.types._readonly import thaw


@crystal.tool
def sample(
    path: str, mode: Literal["a", "b"] = "a", limit: int | None = None, title: str = "x", context: object = None
) -> str:
    """Do a sample."""
    return f"{path} {mode} {limit} {title}"


def test_name_description_and_schema_come_from_the_function() -> None:
    definition = sample.tool.definition
    assert (sample.name, definition.name, definition.description) == ("sample", "sample", "Do a sample.")
    schema = thaw(definition.schema)
    assert schema["required"] == ["path"]
    assert schema["additionalProperties"] is False
    assert set(schema["properties"]) == {"path", "mode", "limit", "title"}
    assert schema["properties"]["mode"]["enum"] == ["a", "b"]
    assert "title" not in schema["properties"]["path"]


def without_docstring(path: str) -> str:
    return path


def without_annotation(path):  # type: ignore[no-untyped-def]
    """Lack an annotation."""
    return path


def with_rest(*paths: str) -> str:
    """Take any number."""
    return str(paths)


@pytest.mark.parametrize("function", [without_docstring, without_annotation, with_rest])
def test_a_function_that_cannot_be_a_tool_is_named(function: Callable[..., Any]) -> None:
    with pytest.raises(ToolFunctionError, match=function.__name__):
        crystal.tool(function)


def test_plain_and_async_functions_text_and_outputs(crystaler: Crystaler) -> None:
    crystaler.makeplugin(
        "Kinds",
        """
        import crystal
        from crystal import Risk, ToolOutput, hookimpl

        @crystal.tool(risk=Risk.READ)
        def plain(word: str, times: int = 2) -> str:
            "Repeat a word."
            return word * times

        @crystal.tool(risk=Risk.READ)
        async def later(context) -> ToolOutput:
            "Answer from the workspace."
            return ToolOutput(text=context.workspace.name, failed=True)

        @hookimpl
        def contribute_tools():
            return [plain, later]
        """,
    )
    calls = [
        {"name": "plain", "arguments": {"word": "ab"}},
        {"name": "plain", "arguments": {"word": "ab", "times": "x"}},
        {"name": "later", "arguments": {}},
    ]
    crystaler.script([{"toolCalls": calls}, {"text": "Done."}])
    result = crystaler.run()
    first, second, third = result.calls
    assert (first.output, first.failed) == ("abab", False)
    assert "$.times" in second.output
    assert second.failed
    assert (third.output, third.failed) == ("workspace", True)


def test_arguments_arrive_as_the_types_they_are_annotated_with(crystaler: Crystaler) -> None:
    crystaler.makeplugin(
        "Typed",
        """
        from __future__ import annotations

        import enum
        from pathlib import Path

        import crystal
        import pydantic
        from crystal import Risk, hookimpl

        class Color(enum.Enum):
            RED = "red"

        class Point(pydantic.BaseModel):
            x: int
            y: int = 2

        @crystal.tool(risk=Risk.READ)
        def typed(path: Path, color: Color, point: Point, names: set[str], _private: str, schema: str = "s") -> str:
            "Show the types."
            return f"{path.name} {color.name} {point.x + point.y} {sorted(names)} {_private} {schema}"

        @hookimpl
        def contribute_tools():
            return [typed]
        """,
    )
    arguments = {"path": "a/b.txt", "color": "red", "point": {"x": 1}, "names": ["b", "a"], "_private": "p"}
    broken = {**arguments, "point": {"x": "one"}}
    crystaler.script(
        [{"toolCalls": [{"name": "typed", "arguments": each} for each in (arguments, broken)]}, {"text": "Done."}]
    )
    first, second = crystaler.run().calls
    assert first.output == "b.txt RED 3 ['a', 'b'] p s"
    assert second.failed
