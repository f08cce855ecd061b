"""The list tool: the entries of one folder in pages."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from crystal.types.tools import ToolOutput
from plugins_builtin.files.listing import ListTool
from tests.plugins_builtin.tool_calls import Session


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(Path(os.path.realpath(tmp_path)))


def test_entries_are_sorted_hidden_ones_and_ignored_ones_included_and_kinds_shown(session: Session) -> None:
    for path in ("b", ".env", "node_modules/x", "a/x", ".git/config"):
        session.write(path)
    (session.workspace / "link").symlink_to("a")
    (session.workspace / "bad\n\x1b").write_text("x")
    os.mkfifo(session.workspace / "pipe")
    assert session.call(ListTool()).text.split("\n") == [
        ".env",
        ".git/",
        "a/",
        "b",
        "bad\\n\\x1b",
        "link -> a",
        "node_modules/",
        "pipe (named pipe)",
    ]


def test_a_large_folder_comes_in_pages_of_a_thousand(session: Session) -> None:
    for number in range(1_005):
        (session.workspace / f"{number:04}").touch()
    first = session.call(ListTool(), path=".").text.split("\n")
    assert first[-1] == "(Entries 1-1000 of 1005; go on with offset 1001.)"
    assert session.call(ListTool(), path=".", offset=1_001).text.split("\n") == [f"{n:04}" for n in range(1_000, 1_005)]
    assert session.call(ListTool(), limit=2).text == "0000\n0001\n(Entries 1-2 of 1005; go on with offset 3.)"
    assert session.call(ListTool(), offset=1_006) == ToolOutput(
        text=". has 1005 entries; offset 1006 is past its end.", failed=True
    )


def test_an_empty_folder_a_file_and_a_missing_one_are_told_apart(session: Session) -> None:
    (session.workspace / "empty").mkdir()
    session.write("file")
    assert session.call(ListTool(), path="empty") == ToolOutput(text="empty is an empty folder.")
    for path, reason in (("file", "not a folder"), ("missing", "no folder")):
        output = session.call(ListTool(), path=path)
        assert output.failed
        assert reason in output.text


def test_a_folder_outside_is_listed_only_after_approval(session: Session) -> None:
    other = session.workspace.parent / "other"
    other.mkdir()
    (other / "secret").touch()
    (session.workspace / "out").symlink_to(other)
    for path in ("..", "out", "../other", "/"):
        assert session.call(ListTool(), path=path).failed
    session.permitted = frozenset({str(other)})
    assert session.call(ListTool(), path="out").text == "secret"
