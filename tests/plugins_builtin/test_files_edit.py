"""The edit tool: exactly the named text changes, and nothing that the session has not seen is overwritten."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.types.tools import ToolOutput
from plugins_builtin.files.edit import EditTool
from plugins_builtin.files.read import ReadTool
from plugins_builtin.files.replacement import NotReplaced, Replacement, replace_text
from plugins_builtin.files.write import WriteTool
from tests.plugins_builtin.tool_calls import Session


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(Path(os.path.realpath(tmp_path)))


def edit(session: Session, path: str, old: str, new: str, *, replace_all: bool = False) -> ToolOutput:
    return session.call(EditTool(), path=path, old_string=old, new_string=new, replace_all=replace_all)


@pytest.mark.parametrize("replace_all", [False, True])
def test_new_text_is_taken_literally(session: Session, replace_all: bool) -> None:
    new = r'log("$& $1 $$ \1 \g<0> {0} %s ${x} \n");'
    file = session.write("a.js", 'log("done");')
    assert not edit(session, "a.js", 'log("done");', new, replace_all=replace_all).failed
    assert file.read_bytes() == new.encode()


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\nc\rd\r\nend", "b", "B", b"a\r\nB\nc\rd\r\nend"),
        (b"one\r\ntwo\r\nthree\r\n", "one\ntwo", "1\n2\n2b", b"1\r\n2\r\n2b\r\nthree\r\n"),
        (b"one\r\ntwo\r\n", "two", "2\n3", b"one\r\n2\r\n3\r\n"),
        (b"one\r\nlast", "last", "x\ny", b"one\r\nx\r\ny"),
        (b"one\ntwo\n", "one\r\ntwo", "1\r\n2", b"1\n2\n"),
        (b"a\nb\r\nc\nd\n", "c", "c1\nc2", b"a\nb\r\nc1\nc2\nd\n"),
        (b"a\nb\r\nc\nd\n", "b", "b1\nb2", b"a\nb1\r\nb2\r\nc\nd\n"),
        (b"a\rb\rc", "a\rb", "x", b"x\rc"),
        (b"x\r\n\r\ny\r\n", "x\n\ny", "z", b"z\r\n"),
        (b"a\r\nb\r\n", "a\n", "", b"b\r\n"),
    ],
)
def test_line_ends_match_as_seen_and_the_untouched_bytes_stay(
    session: Session, before: bytes, old: str, new: str, after: bytes
) -> None:
    file = session.write("f", before)
    assert not edit(session, "f", old, new).failed
    assert file.read_bytes() == after


@pytest.mark.parametrize("content", ["abc", ""])
@pytest.mark.parametrize("replace_all", [False, True])
def test_an_empty_old_text_is_refused_and_write_is_named(session: Session, content: str, replace_all: bool) -> None:
    file = session.write("f", content)
    output = edit(session, "f", "", "X", replace_all=replace_all)
    assert output.failed
    assert "old_string is empty; use write" in output.text
    assert file.read_text() == content


def test_two_edits_of_one_file_both_land(session: Session) -> None:
    file = session.write("f", "".join(f"{number}\n" for number in range(1, 101)))
    session.call(ReadTool(), path="f")
    assert edit(session, "f", "\n50\n", "\nFIFTY\n").text == "Edited f: 1 replacement at line 49."
    assert not edit(session, "f", "\n75\n", "\nSEVENTY\n").failed
    words = {50: "FIFTY", 75: "SEVENTY"}
    assert file.read_text() == "".join(f"{words.get(number, number)}\n" for number in range(1, 101))


def test_a_file_that_changed_since_it_was_read_is_not_edited_and_one_only_touched_is(session: Session) -> None:
    file = session.write("f", "one\ntwo\n")
    session.call(ReadTool(), path="f")
    os.utime(file, ns=(0, 0))
    assert not edit(session, "f", "one", "1").failed
    status = file.stat()
    file.write_text("1\n2wo\n")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    output = edit(session, "f", "1", "one")
    assert output == ToolOutput(
        text="f changed on disk since it was read; read it again and repeat the edit.", failed=True
    )
    assert file.read_text() == "1\n2wo\n"
    session.call(ReadTool(), path="f")
    assert not edit(session, "f", "1", "one").failed


def test_a_file_never_read_may_be_edited_and_is_known_afterwards(session: Session) -> None:
    file = session.write("f", "one\n")
    assert not edit(session, "f", "one", "two").failed
    assert session.memory.before_images == [(str(file), b"one\n", "call")]
    assert not session.call(WriteTool(), path="f", content="three\n").failed


def test_a_large_file_read_in_part_is_refused_after_a_change(session: Session) -> None:
    file = session.write("f", "x" * 4_100_000 + "\nend\n")
    session.call(ReadTool(), path="f")
    assert not edit(session, "f", "end", "END").failed
    session.memory.stamps.clear()
    session.call(ReadTool(), path="f")
    file.write_bytes(b"y" + file.read_bytes())
    assert "changed on disk" in edit(session, "f", "END", "end").text


def test_mode_links_and_the_folder_are_kept(session: Session) -> None:
    file = session.write("bin-dir/run.sh", "echo a\n")
    file.chmod(0o755)
    (session.workspace / "run").symlink_to("bin-dir/run.sh")
    assert edit(session, "run", "a", "b").text == "Edited bin-dir/run.sh: 1 replacement at line 1."
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("echo b\n", 0o755)
    assert (session.workspace / "run").is_symlink()
    assert os.listdir(file.parent) == ["run.sh"]


def test_bytes_that_are_not_utf_8_survive_an_edit_elsewhere(session: Session) -> None:
    file = session.write("f.c", b"// \xa9 ACME\r\nint x=1;\r\n")
    assert not edit(session, "f.c", "x=1", "x=2").failed
    assert file.read_bytes() == b"// \xa9 ACME\r\nint x=2;\r\n"
    for old, new in (("x=2", "x=é"), ("// \ufffd ACME", "// ACME"), ("x=2", "x=\ufffd")):
        output = edit(session, "f.c", old, new)
        assert output.failed
        assert "not UTF-8" in output.text
    assert file.read_bytes() == b"// \xa9 ACME\r\nint x=2;\r\n"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-8"])
def test_encoding_and_byte_order_mark_are_kept(session: Session, encoding: str) -> None:
    file = session.write("f", "\ufeffhi\r\nworld\r\n".encode(encoding))
    assert not edit(session, "f", "hi\nworld", "hé\nwörld").failed
    assert file.read_bytes() == "\ufeffhé\r\nwörld\r\n".encode(encoding)


def test_more_than_one_place_is_refused_with_their_lines_unless_all_are_meant(session: Session) -> None:
    file = session.write("f", "a = 1\nb = 1\nc = 1\n")
    assert edit(session, "f", " = 1", " = 2").text == (
        "old_string appears 3 times in f (lines 1, 2, 3); add lines around it to make it unique or set replace_all."
    )
    assert file.read_text() == "a = 1\nb = 1\nc = 1\n"
    assert edit(session, "f", " = 1", " = 2", replace_all=True).text == "Edited f: 3 replacements at lines 1, 2, 3."
    assert file.read_text() == "a = 2\nb = 2\nc = 2\n"


def test_places_that_share_characters_are_not_unique(session: Session) -> None:
    session.write("f", "aaa")
    assert "appears 2 times" in edit(session, "f", "aa", "b").text
    session.write("g", "x\n\r\n\ny")
    assert "appears 2 times" in edit(session, "g", "\n\n", "\n").text


def test_no_match_says_what_is_near(session: Session) -> None:
    session.write("f.py", "def first():\n    return alpha + 1\n\ndef second():\n\treturn beta\n")
    spaces = edit(session, "f.py", "def second():\n    return beta", "x")
    assert spaces.failed
    assert spaces.text == (
        "old_string was not found in f.py; read the place and copy it exactly. Only the white space differs here:\n"
        "     4\tdef second():\n     5\t\treturn beta"
    )
    near = edit(session, "f.py", "    return alpha + 2\n", "x")
    assert near.text.endswith("The nearest lines are:\n     2\t    return alpha + 1\n     5\t\treturn beta")
    assert edit(session, "f.py", "zzzz qqqq", "x").text == (
        "old_string was not found in f.py; read the place and copy it exactly."
    )


def test_looking_for_what_is_near_is_bounded(session: Session) -> None:
    session.write("big", ("word " * 50 + "\n") * 20_000)
    assert edit(session, "big", "word wird " * 3_000, "x").failed


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("a", "a", "are the same"),
        ("\ud800", "x", "surrogate"),
        ("a", "\udca9", "surrogate"),
        ("a\n", "a\r\n", "as it is"),
    ],
)
def test_an_edit_that_cannot_be_meant_is_refused(session: Session, old: str, new: str, reason: str) -> None:
    file = session.write("f", b"a\r\n")
    output = edit(session, "f", old, new)
    assert output.failed
    assert reason in output.text
    assert file.read_bytes() == b"a\r\n"


def test_what_is_no_text_file_is_refused(session: Session) -> None:
    session.write("prog", b"\x7fELF\0\0abc")
    os.mkfifo(session.workspace / "pipe")
    (session.workspace / "sub").mkdir()
    texts = {path: edit(session, path, "abc", "x").text for path in ("prog", "pipe", "sub", "missing")}
    assert texts == {
        "prog": "prog is a binary file; edit changes only text.",
        "pipe": "pipe is a named pipe, not a regular file; name a regular file.",
        "sub": "sub is a folder; use list to see its entries or name a file in it.",
        "missing": "There is no file missing to edit; create it with write.",
    }


def test_nothing_outside_or_guarded_is_edited_without_approval(session: Session) -> None:
    other = session.workspace.parent / "other"
    other.mkdir()
    (other / "f").write_text("abc")
    (session.workspace / "out").symlink_to(other)
    guarded = session.write(".git/config", "abc")
    project = session.write(".crystal/plugins/p.py", "abc")
    for path in ("out/f", "../other/f", ".git/config", ".crystal/plugins/p.py"):
        assert edit(session, path, "abc", "x").failed
    assert [(file.read_text()) for file in (other / "f", guarded, project)] == ["abc"] * 3
    session.permitted = frozenset({str(other / "f"), str(guarded)})
    assert not edit(session, "out/f", "abc", "x").failed
    assert not edit(session, ".git/config", "abc", "x").failed


def replaced_or_none(text: str, old: str, new: str, replace_all: bool) -> Replacement | None:
    try:
        return replace_text(text, old, new, replace_all=replace_all)
    except NotReplaced:
        return None


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from(["a", "b", "\r\n", "\n", "\r", "é", "\udca9", "$1"]), max_size=12).map("".join),
    st.lists(st.sampled_from(["a", "b", "\r\n", "\n", "$1"]), min_size=1, max_size=4).map("".join),
    st.sampled_from(["", "a", "X\nY", "\\g<0>"]),
    st.booleans(),
)
def test_only_the_named_places_change_and_by_the_new_text(text: str, old: str, new: str, replace_all: bool) -> None:
    pattern = re.compile("\r?\n".join(re.escape(line) for line in re.split("\r?\n", old)))
    starts = [start for start in range(len(text)) if pattern.match(text, start)]
    # A place that begins with a line end of two characters is found from its second one, too.
    starts = [start for start in starts if not (old[0] in "\r\n" and text[max(start - 1, 0) : start + 1] == "\r\n")]
    replaced = replaced_or_none(text, old, new, replace_all)
    if replaced is None:
        assert starts == [] if replace_all else len(starts) != 1
        return
    kept: list[str] = []
    position = count = 0
    for start in starts:
        if start >= position:
            kept.append(text[position:start])
            match = pattern.match(text, start)
            assert match is not None
            position, count = match.end(), count + 1
    kept.append(text[position:])
    assert count == replaced.count
    assert len(replaced.lines) == min(count, 11)
    new_text = "|".join(re.escape(form) for form in {new, new.replace("\n", "\r\n")})
    assert re.fullmatch(f"(?:{new_text})".join(map(re.escape, kept)), replaced.text)


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("a\n" * 2_000_000, "a\n" * 500_000 + "b", "x"),
        ("a\r\n" * 2_000_000, "a\n" * 500_000 + "b", "x"),
        ("\n" * 4_000_000, "\n" * 1_000_000 + "x", "y"),
        ("a;" * 300_000 + "\r\n", ";", ";\n"),
        ("\r\n" + "a;" * 300_000, ";", ";\n"),
    ],
)
def test_no_text_makes_an_edit_take_time_without_end(text: str, old: str, new: str) -> None:
    replaced = replaced_or_none(text, old, new, replace_all=True)
    if old == ";":
        assert replaced is not None
        assert replaced.text == text.replace(";", ";\r\n")
    else:
        assert replaced is None


@pytest.mark.parametrize(("content", "new"), [("a" * 1_000_000, "b" * 100_000), ("a\r\n" * 300_000, "b\n" * 100)])
def test_an_edit_that_would_fill_the_memory_is_refused(session: Session, content: str, new: str) -> None:
    file = session.write("f", content)
    output = edit(session, "f", "a", new, replace_all=True)
    assert output == ToolOutput(
        text="The edit would make f larger than edit can hold; replace fewer places or use bash.", failed=True
    )
    assert file.read_bytes() == content.encode()


def test_very_many_places_are_counted_up_to_a_thousand(session: Session) -> None:
    file = session.write("f", "x\n" * 5_000)
    assert edit(session, "f", "x", "y").text == (
        "old_string appears at least 1000 times in f (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and more); "
        "add lines around it to make it unique or set replace_all."
    )
    assert edit(session, "f", "x", "y", replace_all=True).text.startswith("Edited f: 5000 replacements")
    assert file.read_text() == "y\n" * 5_000
