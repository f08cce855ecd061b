"""Half of a surrogate pair is no text: no tool takes it for something else, and nothing changes."""

from __future__ import annotations

from typing import Any

import pytest

from crystal.testing.crystaler import Crystaler
from crystal.types.events import ToolCallFinished


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("write", {"path": "a.txt", "content": "x\ud800y"}),
        ("write", {"path": "a\udbff.txt", "content": "xy"}),
        ("edit", {"path": "b.txt", "old_string": "b", "new_string": "x\udc00y"}),
        ("edit", {"path": "b.txt", "old_string": "\ud800", "new_string": "xy"}),
        ("grep", {"pattern": "\ud800"}),
        ("glob", {"pattern": "\ud800/../*"}),
        ("read", {"path": "\ud800"}),
        ("list", {"path": "\ud800"}),
        ("tree", {"path": "\ud800"}),
        ("search", {"query": "b", "path": "\ud800"}),
        ("bash", {"command": "touch \ud800"}),
    ],
)
def test_it_is_a_failed_result_and_changes_nothing(crystaler: Crystaler, name: str, arguments: dict[str, Any]) -> None:
    crystaler.makefile("b.txt", "b")
    crystaler.script([{"toolCalls": [{"name": name, "arguments": arguments}]}, {"text": "Done."}])
    result = crystaler.run("do it", "--approval", "full", "--allow", "bash")
    [call] = [event for event in result.events if isinstance(event, ToolCallFinished)]
    assert call.failed, call.output
    assert [path.name for path in crystaler.workspace.iterdir()] == ["b.txt"]
    assert (crystaler.workspace / "b.txt").read_bytes() == b"b"
    assert "half of a surrogate pair" in call.output


def test_a_hook_cannot_bring_one_in(crystaler: Crystaler) -> None:
    crystaler.makeplugin(
        "Acme",
        "import dataclasses\nfrom crystal import hookimpl\nname = 'Acme'\n\n@hookimpl\ndef on_tool_call(call):\n"
        "    return dataclasses.replace(call, arguments={**call.arguments, 'content': 'x\\ud800'})\n",
    )
    crystaler.script(
        [{"toolCalls": [{"name": "write", "arguments": {"path": "a.txt", "content": "x"}}]}, {"text": "Done."}]
    )
    result = crystaler.run("do it", "--approval", "full")
    [call] = [event for event in result.events if isinstance(event, ToolCallFinished)]
    assert call.failed
    assert "'content' holds half of a surrogate pair" in call.output
    assert list(crystaler.workspace.iterdir()) == []
