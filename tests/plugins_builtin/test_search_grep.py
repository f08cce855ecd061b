"""The grep tool: the same answers from ripgrep and from Python, within limits, inside the fence."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from crystal.types._readonly import read_only
from crystal.types.tools import ToolCall, ToolOutput
from crystal.workspace.limits import GREP_FILE_BYTES, OUTPUT_CHARACTERS
from plugins_builtin.search.ripgrep import find_ripgrep
from plugins_builtin.search.tools import GrepTool
from tests.plugins_builtin.tool_calls import Session


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(Path(os.path.realpath(tmp_path)))


def outputs(session: Session, **arguments: Any) -> ToolOutput:
    """Search with both backends and return the one answer they must agree on."""
    by_ripgrep = session.call(GrepTool(), **arguments)
    by_python = session.call(GrepTool(find=lambda workspace: None), **arguments)
    assert by_ripgrep == by_python
    return by_ripgrep


def grep(session: Session, pattern: str, **arguments: Any) -> list[str]:
    output = outputs(session, pattern=pattern, **arguments)
    assert not output.failed, output.text
    return [] if output.text.startswith("No line") else output.text.split("\n")


def test_ripgrep_is_found_beside_the_interpreter(session: Session) -> None:
    found = find_ripgrep(session.workspace)
    assert found is not None
    assert "ripgrep" in subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout


def test_lines_are_given_with_path_and_number_in_the_order_of_paths(session: Session) -> None:
    session.write("b.txt", "a needle\nnone\nneedle b\r\n")
    session.write("a/z.txt", "needle")
    session.write("a.txt", "NEEDLE\n")
    assert grep(session, "needle") == ["a/z.txt:1:needle", "b.txt:1:a needle", "b.txt:3:needle b"]
    assert grep(session, "needle$", ignore_case=True, path="a.txt") == ["a.txt:1:NEEDLE"]
    assert grep(session, r"^needle\b", path="b.txt") == ["b.txt:3:needle b"]
    assert grep(session, "needle", files_only=True) == ["a/z.txt", "b.txt"]
    assert grep(session, "needle", path="a") == ["a/z.txt:1:needle"]


def test_neighbouring_lines_are_marked_and_groups_set_apart(session: Session) -> None:
    session.write("f", "".join(f"{word}\n" for word in ["a", "b", "X", "d", "e", "f", "X", "h", "X"]))
    session.write("g", "X\n")
    assert grep(session, "X", context=1) == [
        "f-2-b", "f:3:X", "f-4-d", "--", "f-6-f", "f:7:X", "f-8-h", "f:9:X", "--", "g:1:X",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("--ctx-size", "f:1:--ctx-size"),
        ("-world", "f:2:-world"),
        ("->", "f:3:->"),
        ("--pre=touch pwned", "f:4:--pre=touch pwned"),
    ],
)
def test_a_pattern_that_looks_like_an_option_is_only_a_pattern(session: Session, pattern: str, line: str) -> None:
    session.write("f", "--ctx-size\n-world\n->\n--pre=touch pwned\n")
    session.write("-x", "-world\n")
    assert line in grep(session, pattern)
    assert grep(session, "-world", path="-x") == ["-x:1:-world"]
    assert grep(session, "-world", glob="-x") == ["-x:1:-world"]
    assert grep(session, "-world", glob="--pre=touch pwned") == []
    assert sorted(os.listdir(session.workspace)) == ["-x", "f"]


@pytest.mark.parametrize(
    ("glob", "files"),
    [
        ("*.py", ["a.py", "sub/b.py", "sub/deep/c.py"]),
        ("sub/*.py", ["sub/b.py"]),
        ("/a.py", ["a.py"]),
        ("**/deep/*", ["sub/deep/c.py", "sub/deep/d.txt"]),
        ("*.{txt,md}", ["e.md", "sub/deep/d.txt"]),
        ("!*.py", ["e.md", "sub/deep/d.txt"]),
        ("!deep", ["a.py", "e.md", "sub/b.py"]),
        ("sub/", ["sub/b.py", "sub/deep/c.py", "sub/deep/d.txt"]),
        ("*.log", []),
        ("**", ["a.py", "e.md", "sub/b.py", "sub/deep/c.py", "sub/deep/d.txt"]),
    ],
)
def test_a_glob_chooses_files_and_brings_no_ignored_one_back(session: Session, glob: str, files: list[str]) -> None:
    session.write(".gitignore", "*.log\nout/\n")
    for path in ("a.py", "e.md", "sub/b.py", "sub/deep/c.py", "sub/deep/d.txt", "x.log", "out/o.py", "dist/p.py"):
        session.write(path)
    assert grep(session, "needle", glob=glob, files_only=True) == files


def test_a_glob_with_a_slash_begins_at_the_searched_folder(session: Session) -> None:
    for path in ("lib[1]/src/a.py", "lib[1]/b.py", "src/c.py"):
        session.write(path)
    assert grep(session, "needle", path="lib[1]", glob="src/*.py", files_only=True) == ["lib[1]/src/a.py"]
    assert outputs(session, pattern="needle", glob="{a").failed


def test_nested_ignore_files_count_and_hidden_files_are_searched(session: Session) -> None:
    session.write(".gitignore", "*.log\n/src/gen/\n")
    session.write("src/c/.gitignore", "build/\n!keep.log\n")
    for path in (
        "build/x",
        "src/c/build/x",
        "src/c/keep.log",
        "src/c/no.log",
        ".github/w.yml",
        "src/gen/x",
        ".git/config",
    ):
        session.write(path)
    for path in ("node_modules/p/x", "a/node_modules/x", "src/keepgen/x"):
        session.write(path)
    (session.workspace / "src/loop").symlink_to("..")
    assert grep(session, "needle", files_only=True) == [".github/w.yml", "build/x", "src/c/keep.log", "src/keepgen/x"]
    assert grep(session, "needle", path="src", files_only=True) == ["src/c/keep.log", "src/keepgen/x"]
    assert grep(session, "needle", path="src/gen", files_only=True) == ["src/gen/x"]
    assert grep(session, "needle", path="node_modules", files_only=True) == ["node_modules/p/x"]
    assert grep(session, "needle", path="src/c/no.log") == ["src/c/no.log:1:needle"]


def test_ignore_files_above_the_workspace_and_of_other_tools_do_not_count(session: Session) -> None:
    (session.workspace.parent / ".gitignore").write_text("*\n")
    session.write(".ignore", "*\n")
    session.write(".rgignore", "*\n")
    session.write("a")
    assert grep(session, "needle") == ["a:1:needle"]


def test_a_long_line_is_cut_around_the_match(session: Session) -> None:
    filler = "é" * 500_000
    session.write("a.min.js", f"needle{filler}needle{filler}needle")
    session.write("b.min.js", f"{filler}needle{filler}")
    session.write("c.min.js", f"{filler}needle")
    lines = grep(session, "needle")
    assert lines[-1] == "(Long lines are cut around the match, at <…>.)"
    assert sum(map(len, lines)) < 5_000
    first, middle, last = lines[:-1]
    assert re.fullmatch(r"a\.min\.js:1:needleé+<…>", first)
    assert re.fullmatch(r"b\.min\.js:1:<…>é{100}needleé+<…>", middle)
    assert re.fullmatch(r"c\.min\.js:1:<…>é+needle", last)


def test_at_most_five_hundred_matches_and_a_hundred_thousand_characters(session: Session) -> None:
    session.write("f", "x\n" * 500)
    assert len(grep(session, "x")) == 500
    session.write("f", "x\n" * 501)
    lines = grep(session, "x")
    assert len(lines) == 501
    assert lines[-1] == "(Stopped at 500 matches; narrow pattern, path or glob.)"
    session.write("f", ("y" * 350 + "\n") * 500)
    text = outputs(session, pattern="y").text
    assert len(text) <= OUTPUT_CHARACTERS
    assert text.endswith("(Stopped at 100000 characters; narrow pattern, path or glob.)")


def test_binary_and_huge_files_are_passed_over_and_said_when_named(session: Session) -> None:
    session.write("bin.dat", b"needle\0\1\2\nneedle\n")
    session.write("huge", b"needle\n" + b"x\n" * (GREP_FILE_BYTES // 2))
    session.write("most", b"needle\n" + b"x" * (GREP_FILE_BYTES - 7))
    assert grep(session, "needle", files_only=True) == ["most"]
    assert (
        outputs(session, pattern="needle", path="bin.dat").text == "bin.dat is a binary file; grep searches only text."
    )
    assert "larger than" in outputs(session, pattern="needle", path="huge").text


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_text_with_a_byte_order_mark_is_searched_decoded(session: Session, encoding: str) -> None:
    mark = "\ufeff" if encoding in ("utf-16-le", "utf-16-be") else ""
    session.write("w.txt", f"{mark}needle\r\nwörld needle\r\n".encode(encoding))
    assert grep(session, "^needle$|ö") == ["w.txt:1:needle", "w.txt:2:wörld needle"]


def test_bytes_outside_utf_8_do_not_hide_a_match(session: Session) -> None:
    session.write("latin", b"// \xa9 needle\n")
    assert grep(session, "needle") == ["latin:1:// \ufffd needle"]


def test_special_files_do_not_stop_a_search(session: Session) -> None:
    session.write("a")
    os.mkfifo(session.workspace / "live.pipe")
    (session.workspace / "zero").symlink_to("/dev/zero")
    assert grep(session, "needle") == ["a:1:needle"]
    output = outputs(session, pattern="needle", path="live.pipe")
    assert output.failed
    assert "named pipe" in output.text


def test_no_match_is_an_answer(session: Session) -> None:
    session.write("a")
    assert outputs(session, pattern="other") == ToolOutput(text="No line of . matches other.")
    assert outputs(session, pattern="needle", glob="*.x").text == "No line of . matches needle in files that match *.x."


@pytest.mark.parametrize("pattern", ["(", "[z-a]", "*", "a\nb", "", "a\0", "x" * 20_000, "\ud800"])
def test_a_pattern_that_cannot_be_used_is_a_failure_in_one_sentence(session: Session, pattern: str) -> None:
    session.write("a")
    for find in (find_ripgrep, lambda workspace: None):
        output = session.call(GrepTool(find=find), pattern=pattern)
        assert output.failed
        assert "pattern" in output.text
        assert output.text.isprintable()


def test_a_pattern_that_never_ends_is_ended(session: Session) -> None:
    session.write("a", "a" * 64 + "b\n")
    output = session.call(GrepTool(find=lambda workspace: None, seconds=1.0), pattern="(a+)+$")
    assert output == ToolOutput(
        text="grep took longer than 1 seconds and was ended; narrow pattern, path or glob.", failed=True
    )
    assert session.call(GrepTool(), pattern="(a+)+$").text.startswith("No line")


def test_a_cancelled_search_ends_its_child(session: Session) -> None:
    told = session.workspace.parent / "told"
    os.mkfifo(told)
    endless = session.workspace.parent / "endless"
    endless.write_text(f"#!/bin/sh\necho $$ > {told}\nexec sleep 60\n")
    endless.chmod(0o755)
    call = ToolCall(id="call", name="grep", arguments=read_only({"pattern": "x"}))

    async def cancel() -> int:
        tool = GrepTool(find=lambda workspace: str(endless))
        search = asyncio.create_task(tool.invoke(call, session.context()))
        child = int(await asyncio.to_thread(told.read_text))
        search.cancel()
        with pytest.raises(asyncio.CancelledError):
            await search
        return child

    child = asyncio.run(cancel())
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_nothing_outside_is_searched_without_approval(session: Session) -> None:
    other = session.workspace.parent / "other"
    other.mkdir()
    (other / "f").write_text("needle\n")
    (session.workspace / "out").symlink_to(other)
    (session.workspace / "leak").symlink_to(other / "f")
    for path in ("out", "..", "../other/f", "/", "leak"):
        output = outputs(session, pattern="needle", path=path)
        assert output.failed
        assert ":1:" not in output.text
    assert grep(session, "needle") == []
    session.permitted = frozenset({str(other)})
    assert grep(session, "needle", path="out") == [f"{other}/f:1:needle"]


def test_credentials_and_crystals_own_files_are_never_shown_by_a_search(session: Session) -> None:
    for path in ("id_rsa", "tls/server.key", ".ssh/config", "keep", ".env"):
        session.write(path)
    session.home = session.workspace / "state"
    session.write("state/config.json")
    session.write("state/skills/x")
    assert grep(session, "needle", files_only=True) == [".env", "keep"]
    assert outputs(session, pattern="needle", path="id_rsa").failed
    session.permitted = frozenset({str(session.workspace / "id_rsa")})
    assert grep(session, "needle", path="id_rsa") == ["id_rsa:1:needle"]


def test_a_name_with_a_line_break_and_other_odd_names_do_not_confuse(session: Session) -> None:
    session.write("a:1:b", "needle\n")
    session.write("c\nd", "needle\n")
    (session.workspace / os.fsdecode(b"e\xff")).write_text("needle\n")
    assert grep(session, "needle", path="a:1:b") == ["a:1:b:1:needle"]
    assert grep(session, "needle") == ["a:1:b:1:needle", "c\\nd:1:needle", "e\ufffd:1:needle"]
    assert grep(session, "needle", files_only=True) == ["a:1:b", "c\\nd", "e\ufffd"]
