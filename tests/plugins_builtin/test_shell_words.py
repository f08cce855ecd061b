"""The reader of command lines: what it understands is exact, and it stops at everything else."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins_builtin.shell_words import Pipeline, Redirection, ShellLine, SimpleCommand, Word, read_line


def command(*texts: str) -> SimpleCommand:
    return SimpleCommand(tuple(Word(text) for text in texts))


@pytest.mark.parametrize(
    ("text", "pipelines"),
    [
        ("", ()),
        ("  # only a comment", ()),
        ("ls -l", (Pipeline((command("ls", "-l"),)),)),
        ("a|b |& c", (Pipeline((command("a"), command("b"), command("c"))),)),
        (
            "a && b || c; d & e\nf",
            (
                Pipeline((command("a"),), "&&"),
                Pipeline((command("b"),), "||"),
                Pipeline((command("c"),), ";"),
                Pipeline((command("d"),), "&"),
                Pipeline((command("e"),), ";"),
                Pipeline((command("f"),)),
            ),
        ),
        ("a &&\n\n b", (Pipeline((command("a"),), "&&"), Pipeline((command("b"),)))),
        ("a # c; b\nd#e", (Pipeline((command("a"),), ";"), Pipeline((command("d#e"),)))),
        (
            "echo 'a & b' \"c | d\" e'f'\"g\"",
            (Pipeline((command("echo", "a & b", "c | d", "efg"),)),),
        ),
        ("'' \"\"", (Pipeline((command("", ""),)),)),
        (
            "a 2>&1 >out <in 3>>log b2>c",
            (
                Pipeline(
                    (
                        SimpleCommand(
                            (Word("a"), Word("b2")),
                            (
                                Redirection(">&", Word("1")),
                                Redirection(">", Word("out")),
                                Redirection("<", Word("in")),
                                Redirection(">>", Word("log")),
                                Redirection(">", Word("c")),
                            ),
                        ),
                    )
                ),
            ),
        ),
        (
            'echo $HOME/x "$PWD" a$HOME',
            (
                Pipeline(
                    (
                        SimpleCommand(
                            (Word("echo"), Word("~/x", True), Word(".", True), Word("a$HOME", True)),
                        ),
                    )
                ),
            ),
        ),
        (
            "ls *.py 'a*' b[0] [ -f x ]",
            (
                Pipeline(
                    (
                        SimpleCommand(
                            (
                                Word("ls"),
                                Word("*.py", glob=0),
                                Word("a*"),
                                Word("b[0]", glob=1),
                                Word("["),
                                Word("-f"),
                                Word("x"),
                                Word("]"),
                            )
                        ),
                    )
                ),
            ),
        ),
    ],
)
def test_plain_lines_are_split_as_bash_splits_them(text: str, pipelines: tuple[Pipeline, ...]) -> None:
    assert read_line(text) == ShellLine(pipelines)


@pytest.mark.parametrize(
    "stop",
    [
        "$(b)",
        "`b`",
        '"$(b)"',
        '"`b`"',
        "<(b)",
        ">(b)",
        "(b)",
        ")",
        "{ b; }",
        "{b,c}",
        "${b:-c}",
        "$'b'",
        '$"b"',
        "$((1+1))",
        "\\b",
        '"\\b"',
        "<<EOF",
        "<<<b",
        "'b",
        '"b',
        ";;",
        "; ;",
        "| |",
        "&& ;",
        ">",
        "> ;",
        "2> |",
        "> 2>b",
        "\r",
        "\x00",
        "\x1b[31m",
        "'\x1b'",
        "\x7f",
        "b\u00a0c",
        "&&",
        "|",
        "# \x07",
    ],
)
def test_everything_else_stops_the_reader_and_keeps_what_came_before(stop: str) -> None:
    line = read_line(f"first one; a {stop}")
    assert line.unclear
    assert line.pipelines[0] == Pipeline((command("first", "one"),), ";")
    assert line.rest == "" or f"first one; a {stop}".endswith(line.rest)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126)), min_size=1, max_size=6))
def test_words_that_the_shells_own_quoting_made_come_back_unchanged(words: list[str]) -> None:
    quoted = " ".join(shlex.quote(word) for word in words)
    assert read_line(quoted).pipelines == (Pipeline((command(*words),)),)
