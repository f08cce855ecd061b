"""What the operator is shown of an edit or a write beforehand: a true diff, or one sentence, and never more is read."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.types._readonly import read_only
from crystal.types.tools import ToolCall
from plugins_builtin.files import contribute_tools
from plugins_builtin.files.edit import EditTool
from plugins_builtin.files.line_diff import CONTEXT_LINES, NO_LINE_END, SHOWN_LINES, unified_diff
from plugins_builtin.files.preview import DIFFED_BYTES, DIFFED_LINES, preview_edit, preview_write
from plugins_builtin.files.read import ReadTool
from plugins_builtin.files.write import WriteTool
from tests.plugins_builtin.tool_calls import Session

NUMBERED = "".join(f"line {number}\n" for number in range(1, 21))


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(Path(os.path.realpath(tmp_path)))


def write(session: Session, path: str, content: str) -> str:
    arguments = read_only({"path": path, "content": content})
    return preview_write(ToolCall(id="call", name="write", arguments=arguments), session.context())


def edit(session: Session, path: str, old: str, new: str, **more: Any) -> str:
    arguments = read_only({"path": path, "old_string": old, "new_string": new, **more})
    return preview_edit(ToolCall(id="call", name="edit", arguments=arguments), session.context())


def patched(before: str, diff: str) -> str:
    """Apply a unified diff the way ``patch`` does, with every line of context checked."""
    old = before.split("\n")
    old, rest = old[:-1], old[-1]
    source = [f"{line}\n" for line in old] + ([rest] if rest else [])
    made: list[str] = []
    at, last = 0, ""
    for line in diff.split("\n")[2:]:
        if line.startswith("@@"):
            place = re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", line)
            assert place is not None
            start = int(place[1]) - (0 if place[2] == "0" else 1)
            made += source[at:start]
            at = start
            assert len(made) == int(place[3]) - (0 if place[4] == "0" else 1)
        elif line == NO_LINE_END:
            if last != "-":
                made[-1] = made[-1].removesuffix("\n")
        else:
            last, text = line[0], line[1:] + "\n"
            if last in " -":
                assert source[at].removesuffix("\n") == line[1:]
                at += 1
            if last in " +":
                made.append(text)
    return "".join(made + source[at:])


texts = st.lists(st.sampled_from(["", "a", "b", "c\r", "- x", "+ y", "@@", "\\ No"]), max_size=40).map("\n".join)


@given(before=texts, after=texts)
@settings(max_examples=100, deadline=None)
def test_the_lines_shown_make_the_new_text_of_the_old_one(before: str, after: str) -> None:
    diff = unified_diff(before, after, "f")
    assert (diff == "") is (before == after)
    if diff:
        assert patched(before, diff) == after


@given(old=st.integers(300, 900), new=st.integers(300, 900), seed=st.randoms(use_true_random=False))
@settings(max_examples=20, deadline=None)
def test_it_is_true_also_where_no_shortest_diff_is_looked_for(old: int, new: int, seed: Any) -> None:
    before = "".join(f"{seed.randrange(9)}\n" for _ in range(old))
    after = "".join(f"{seed.randrange(9)}\n" for _ in range(new))
    diff = unified_diff(before, after, "f")
    assert patched(before, diff) == after


@given(text=texts, data=st.data(), replace_all=st.booleans())
@settings(max_examples=100, deadline=None)
def test_what_is_shown_of_an_edit_is_what_the_edit_does(
    tmp_path_factory: pytest.TempPathFactory, text: str, data: st.DataObject, replace_all: bool
) -> None:
    session = Session(Path(os.path.realpath(tmp_path_factory.mktemp("edit"))))
    start = data.draw(st.integers(0, len(text)))
    old = text[start : data.draw(st.integers(start, len(text)))]
    new = data.draw(texts)
    file = session.write("f", text)
    shown = edit(session, "f", old, new, replace_all=replace_all)
    assert file.read_bytes() == text.encode()
    output = session.call(EditTool(), path="f", old_string=old, new_string=new, replace_all=replace_all)
    after = file.read_bytes().decode()
    if output.failed:
        assert "will fail" in shown or "No line" in shown
    elif not shown.startswith("The lines end in CRLF"):
        assert patched(text, shown) == after


def test_an_edit_shows_its_lines_with_a_few_around_them(session: Session) -> None:
    session.write("src/a.txt", NUMBERED)
    assert edit(session, "src/../src/a.txt", "line 10\n", "line ten\nand more\n").split("\n") == [
        "--- src/a.txt",
        "+++ src/a.txt",
        "@@ -7,7 +7,8 @@",
        *(" line 7", " line 8", " line 9"),
        "-line 10",
        *("+line ten", "+and more"),
        *(" line 11", " line 12", " line 13"),
    ]


def test_changes_far_apart_stand_apart_and_near_ones_together(session: Session) -> None:
    session.write("a.txt", NUMBERED)
    shown = edit(session, "a.txt", "5\n", "five\n", replace_all=True)
    assert shown.count("@@ -") == 2
    near = NUMBERED.replace("line 5\n", "x\n").replace(f"line {6 + CONTEXT_LINES}\n", "y\n")
    assert write(session, "a.txt", near).count("@@ -") == 1


def test_a_name_that_changes_everywhere_in_a_long_file_is_shown_line_by_line(session: Session) -> None:
    session.write("a.txt", "".join(f"{'name' if number % 50 == 0 else 'x'} {number}\n" for number in range(2_000)))
    shown = edit(session, "a.txt", "name", "title", replace_all=True)
    assert shown.count("\n-") == shown.count("\n+title") == 40


@pytest.mark.parametrize(
    ("before", "content", "expected"),
    [
        (b"a\n", "b", ["-a", "+b", NO_LINE_END]),
        (b"a", "a\n", ["-a", NO_LINE_END, "+a"]),
        (b"", "a\n", ["@@ -0,0 +1 @@", "+a"]),
        (b"a\n", "", ["@@ -1 +0,0 @@", "-a"]),
        (b"a\r\nb\r\n", "a\r\nc\r\n", ["The lines end in CRLF.", " a", "-b", "+c"]),
        (b"a\r\nb\r\n", "a\nb\n", ["-a\r", "-b\r", "+a", "+b"]),
        (b"a\n", "a\n", ["No line of f changes."]),
        (b"\xef\xbb\xbfa\n", "b\n", ["Its byte order mark goes.", "-a", "+b"]),
        (b"\xef\xbb\xbfa\n", "\ufeffb\n", ["-a", "+b"]),
        (b"a\n", "\ufeffa\n", ["-a", "+\ufeffa"]),
        ("a\n".encode("utf-16"), "b\n", ["Its encoding becomes UTF-8. Its byte order mark goes.", "-a", "+b"]),
        (b"caf\xe9\n", "cafe\n", ["Its encoding becomes UTF-8.", "-caf\ufffd", "+cafe"]),
    ],
)
def test_a_write_over_a_file_shows_what_changes(
    session: Session, before: bytes, content: str, expected: list[str]
) -> None:
    session.write("f", before)
    lines = write(session, "f", content).split("\n")
    assert [line for line in lines if line in expected] == expected


@pytest.mark.parametrize("content", ["one\ntwo\n", "one\ntwo"])
def test_a_new_file_is_told_by_its_size(session: Session, content: str) -> None:
    assert write(session, "notes/new.md", content) == f"It creates notes/new.md with 2 lines, {len(content)} bytes."


@pytest.mark.parametrize(
    ("old", "words"),
    [
        ("nothing of it", "The text to replace is not in a.txt, so the edit will fail."),
        ("line 1", "stands in a.txt on lines 1, 10, 11, 12, 13, 14, 15, 16, 17, 18 and more, so the edit will fail."),
        ("", "is empty, so the edit will fail."),
    ],
)
def test_an_edit_that_will_fail_says_so(session: Session, old: str, words: str) -> None:
    session.write("a.txt", NUMBERED)
    assert edit(session, "a.txt", old, "new").endswith(words)


def test_an_edit_of_no_file_or_a_binary_one_says_so(session: Session) -> None:
    session.write("b.bin", b"\0\1\2")
    assert edit(session, "gone.txt", "a", "b") == "There is no file gone.txt, so the edit will fail."
    assert edit(session, "b.bin", "a", "b") == "b.bin is a binary file, so the edit will fail."
    assert (
        write(session, "b.bin", "x") == "b.bin is a binary file of 3 bytes; the call replaces it with 1 line, 1 byte."
    )


def unreadable(session: Session) -> dict[str, str]:
    """Paths of which nothing may be read, each holding the word, and what the sentence says of them."""
    outside = session.workspace.parent / "outside.txt"
    outside.write_text("needle\n")
    (session.workspace / "link").symlink_to(outside)
    (session.home / "config.json").write_text('"needle"')
    session.write(".git/config", "needle\n")
    session.write(".env.d/id_rsa", "needle\n")
    session.write(".ssh/id_rsa", "needle\n")
    return {
        "../outside.txt": "lies outside the workspace",
        str(outside): "lies outside the workspace",
        "link": "lies outside the workspace",
        ".git/config": "lies under .git or .crystal",
        ".crystal/plugins/x.py": "lies under .git or .crystal",
        "~/.ssh/id_rsa": "is a place for credentials",
        str(session.home / "config.json"): "belongs to Crystal's own home",
        "a\0b": "is no path that can be used",
        "x" * 5000: "is no path that can be used",
        "/proc/self/cwd/a.txt": "lies outside the workspace",
    }


def test_nothing_is_read_where_a_call_may_not_read_by_itself(session: Session) -> None:
    for path, words in unreadable(session).items():
        # An approval of an earlier call does not count for the preview of this one.
        session.permitted = frozenset((os.path.realpath(session.workspace / path),) if "\0" not in path else ())
        shown = write(session, path, "some\n")
        assert words in shown, path
        assert shown.endswith("The call writes 1 line, 5 bytes."), path
        assert "\n" not in shown
        for text in (shown, edit(session, path, "needle", "x")):
            assert "needle" not in text
            assert text.startswith("No diff is shown: ")


def test_what_is_no_ordinary_file_gets_a_sentence_and_nothing_waits(session: Session) -> None:
    os.mkfifo(session.workspace / "pipe")
    (session.workspace / "folder").mkdir()
    session.write("file", "x")
    (session.workspace / "loop").symlink_to("loop")
    for path, words in {
        "pipe": "pipe is not a regular file",
        "folder": "folder is not a regular file",
        "loop": "is no path that can be used",
    }.items():
        assert words in write(session, path, "x")
        assert words in edit(session, path, "x", "y")
    assert edit(session, "file/below", "x", "y") == "There is no file file/below, so the edit will fail."


def test_a_file_too_large_to_compare_gets_a_sentence(session: Session) -> None:
    session.write("large", b"a" * (DIFFED_BYTES + 1))
    session.write("long", b"\n" * (DIFFED_LINES + 1))
    assert f"large has {DIFFED_BYTES + 1} bytes, too many to compare" in write(session, "large", "x")
    assert "long has too many lines to compare" in write(session, "long", "x")
    session.write("grows", b"a" * 1_000_000)
    assert "would be larger than a diff is made of" in edit(session, "grows", "a", "b" * 1_000, replace_all=True)


def test_a_long_diff_is_cut_and_the_cut_is_said(session: Session) -> None:
    session.write("a.txt", "".join(f"{number}\n" for number in range(5_000)))
    lines = write(session, "a.txt", "").split("\n")
    assert lines[-1] == "<3001 more lines of the diff are not shown>"
    assert len(lines) == SHOWN_LINES + 3
    session.write("b.txt", "x" * 5_000)
    assert "<4000 more characters>" in write(session, "b.txt", "")


def test_a_surrogate_half_is_no_obstacle(session: Session) -> None:
    session.write("a.txt", "a\n")
    write(session, "a.txt", "\ud800\n").encode("utf-8")
    assert "1 line, 4 bytes" in write(session, "new.txt", "\ud800\n")


@pytest.mark.parametrize("name", ["a\x1b[2Jb", "a\nb", "a\u202eb"])
def test_a_hostile_file_name_steers_no_line_of_the_diff(session: Session, name: str) -> None:
    session.write(name, "a\n")
    shown = write(session, name, "b\n")
    assert name not in shown
    assert len(shown.split("\n")) == 5


def test_the_tools_of_the_plugin_bring_their_previews() -> None:
    previews = {tool.name: tool.preview for tool in contribute_tools()}
    assert previews == {"read": None, "list": None, "edit": preview_edit, "write": preview_write}


def test_a_preview_leaves_what_the_session_knows_of_a_file(session: Session) -> None:
    session.write("a.txt", "a\n")
    write(session, "a.txt", "b\n")
    assert session.call(WriteTool(), path="a.txt", content="b\n").failed
    assert not session.call(ReadTool(), path="a.txt").failed
    assert not session.call(WriteTool(), path="a.txt", content="b\n").failed
