"""The tree tool: an indented tree that says what it leaves out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from plugins_builtin.search.tools import TreeTool
from tests.plugins_builtin.tool_calls import Session


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(Path(os.path.realpath(tmp_path)))


def test_ignored_entries_are_counted_and_deep_folders_say_how_much_they_hold(session: Session) -> None:
    for path in ("src/a/b/c/d.py", "src/main.py", "node_modules/x", ".github/w.yml", "x.log", "README"):
        session.write(path)
    session.write(".gitignore", "*.log\n")
    closed = "1 folder not opened; give a deeper depth, a higher limit or a path."
    assert session.call(TreeTool()).text.split("\n") == [
        "./",
        "  .github/",
        "    w.yml",
        "  .gitignore",
        "  README",
        "  src/",
        "    a/",
        "      b/ (1 entry)",
        "    main.py",
        f"({closed} 2 entries ignored, special or not to be shown.)",
    ]
    assert session.call(TreeTool(), path="src/a", depth=9).text == "src/a/\n  b/\n    c/\n      d.py"


def test_a_limit_cuts_level_by_level_and_is_said(session: Session) -> None:
    for number in range(3):
        for name in ("x", "y", "z"):
            session.write(f"d{number}/{name}")
    assert session.call(TreeTool(), limit=5).text == (
        "./\n  d0/\n    x\n    y\n    … 1 more\n  d1/ (3 entries)\n  d2/ (3 entries)\n"
        "(2 folders not opened; give a deeper depth, a higher limit or a path.)"
    )


def test_links_out_and_folders_outside_are_not_shown(session: Session) -> None:
    other = session.workspace.parent / "other"
    other.mkdir()
    (other / "secret").touch()
    (session.workspace / "out").symlink_to(other)
    (session.workspace / "loop").symlink_to(".")
    assert session.call(TreeTool()).text == "./\n(2 entries ignored, special or not to be shown.)"
    for path in ("out", "..", "missing"):
        assert session.call(TreeTool(), path=path).failed


def test_a_link_out_of_an_approved_folder_outside_is_not_shown(session: Session) -> None:
    other = session.workspace.parent / "other"
    other.mkdir()
    (session.workspace.parent / "secret").touch()
    (other / "f").touch()
    (other / "link").symlink_to("../secret")
    session.permitted = frozenset({str(other)})
    text = session.call(TreeTool(), path=str(other)).text
    assert text == f"{other}/\n  f\n(1 entry ignored, special or not to be shown.)"
