"""Both backends of grep find the same, whatever the tree, the files and the pattern are."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from crystal.types.tools import ToolOutput
from plugins_builtin.search.tools import GrepTool
from tests.plugins_builtin.tool_calls import Session

NAMES = ["a", "b.py", "-x", "--files", ".hidden", "n\nl", "c:1:d", "é.txt", "build", "x.log", "bin", "sp ace", "[a]"]
IGNORE_LINES = [
    "*.log", "!x.log", "build/", "!build", "/a", "b.py", "**/a", "!*.py", "*", "!*/", "# a", "sp ace", "a/b.py",
    "\\[a\\]", "[ab]*", ".hidden", "!.hidden", "a/**", "{a,b.py}", "é.txt", "-x", "*.[lt]*g", "[!a]", "",
]  # fmt: skip
ATOMS = [
    "a", "b", "A", "é", "É", " ", "x", "1", ".", r"\w", r"\W", r"\d", r"\D", r"\s", r"\S", r"\b", r"\B", "^", "$",
    "[a-c]", "[^a]", r"[\w-]", r"[^\s]", "[[:alpha:]]", "[^[:digit:]x]", "[a-z&&[^b]]", "[a-é]", r"\.", r"\x61",
    "(a|b)",
    "(?:ab)", "(?i)", "(?i:b)", r"\<", r"\>", "K", "s", "[k-t]", r"\pL", r"\p{Lu}", "()", "[]a]", "[a-]",
    r"[\D]", r"[\x00-\x20a]", r"\b{start}", r"\b{end-half}", "[[a-c]--b]", "(?-i:a)", "i", "I", "(?m:^)",
]  # fmt: skip
PIECES = [
    "a", "b", "A", "é", "É", " ", "x", "1", ".", "ab", "-", "\t", "K", "K", "ſ", "S", "i", "ı", "İ", "_", "²", "\u0301",
    "€", "٣", "Ⓐ", "\u200d", "\u2028", "\x1c", "\x0b", "\x0c", "\x85", "\xa0", "𝒳", "\ufffd",
]  # fmt: skip
ENDS = ["\n", "\n", "\r\n", "\r", "\r\r\n", "\n\n"]

lines = st.lists(
    st.tuples(st.lists(st.sampled_from(PIECES), max_size=5).map("".join), st.sampled_from(ENDS)), max_size=5
)
texts = st.builds(lambda found, last: "".join(text + end for text, end in found) + last, lines, st.sampled_from(PIECES))
contents = st.one_of(
    texts.map(str.encode),
    texts.map(str.encode),
    texts.map(lambda text: text.rstrip("x").encode() + b"\n"),
    texts.map(lambda text: text.encode("utf-8-sig")),
    texts.map(lambda text: text.encode("utf-16")),
    st.builds(
        lambda text, tail: b"a" + bytes(tail) + text.encode(), texts, st.lists(st.integers(128, 255), max_size=3)
    ),
    texts.map(lambda text: b"\0" + text.encode()),
    texts.map(lambda text: text.encode() + b"x" * 600 + b"ab\n"),
    st.just(b""),
)
patterns = st.lists(
    st.builds("{}{}".format, st.sampled_from(ATOMS), st.sampled_from(["", "", "", "+", "*", "?", "{2}", "|", "+?"])),
    min_size=1,
    max_size=4,
).map("".join)
SLOW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def answers(session: Session, **arguments: object) -> tuple[ToolOutput, ToolOutput]:
    by_ripgrep = session.call(GrepTool(), **arguments)
    by_python = session.call(GrepTool(find=lambda workspace: None), **arguments)
    return by_ripgrep, by_python


def is_utf_8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


@SLOW
@given(
    files=st.lists(contents, min_size=1, max_size=4),
    pattern=patterns,
    context=st.integers(0, 2),
    ignore_case=st.booleans(),
)
def test_any_pattern_finds_the_same_lines(files: list[bytes], pattern: str, context: int, ignore_case: bool) -> None:
    # Ripgrep itself is undecided on these beside bytes that are not UTF-8.
    if any(place in pattern for place in (r"\B", "-half}")):
        assume(all(content.startswith((b"\xff\xfe", b"\0")) or is_utf_8(content) for content in files))
    with tempfile.TemporaryDirectory() as folder:
        session = Session(Path(os.path.realpath(folder)))
        for number, content in enumerate(files):
            session.write(f"f{number}", content)
        by_ripgrep, by_python = answers(session, pattern=pattern, context=context, ignore_case=ignore_case)
        assert by_python.failed == by_ripgrep.failed
        if not by_ripgrep.failed:
            assert by_python == by_ripgrep


@SLOW
@given(data=st.data())
def test_any_tree_is_searched_alike(data: st.DataObject) -> None:
    path = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)
    paths = data.draw(st.lists(path, min_size=1, max_size=8))
    folders = ["", *{p.rpartition("/")[0] for p in paths}]
    rules = data.draw(
        st.dictionaries(st.sampled_from(folders), st.lists(st.sampled_from(IGNORE_LINES), max_size=4), max_size=3)
    )
    glob = data.draw(st.sampled_from(["", "", "*.py", "!a", "a/**", "{a,b.py}", "**/b*", "a/", "[!a]*", "-x", "?"]))
    below = data.draw(st.sampled_from([".", ".", *paths, *folders]))
    with tempfile.TemporaryDirectory() as folder:
        session = Session(Path(os.path.realpath(folder)))
        for each in paths:
            try:
                session.write(each, "a needle\nb\n")
            except OSError:
                # A part of it is a file already.
                continue
        for each, found in rules.items():
            if (session.workspace / each).is_dir():
                session.write(f"{each}/.gitignore" if each else ".gitignore", "\n".join(found))
        for files_only in (False, True):
            arguments = {"pattern": "needle", "path": below or ".", "glob": glob, "files_only": files_only}
            by_ripgrep, by_python = answers(session, **arguments)
            assert by_python == by_ripgrep


@pytest.mark.parametrize(
    "pattern",
    ["(?=a)", "(?<!a)b", r"(a)\1", "(?>a)", "a{", "{", "[a", "(a", "a)", r"\Z", r"\é", "(?P<n>a)(?P<n>b)", "a{3,2}",
     "*a", "[b-a]", r"\r", r"[\n]", "(?i", r"\x", r"[a-\d]", "(?P=n)", "(?z)a", "a{99999999999}"],
)  # fmt: skip
def test_what_one_backend_refuses_the_other_refuses(tmp_path: Path, pattern: str) -> None:
    session = Session(Path(os.path.realpath(tmp_path)))
    session.write("f", "a\n")
    for output in answers(session, pattern=pattern):
        assert output.failed
        assert output.text.startswith("grep cannot use the pattern: ")
        assert output.text.isprintable()


@pytest.mark.parametrize("pattern", [r"\A", r"a\z", r"(?-m)^a", r"(?i-sm:a)", r"\\\z"])
def test_the_ends_of_a_text_are_refused_with_what_to_write_instead(tmp_path: Path, pattern: str) -> None:
    session = Session(Path(os.path.realpath(tmp_path)))
    session.write("f", "a\n")
    for output in answers(session, pattern=pattern):
        assert output.failed
        assert "write ^ and $" in output.text


def test_a_backslash_before_a_letter_is_found_as_text(tmp_path: Path) -> None:
    session = Session(Path(os.path.realpath(tmp_path)))
    session.write("f", "C:\\Apps\n\\zeta (?-m)\n")
    for pattern, text in ((r"\\A", r"f:1:C:\Apps"), (r"\\z", r"f:2:\zeta (?-m)"), (r"\(\?-m", r"f:2:\zeta (?-m)")):
        assert [output.text for output in answers(session, pattern=pattern)] == [text, text]


def test_an_empty_match_at_the_very_end_of_a_file_is_a_match(tmp_path: Path) -> None:
    session = Session(Path(os.path.realpath(tmp_path)))
    session.write("f", "a\nb")
    for pattern in ("$", "x*$", r"\b{end}"):
        assert [output.text for output in answers(session, pattern=pattern)] == ["f:1:a\nf:2:b"] * 2


def test_a_glob_of_many_parts_is_judged_at_once(tmp_path: Path) -> None:
    session = Session(Path(os.path.realpath(tmp_path)))
    session.write("f", "a\n")
    for glob in ("a" * 900 + "[", "a/" * 400 + "[b]", "{a,b}" * 7 + "(", "*" * 900):
        by_ripgrep, by_python = answers(session, pattern="a", glob=glob)
        assert by_ripgrep == by_python


@pytest.mark.parametrize("ignore_case", [False, True])
def test_unicode_classes_mean_what_ripgrep_means_by_them(tmp_path: Path, ignore_case: bool) -> None:
    session = Session(Path(os.path.realpath(tmp_path)))
    marks = "aé\u0301²٣_‿Ⓐ𝒳\u200dᛮ½½ſK\u0130ıσςΣ\xa0\x1c\u2028€ǅ漢"
    session.write("f", "".join(f"{mark}\n" for mark in marks))
    for pattern in (
        r"\w",
        r"\W",
        r"\d",
        r"\s",
        r"\S",
        r"\pL",
        r"\p{Lt}",
        r"\P{N}",
        r"\b",
        r"[\w--\d]",
        "[a-z]",
        "σ",
        "[^i]",
    ):
        by_ripgrep, by_python = answers(session, pattern=pattern, ignore_case=ignore_case)
        assert by_ripgrep == by_python
        assert not by_ripgrep.failed
