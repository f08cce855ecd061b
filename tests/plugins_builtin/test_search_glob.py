"""The glob tool: files by pattern, newest first, inside the fence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from crystal.types.tools import ToolOutput
from plugins_builtin.search.tools import GlobTool
from tests.plugins_builtin.tool_calls import Session


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(Path(os.path.realpath(tmp_path)))


def glob(session: Session, pattern: str, path: str | None = None) -> list[str]:
    arguments = {"pattern": pattern} if path is None else {"pattern": pattern, "path": path}
    output = session.call(GlobTool(), **arguments)
    assert not output.failed, output.text
    return [] if output.text.startswith("No file") else output.text.split("\n")


def refusal(session: Session, pattern: str, path: str = ".") -> str:
    output = session.call(GlobTool(), pattern=pattern, path=path)
    assert output.failed, output.text
    return output.text


def test_the_newest_file_comes_first_and_equal_ones_by_name(session: Session) -> None:
    for name, when in (("old.py", 1), ("b.py", 5), ("a.py", 5), ("sub/new.py", 9)):
        os.utime(session.write(name), ns=(when, when))
    assert glob(session, "**/*.py") == ["sub/new.py", "a.py", "b.py", "old.py"]
    assert glob(session, "*.py", "sub") == ["sub/new.py"]
    assert glob(session, "{sub/*,a}.py") == ["sub/new.py", "a.py"]


def test_hidden_files_match_and_ignored_ones_do_not_unless_their_folder_is_named(session: Session) -> None:
    for path in ("build/x", "src/c/build/x", "src/c/keep.log", "src/c/no.log", ".github/w.yml", "node_modules/p/x"):
        session.write(path)
    session.write("src/c/.gitignore", "build/\n!keep.log\n")
    session.write(".gitignore", "*.log\n")
    (session.workspace / "src/loop").symlink_to("..")
    assert sorted(glob(session, "**")) == [
        ".github/w.yml", ".gitignore", "build/x", "src/c/.gitignore", "src/c/keep.log",
    ]  # fmt: skip
    assert glob(session, "node_modules/**/x") == ["node_modules/p/x"]
    assert glob(session, "**/x", "src/c/build") == ["src/c/build/x"]


def test_a_thousand_matches_are_shown_and_the_rest_counted(session: Session) -> None:
    for number in range(1_003):
        (session.workspace / f"{number:04}.txt").touch()
    lines = glob(session, "*.txt")
    assert len(lines) == 1_001
    assert lines[-1] == "(1000 of 1003 matches; narrow the pattern to see the others.)"


def test_no_match_is_an_answer_and_a_bad_pattern_a_failure(session: Session) -> None:
    assert session.call(GlobTool(), pattern="*.rs") == ToolOutput(text="No file in . matches *.rs.")
    assert session.call(GlobTool(), pattern="missing/*.rs") == ToolOutput(text="No file in . matches missing/*.rs.")
    for pattern in ("{a", "", "**/../x", "a\0"):
        assert refusal(session, pattern).endswith(".")
    session.write("file")
    assert "not a folder" in refusal(session, "*", "file")
    assert refusal(session, "*", "missing")


def test_special_files_do_not_stop_a_search(session: Session) -> None:
    session.write("a")
    os.mkfifo(session.workspace / "live.pipe")
    (session.workspace / "zero").symlink_to("/dev/zero")
    assert glob(session, "*") == ["a"]


def test_nothing_outside_is_named_without_approval(session: Session) -> None:
    other = session.workspace.parent / "other"
    other.mkdir()
    (other / "f").touch()
    (session.workspace / "out").symlink_to(other)
    session.write("sub/f")
    (session.workspace / "in").symlink_to("sub")
    for pattern, path in (
        ("out/**", "."),
        ("../other/*", "."),
        (f"{other}/*", "."),
        ("*", "out"),
        ("~/*", "."),
        ("*", "/"),
    ):
        assert "f\n" not in refusal(session, pattern, path)
    assert glob(session, "**/f") == ["sub/f"]
    assert glob(session, "in/*") == ["sub/f"]
    session.permitted = frozenset({str(other)})
    assert glob(session, "**", "out") == [str(other / "f")]


def test_a_name_with_control_characters_is_shown_harmless(session: Session) -> None:
    (session.workspace / "a\x1b]0;x\n.txt").touch()
    assert glob(session, "*.txt") == ["a\\x1b]0;x\\n.txt"]


def test_approval_of_a_folder_outside_is_none_for_what_lies_beside_it(session: Session) -> None:
    other, beside = session.workspace.parent / "other", session.workspace.parent / "other-2"
    for folder in (other / "sub", beside):
        folder.mkdir(parents=True)
    for file in (other / "f", other / "sub/f", beside / "f"):
        file.touch()
    (other / "link").symlink_to(beside / "f")
    (other / "folder").symlink_to(beside)
    session.write("f")
    session.permitted = frozenset({str(other)})
    for pattern in ("../other-2/*", "../*/f", f"{beside}/*", "/*", "~/*", "folder/*", "sub/../../other-2/f*"):
        assert "f\n" not in refusal(session, pattern, str(other))
    assert sorted(glob(session, "**", str(other))) == [str(other / "f"), str(other / "sub/f")]
    assert glob(session, "sub/../f*", str(other)) == [str(other / "f")]
    assert glob(session, f"{session.workspace}/*", str(other)) == ["f"]
    session.permitted |= {str(beside / "f")}
    assert str(other / "link") in glob(session, "*", str(other))
