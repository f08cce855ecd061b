"""Reported faults of other searching tools, each as a test of its whole kind."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from crystal.types.tools import Tool
from crystal.workspace.limits import OUTPUT_CHARACTERS
from plugins_builtin.files.listing import ListTool
from plugins_builtin.search.tools import GlobTool, GrepTool, SearchTool, TreeTool
from tests.plugins_builtin.tool_calls import Session

SEARCHES: list[tuple[Tool, dict[str, Any]]] = [
    (TreeTool(), {"depth": 20}),
    (GlobTool(), {"pattern": "**"}),
    (GrepTool(), {"pattern": "needle", "files_only": True}),
    (GrepTool(find=lambda workspace: None), {"pattern": "needle", "files_only": True}),
    (SearchTool(), {"query": "needle"}),
]


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(Path(os.path.realpath(tmp_path)))


@pytest.mark.parametrize(("tool", "arguments"), SEARCHES)
def test_nested_ignore_files_and_a_link_upwards(session: Session, tool: Tool, arguments: dict[str, Any]) -> None:
    for path in ("build/x", "src/c/build/y", "src/c/keep.log", "src/c/no.log", ".github/w.yml"):
        session.write(path)
    session.write("src/c/.gitignore", "build/\n!keep.log\n")
    session.write(".gitignore", "*.log\n")
    (session.workspace / "src/loop").symlink_to("..")
    text = session.call(tool, **arguments).text
    names = {line.strip().rpartition("/")[2] for line in text.split("\n")}
    assert {"x", "keep.log", "w.yml"} <= names
    assert not {"y", "no.log", "loop"} & names
    assert text.count("keep.log") == 1


@pytest.mark.parametrize(("tool", "arguments"), SEARCHES)
def test_pipes_sockets_devices_and_loops_are_passed_over(
    session: Session, tool: Tool, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    session.write("keep.txt")
    os.mkfifo(session.workspace / "live.pipe")
    for name, target in (("zero", "/dev/zero"), ("self", "self"), ("dangling", "nothing"), ("tty", "/dev/tty")):
        (session.workspace / name).symlink_to(target)
    monkeypatch.chdir(session.workspace)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        text = session.call(tool, **arguments).text
    assert "keep.txt" in text
    assert not any(name in text for name in ("live.pipe", "zero", "self", "dangling", "tty"))


@pytest.mark.parametrize(("tool", "arguments"), SEARCHES)
def test_a_special_file_named_as_the_path_is_refused_at_once(
    session: Session, tool: Tool, arguments: dict[str, Any]
) -> None:
    os.mkfifo(session.workspace / "live.pipe")
    output = session.call(tool, **{**arguments, "path": "live.pipe"})
    assert output.failed
    assert "live.pipe" in output.text


@pytest.mark.parametrize(("tool", "arguments"), [*SEARCHES, (ListTool(), {})])
def test_a_workspace_reached_by_a_link_and_a_linked_folder_in_it_work(
    session: Session, tool: Tool, arguments: dict[str, Any]
) -> None:
    session.write("sub/f")
    (session.workspace / "in").symlink_to("sub")
    linked = session.workspace.parent / "linked"
    linked.symlink_to(session.workspace)
    for path in ("in", str(linked / "sub"), f"{linked}/in/../sub/."):
        output = session.call(tool, **{**arguments, "path": path})
        assert not output.failed, output.text
        assert "f" in output.text.replace("/", "\n").split()


@pytest.mark.parametrize(
    "content",
    [
        b"needle" + b"y" * 2_000_000 + b"needle" + b"y" * 2_000_000 + b"needle",
        b"needle" + "é".encode() * 900_000,
        b"".join(b"%d needle" % number + b"z" * 3_000 + b"\n" for number in range(600)),
        b"needle\t" * 300_000,
    ],
)
def test_no_content_floods_the_context(session: Session, content: bytes) -> None:
    session.write("a.min.js", content)
    for tool, arguments in SEARCHES[2:]:
        text = session.call(tool, **{**arguments, **({"files_only": False} if "pattern" in arguments else {})}).text
        assert "needle" in text
        assert len(text) <= OUTPUT_CHARACTERS
        assert max(map(len, text.split("\n"))) < 600


def test_a_search_whose_time_is_over_answers_with_what_it_found_and_says_so(session: Session) -> None:
    for number in range(50):
        session.write(f"d{number}/f", "needle\n")
    for tool, arguments in (
        (TreeTool(seconds=0.0), {}),
        (GlobTool(seconds=0.0), {"pattern": "**"}),
        (SearchTool(seconds=0.0), {"query": "needle"}),
    ):
        assert "0 seconds" in session.call(tool, **arguments).text


@pytest.mark.parametrize(("tool", "arguments"), SEARCHES)
def test_a_folder_that_cannot_be_read_is_said(session: Session, tool: Tool, arguments: dict[str, Any]) -> None:
    session.write("keep/f")
    session.write("closed/f")
    (session.workspace / "closed").chmod(0)
    try:
        text = session.call(tool, **arguments).text
    finally:
        (session.workspace / "closed").chmod(0o755)
    assert "keep" in text
    # The system lets the superuser read everything.
    assert ("Not readable and left out: closed" in text) == (os.geteuid() != 0)


def test_a_glob_holds_the_newest_of_more_files_than_it_shows(session: Session) -> None:
    for number in range(5_200):
        file = session.workspace / f"{number:04}.txt"
        file.touch()
        os.utime(file, ns=(number * 7919 % 5_200, number * 7919 % 5_200))
    lines = session.call(GlobTool(), pattern="*").text.split("\n")
    newest = sorted(range(5_200), key=lambda number: -(number * 7919 % 5_200))[:1_000]
    assert lines[:-1] == [f"{number:04}.txt" for number in newest]
    assert lines[-1] == "(1000 of 5200 matches; narrow the pattern to see the others.)"


def test_a_tree_of_one_large_folder_shows_the_first_by_name_and_counts_the_rest(session: Session) -> None:
    for number in range(3_000):
        (session.workspace / f"{number * 7919 % 3_000:04}").touch()
    lines = session.call(TreeTool(), limit=5).text.split("\n")
    assert lines == ["./", "  0000", "  0001", "  0002", "  0003", "  0004", "  … 2995 more"]
