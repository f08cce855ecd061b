"""The write tool: new files with their folders, and whole replacements of files the session has read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from crystal.types.tools import ToolOutput
from crystal.workspace.limits import WRITE_BYTES
from plugins_builtin.files.read import ReadTool
from plugins_builtin.files.write import WriteTool
from tests.plugins_builtin.tool_calls import Session


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(Path(os.path.realpath(tmp_path)))


def write(session: Session, path: str, content: str) -> ToolOutput:
    return session.call(WriteTool(), path=path, content=content)


def test_a_new_file_is_made_with_its_folders_and_is_known_afterwards(session: Session) -> None:
    before = os.umask(0o022)
    try:
        output = write(session, "a/b/c.txt", "é\nx")
    finally:
        os.umask(before)
    file = session.workspace / "a/b/c.txt"
    assert output == ToolOutput(text="Created a/b/c.txt (2 lines, 4 bytes).")
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == ("é\nx".encode(), 0o644)
    assert os.listdir(file.parent) == ["c.txt"]
    assert session.memory.before_images == [(str(file), None, "call")]
    assert write(session, "a/b/c.txt", "y\n").text == "Overwrote a/b/c.txt (1 line, 2 bytes)."


def test_an_existing_file_must_have_been_read_and_not_changed_since(session: Session) -> None:
    file = session.write("f", "old\n")
    assert write(session, "f", "new\n") == ToolOutput(
        text="f exists and was not read in this session; read it before overwriting it.", failed=True
    )
    session.call(ReadTool(), path="f")
    file.write_text("other\n")
    assert write(session, "f", "new\n") == ToolOutput(
        text="f changed on disk since it was read; read it again before overwriting it.", failed=True
    )
    assert file.read_text() == "other\n"
    session.call(ReadTool(), path="f")
    assert not write(session, "f", "new\n").failed
    assert session.memory.before_images == [(str(file), b"other\n", "call")]


def test_mode_and_links_are_kept(session: Session) -> None:
    file = session.write("secret", "old")
    file.chmod(0o600)
    (session.workspace / "link").symlink_to("secret")
    session.call(ReadTool(), path="link")
    assert not write(session, "link", "new").failed
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("new", 0o600)
    assert (session.workspace / "link").is_symlink()
    (session.workspace / "to-come").symlink_to("sub/target")
    assert write(session, "to-come", "x").text.startswith("Created sub/target")


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (b"// \xa9 ACME\n", "Its encoding changed from one that is not UTF-8 to UTF-8."),
        ("\ufeffhi\n".encode("utf-16-le"), "Its encoding changed from UTF-16 LE with byte order mark to UTF-8."),
        (b"\xef\xbb\xbfhi\n", "Its byte order mark is gone."),
        (b"a\r\nb\r\n", "Its line ends changed from CRLF to LF."),
    ],
)
def test_a_change_of_encoding_or_line_ends_is_said(session: Session, before: bytes, said: str) -> None:
    file = session.write("f", before)
    session.call(ReadTool(), path="f")
    output = write(session, "f", "new\n")
    assert output.text.endswith(said)
    assert file.read_bytes() == b"new\n"


def test_more_than_two_mebibytes_are_refused(session: Session) -> None:
    assert not write(session, "most", "x" * WRITE_BYTES).failed
    output = write(session, "f", "é" * (WRITE_BYTES // 2) + "x")
    assert output.failed
    assert str(WRITE_BYTES) in output.text
    assert not (session.workspace / "f").exists()
    assert write(session, "f", "\ud800").failed


def test_folders_and_special_files_are_refused(session: Session) -> None:
    (session.workspace / "sub").mkdir()
    session.write("file")
    os.mkfifo(session.workspace / "pipe")
    for path in ("sub", ".", "pipe", "new/", "file/x"):
        output = write(session, path, "x")
        assert output.failed
        assert output.text.endswith(".")
    assert sorted(os.listdir(session.workspace)) == ["file", "pipe", "sub"]


@pytest.mark.parametrize("path", ["out/new/f", "d", "../x", "~/x", "a\0b", ".git/hooks/pre-commit", ".crystal/tools/x"])
def test_nothing_outside_or_guarded_is_made_without_approval(session: Session, path: str) -> None:
    other = session.workspace.parent / "other"
    other.mkdir()
    (session.workspace / "out").symlink_to(other)
    (session.workspace / "d").symlink_to(other / "z")
    assert write(session, path, "x").failed
    assert os.listdir(other) == []
    assert sorted(os.listdir(session.workspace)) == ["d", "out"]


def test_crystals_own_data_folder_and_a_workspaces_env_file_are_ordinary(session: Session) -> None:
    assert not write(session, ".crystal/data/tools/x.json", "{}").failed
    assert not write(session, ".env", "A=1\n").failed


def test_an_approved_path_outside_is_written(session: Session) -> None:
    target = session.workspace.parent / "deep" / "f"
    session.permitted = frozenset({str(target)})
    assert not write(session, "../deep/f", "x").failed
    assert target.read_text() == "x"
