"""Arguments that list, tree, glob, grep and search cannot use: one sentence that names the argument, never an error."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crystal.types.tools import Tool
from plugins_builtin.files.listing import ListTool
from plugins_builtin.search.tools import GlobTool, GrepTool, SearchTool, TreeTool
from tests.plugins_builtin.tool_calls import Session


def python_grep() -> Tool:
    return GrepTool(find=lambda workspace: None)


TOOLS: dict[str, tuple[Callable[[], Tool], dict[str, Any]]] = {
    "list": (ListTool, {}),
    "tree": (TreeTool, {}),
    "glob": (GlobTool, {"pattern": "*"}),
    "grep": (GrepTool, {"pattern": "needle"}),
    "grep without ripgrep": (python_grep, {"pattern": "needle"}),
    "search": (SearchTool, {"query": "needle"}),
}
STRINGS = [
    ("list", "path"), ("tree", "path"), ("glob", "path"), ("glob", "pattern"), ("grep", "path"), ("grep", "pattern"),
    ("grep", "glob"), ("search", "path"), ("search", "query"),
]  # fmt: skip
NUMBERS = [("list", "offset"), ("list", "limit"), ("tree", "depth"), ("tree", "limit"), ("grep", "context"),
           ("search", "limit")]  # fmt: skip


@pytest.fixture
def session(tmp_path: Path) -> Session:
    made = Session(Path(os.path.realpath(tmp_path)))
    made.write("a/f", "needle\n")
    return made


def refusal(session: Session, name: str, **changes: Any) -> str:
    make, arguments = TOOLS[name]
    output = session.call(make(), **{**arguments, **changes})
    assert output.failed, output.text
    assert output.text.isprintable()
    assert output.text.endswith(".")
    return output.text


@pytest.mark.parametrize(("name", "argument"), STRINGS)
@pytest.mark.parametrize("value", [None, 5, True, ["a"], {"a": "b"}, 1.5])
def test_a_text_of_another_type_is_refused(session: Session, name: str, argument: str, value: Any) -> None:
    assert refusal(session, name, **{argument: value}).startswith(f"The argument {argument} must be a string, not ")


@pytest.mark.parametrize(("name", "argument"), NUMBERS)
@pytest.mark.parametrize("value", [None, "5", True, [1], {}, 1.5, float("inf")])
def test_a_number_of_another_type_is_refused(session: Session, name: str, argument: str, value: Any) -> None:
    text = refusal(session, name, **{argument: value})
    assert text.startswith(f"The argument {argument} must be a whole number, not ")


@pytest.mark.parametrize(("name", "argument"), NUMBERS)
@pytest.mark.parametrize("value", [-1, -(10**5000)], ids=["minus one", "far below"])
def test_a_number_below_its_least_is_refused(session: Session, name: str, argument: str, value: int) -> None:
    assert f"The argument {argument} is " in refusal(session, name, **{argument: value})


@pytest.mark.parametrize("name", ["list", "tree"])
def test_a_limit_above_a_page_is_refused_and_names_the_most(session: Session, name: str) -> None:
    assert refusal(session, name, limit=1_001) == "The argument limit is 1001, but it must be 1000 or less."
    assert "a number of many digits" in refusal(session, name, limit=10**5000)


def test_a_huge_depth_context_or_number_of_files_is_as_good_as_all(session: Session) -> None:
    assert session.call(TreeTool(), depth=10**30).text == "./\n  a/\n    f"
    assert session.call(GrepTool(), pattern="needle", context=10**30).text == "a/f:1:needle"
    assert session.call(python_grep(), pattern="needle", context=10**30).text == "a/f:1:needle"
    assert session.call(SearchTool(), query="needle", limit=10**30).text == "a/f\n  1: needle"
    assert "offset" in refusal(session, "list", offset=10**30)
    assert "offset" in refusal(session, "list", offset=10**5000)


@pytest.mark.parametrize("argument", ["ignore_case", "files_only"])
@pytest.mark.parametrize("value", [None, "true", 1, 0])
def test_a_switch_is_true_or_false(session: Session, argument: str, value: Any) -> None:
    text = refusal(session, "grep", **{argument: value})
    assert text.startswith(f"The argument {argument} must be true or false, not ")


@pytest.mark.parametrize(("name", "needed"), [("glob", "pattern"), ("grep", "pattern"), ("search", "query")])
def test_a_missing_argument_is_named(session: Session, name: str, needed: str) -> None:
    output = session.call(TOOLS[name][0]())
    assert output.failed
    assert output.text == f"{name} needs the argument {needed}; give it."


@pytest.mark.parametrize("name", TOOLS)
def test_an_argument_too_many_is_named_with_those_there_are(session: Session, name: str) -> None:
    text = refusal(session, name, regex="x\x1b")
    assert "regex" in text
    assert "path" in text


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize("path", ["", "a\0b", "\ud800", "x" * 5_000, "missing", "a/f/g", "/proc/self/root", "../x"])
def test_a_path_that_names_nothing_here_is_refused(session: Session, name: str, path: str) -> None:
    refusal(session, name, path=path)


@pytest.mark.parametrize("name", ["glob", "grep", "grep without ripgrep"])
@pytest.mark.parametrize("pattern", ["{a", "a\0", "a" * 2_000, "**/../x", "\ud800", "[z-a]", "[!", "{a,b}" * 20])
def test_a_glob_that_cannot_be_used_is_refused_or_matches_nothing(session: Session, name: str, pattern: str) -> None:
    make, arguments = TOOLS[name]
    argument = "pattern" if name == "glob" else "glob"
    output = session.call(make(), **{**arguments, argument: pattern})
    assert output.failed or output.text.startswith("No ")
    assert output.text.isprintable()


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.lists(st.text(max_size=3), max_size=2),
)


@pytest.mark.parametrize("name", TOOLS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_arguments_whatever_raise(session: Session, name: str, data: st.DataObject) -> None:
    make, _ = TOOLS[name]
    others = st.text(max_size=5).filter(lambda other: other not in ("self", "tool"))
    known = st.sampled_from([*make().definition.schema["properties"]])
    arguments = data.draw(st.dictionaries(st.one_of(known, known, others), VALUES, max_size=4))
    output = session.call(make(), **arguments)
    assert output.text
