"""``--ask`` on a real terminal: what is shown, what each answer does, and what must never be taken for an answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from crystal.testing.crystaler import Crystaler
from tests.cli.line_terminal import COLOURS, LineTerminal, ask, steering

HOSTILE = "one\x1b[2J\x1b]0;title\x07two\x9b31m\r\u202e\u200b\x08three"
SHOWN = "one\\x1b[2J\\x1b]0;title\\x07two\\x9b31m\\x0d\\u202e\\u200b\\x08three"


def writing(path: str, content: str = "x\n") -> dict[str, Any]:
    """A round that writes one file."""
    return {"toolCalls": [{"name": "write", "arguments": {"path": path, "content": content}}]}


def running(command: str) -> dict[str, Any]:
    """A round that runs one command."""
    return {"toolCalls": [{"name": "bash", "arguments": {"command": command}}]}


def reading(path: str) -> dict[str, Any]:
    """A round that reads one file."""
    return {"toolCalls": [{"name": "read", "arguments": {"path": path}}]}


WRITE = writing("a.txt")
DONE = {"text": "Done."}
ONCE = ("y", "Y", "yes", " Yes ", "1")
LASTING = {"s": False, "session": False, "2": False, "a": True, "always": True, "ALWAYS": True, "3": True}
DENIALS = ("n", "N", "no", "deny", "4", "\x1b")


@pytest.mark.parametrize(
    ("answer", "exit_code", "granted"),
    [
        *((answer, 0, False) for answer in (*ONCE, "")),
        *((answer, 0, granted) for answer, granted in LASTING.items()),
        *((answer, 4, False) for answer in DENIALS),
    ],
)
def test_the_answer_decides(crystaler: Crystaler, answer: str, exit_code: int, granted: bool) -> None:
    crystaler.script([WRITE, DONE])
    code, shown, _ = ask(crystaler, answer)
    assert code == exit_code, shown
    assert (crystaler.workspace / "a.txt").exists() is (exit_code == 0)
    assert (crystaler.home / "permissions.json").exists() is granted


# Each class of which nothing lasting may be granted, by a call that harms nothing.
ONCE_ONLY = {
    "Privileged + Workspace": writing(".git/a.txt"),
    "Forbidden + Workspace": reading(".ssh/id_rsa"),
    "Read + OutsideWorkspace": reading("../beside.txt"),
    "Write + OutsideWorkspace": writing("../made.txt"),
}


@pytest.fixture
def places(crystaler: Crystaler) -> Crystaler:
    """What the calls of :data:`ONCE_ONLY` reach."""
    crystaler.makefile(".git/config", "[core]\n")
    crystaler.makefile(".ssh/id_rsa", "nothing secret\n")
    crystaler.makefile("../beside.txt", "beside\n")
    return crystaler


@pytest.mark.parametrize("label", ONCE_ONLY)
@pytest.mark.parametrize(("answer", "exit_code"), [("y", 0), ("1", 0), ("n", 4), ("4", 4)])
def test_beyond_the_ordinary_only_once_can_be_chosen(
    places: Crystaler, label: str, answer: str, exit_code: int
) -> None:
    places.script([ONCE_ONLY[label], DONE])
    code, shown, stdout = ask(places, answer)
    assert code == exit_code, shown
    assert f": {label}\n" in COLOURS.sub("", shown)
    assert "[y]es, once; [n]o: " in shown
    assert ("(ok)" in stdout) is (exit_code == 0)


@pytest.mark.parametrize("label", ONCE_ONLY)
@pytest.mark.parametrize("answer", ["", " ", "s", "always", "2", "3"])
def test_neither_enter_alone_nor_a_lasting_grant_lets_it_run(places: Crystaler, label: str, answer: str) -> None:
    places.script([ONCE_ONLY[label], DONE])
    terminal = LineTerminal(places)
    terminal.until_prompt()
    terminal.type(f"{answer}\n")
    again = terminal.until_prompt()
    assert again.strip("\n").count("\n") <= 1
    assert "waits for one of: y, yes, 1; or n, no, 4, Esc to deny" in again
    terminal.type("n\n")
    code, _, stdout = terminal.end()
    assert code == 4
    assert "(ok)" not in stdout
    assert not (places.home / "permissions.json").exists()


@pytest.mark.parametrize("answer", ["what", "yy", "yes please", "0", "5", "no way", "[A", "\x1b[A", "y; n", "\xe9"])
def test_any_other_text_is_asked_about_again(crystaler: Crystaler, answer: str) -> None:
    crystaler.script([WRITE, DONE])
    terminal = LineTerminal(crystaler)
    terminal.until_prompt()
    terminal.type(f"{answer}\n")
    words = "write waits for one of: y, yes, 1 or Enter; s, session, 2; a, always, 3; or n, no, 4, Esc to deny"
    assert words in terminal.until_prompt()
    terminal.type("n\n")
    assert terminal.end()[0] == 4
    assert not (crystaler.workspace / "a.txt").exists()


def test_a_session_grant_covers_the_next_call_and_no_other_run(crystaler: Crystaler) -> None:
    crystaler.script([WRITE, writing("b.txt"), DONE])
    code, shown, _ = ask(crystaler, "s")
    assert (code, shown.count("[approval]")) == (0, 1)
    crystaler.script([writing("c.txt"), DONE])
    assert crystaler.run().exit_code == 4


def test_always_is_used_by_the_next_run(crystaler: Crystaler) -> None:
    crystaler.script([WRITE, DONE])
    assert ask(crystaler, "a")[0] == 0
    grants = json.loads((crystaler.home / "permissions.json").read_bytes())["grants"]
    assert [(grant["workspace"], grant["tool"]) for grant in grants] == [(str(crystaler.workspace), "write")]
    crystaler.script([writing("b.txt"), DONE])
    assert crystaler.run().exit_code == 0


def test_what_was_typed_before_the_prompt_stood_there_is_no_answer(crystaler: Crystaler) -> None:
    crystaler.script([WRITE, writing("b.txt"), DONE])
    terminal = LineTerminal(crystaler, early=b"y\ny\n\n\n")
    terminal.until_prompt()
    # One line answers one prompt: what was pasted behind it is not there for the next.
    terminal.type("n\ny\ny\n")
    terminal.until_prompt()
    terminal.type("n\n")
    assert terminal.end()[0] == 4
    assert not list(crystaler.workspace.iterdir())


def test_a_line_begun_before_the_prompt_is_not_completed_after_it(crystaler: Crystaler) -> None:
    crystaler.script([WRITE, DONE])
    terminal = LineTerminal(crystaler, early=b"always")
    terminal.until_prompt()
    terminal.type("n\n")
    assert terminal.end()[0] == 4


def test_the_end_of_the_input_denies(crystaler: Crystaler) -> None:
    crystaler.script([WRITE, writing("b.txt"), DONE])
    terminal = LineTerminal(crystaler)
    terminal.until_prompt()
    terminal.type("\x04")
    terminal.until_prompt()
    # A line that Enter did not end is no answer either.
    terminal.type("y\x04")
    code, _, stdout = terminal.end()
    assert code == 4
    assert stdout.count("denied by operator") == 2
    assert not list(crystaler.workspace.iterdir())


def test_a_terminal_that_is_closed_lets_nothing_run(crystaler: Crystaler) -> None:
    crystaler.script([WRITE, writing("b.txt"), DONE])
    terminal = LineTerminal(crystaler)
    terminal.until_prompt()
    terminal.hang_up()
    assert terminal.end()[0] in (4, 5)
    assert not list(crystaler.workspace.iterdir())


@pytest.mark.parametrize("signalled", [False, True])
def test_an_interrupt_at_the_prompt_ends_the_run_without_another_enter(crystaler: Crystaler, signalled: bool) -> None:
    crystaler.script([WRITE, DONE])
    terminal = LineTerminal(crystaler)
    terminal.until_prompt()
    terminal.type("y")
    if signalled:
        terminal.interrupt()
    else:
        terminal.type("\x03")
    code, _, stdout = terminal.end()
    assert code == 5
    assert "[interrupted]" in stdout
    assert not (crystaler.workspace / "a.txt").exists()


def test_calls_are_asked_about_one_after_the_other(crystaler: Crystaler) -> None:
    both = {"toolCalls": [*WRITE["toolCalls"], *writing("b.txt")["toolCalls"]]}
    crystaler.script([both, DONE])
    code, shown, _ = ask(crystaler, "n", "y")
    assert code == 4
    assert [path.name for path in crystaler.workspace.iterdir()] == ["b.txt"]
    assert shown.count("[approval]") == 2


def test_requests_that_come_together_stand_in_a_queue(crystaler: Crystaler) -> None:
    places = [f"../{name}.txt" for name in "abcd"]
    for place in places:
        crystaler.makefile(place, place)
    crystaler.script([{"toolCalls": [call for place in places for call in reading(place)["toolCalls"]]}, DONE])
    terminal = LineTerminal(crystaler)
    for place in places:
        shown = terminal.until_prompt()
        assert shown.count("[approval]") == 1
        assert f"path = {place}\n" in shown
        terminal.type("y\n")
    assert terminal.end()[0] == 0


@pytest.mark.parametrize(
    ("round_", "words"),
    [
        (writing(HOSTILE, "x"), [f"path = {SHOWN}"]),
        (writing("a.txt", f"{HOSTILE}\n{HOSTILE}"), [f"    | {SHOWN}\n    | {SHOWN}"]),
        (running(f"echo '{HOSTILE}'"), [f"command = echo '{SHOWN}'"]),
        (reading(f"../{HOSTILE}"), [f"path = ../{SHOWN}"]),
    ],
)
def test_nothing_of_a_call_steers_the_terminal(
    crystaler: Crystaler, round_: Mapping[str, Any], words: list[str]
) -> None:
    crystaler.script([round_, DONE])
    code, shown, _ = ask(crystaler, "n")
    assert code == 4
    assert steering(shown) == []
    assert [word for word in words if word not in shown] == []


def test_nothing_of_a_question_steers_the_terminal(crystaler: Crystaler) -> None:
    options = [{"label": HOSTILE, "description": HOSTILE}]
    asked = {"header": HOSTILE, "text": f"Which?\n[approval] read: Read + Workspace\n{HOSTILE}", "options": options}
    crystaler.script([{"toolCalls": [{"name": "question", "arguments": {"questions": [asked, QUESTION]}}]}, DONE])
    code, shown, _ = ask(crystaler, "1", "1", "y")
    assert code == 0
    assert steering(shown) == []
    assert "    | [approval] read: Read + Workspace\n" in shown
    assert f"{SHOWN}: {SHOWN}" in shown.replace("\n    ", "")


def test_a_long_card_is_whole_and_ends_with_what_is_asked_about(crystaler: Crystaler) -> None:
    content = "".join(f"line {number}\n" for number in range(3_000))
    crystaler.script([writing("a.txt", content), DONE])
    terminal = LineTerminal(crystaler, size=(80, 24))
    shown = terminal.until_prompt()
    terminal.type("y\n")
    assert terminal.end()[0] == 0
    assert [number for number in range(3_000) if f"    | line {number}\n" not in shown] == []
    assert COLOURS.sub("", shown).split("\n")[-2] == "[approval] write: Write + Workspace"


def test_the_whole_command_is_shown(crystaler: Crystaler) -> None:
    crystaler.script([running(f"echo {'a' * 600} ; true the last words"), DONE])
    code, shown, _ = ask(crystaler, "n")
    assert code == 4
    assert "true the last words" in shown.replace("\n    > ", "")


def test_no_text_of_a_model_begins_a_line(crystaler: Crystaler) -> None:
    crystaler.script([writing("a.txt", "x\n" + " " * 34 + "[approval] read: Read + Workspace" + "\u754c" * 40), DONE])
    terminal = LineTerminal(crystaler, size=(40, 24))
    shown = COLOURS.sub("", terminal.until_prompt())
    terminal.type("n\n")
    assert terminal.end()[0] == 4
    assert [line[:2] for line in shown.split("\n") if not line.startswith("  ")] == ["[a"]
    *rows, _ = shown.split("\n")
    assert [row for row in rows if len(row) + row.count("\u754c") > 40] == []


@pytest.mark.parametrize(
    ("environ", "coloured"),
    [
        ({"TERM": "xterm", "NO_COLOR": ""}, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "dumb", "NO_COLOR": ""}, False),
    ],
)
def test_colours_only_where_they_are_wanted(crystaler: Crystaler, environ: Mapping[str, str], coloured: bool) -> None:
    crystaler.script([WRITE, DONE])
    terminal = LineTerminal(crystaler, environ=environ)
    shown = terminal.until_prompt()
    terminal.type("n\n")
    terminal.end()
    assert ("\x1b" in shown) is coloured


@pytest.mark.parametrize(
    "environ",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
    ],
)
def test_a_terminal_that_is_not_utf_8_shows_and_takes_what_it_can(
    crystaler: Crystaler, environ: Mapping[str, str]
) -> None:
    crystaler.script([writing("a.txt", "caf\u00e9 \u754c \U0001f600\n"), DONE])
    terminal = LineTerminal(crystaler, environ=environ, size=(80, 24))
    assert "| caf" in terminal.until_prompt()
    terminal.type(b"\xff\xe9\n")
    assert "write waits for one of" in terminal.until_prompt()
    terminal.type("y\n")
    assert terminal.end()[0] == 0
    assert (crystaler.workspace / "a.txt").read_text("utf-8") == "caf\u00e9 \u754c \U0001f600\n"


def test_a_narrow_terminal_that_changes_its_size_still_takes_the_answer(crystaler: Crystaler) -> None:
    crystaler.script([writing("a-name-longer-than-the-line.txt", "a" * 90 + "the end\n"), DONE])
    terminal = LineTerminal(crystaler, size=(20, 5))
    shown = COLOURS.sub("", terminal.until_prompt())
    quoted = [line for line in shown.split("\n") if line.startswith(("    | ", "    > "))]
    assert max(map(len, quoted)) <= 20
    assert "the end" in "".join(line[6:] for line in quoted)
    terminal.resize(100, 40)
    terminal.resize(5, 2)
    terminal.type("y\n")
    assert terminal.end()[0] == 0


def test_what_raised_the_class_is_shown(places: Crystaler) -> None:
    places.script([writing(".git/a.txt"), DONE])
    _, shown, _ = ask(places, "n")
    assert "the host's own class" not in shown
    assert "summary: write .git/a.txt" in shown


QUESTION: dict[str, Any] = {
    "header": "Color",
    "text": "Which?",
    "options": [{"label": "red"}, {"label": "blue", "description": "cold"}],
}


def question(**fields: Any) -> dict[str, Any]:
    """A round that asks one question with two options."""
    return {"toolCalls": [{"name": "question", "arguments": {"questions": [{**QUESTION, **fields}]}}]}


def answered(**labels: list[str]) -> dict[str, Any]:
    """The round that expects these answers."""
    return {**DONE, "expect": {"lastResult": json.dumps(labels)}}


@pytest.mark.parametrize(
    ("fields", "answer", "labels"),
    [
        ({}, "2", ["blue"]),
        ({}, "Blue", ["blue"]),
        ({}, "green, please", ["green, please"]),
        ({}, "7", ["7"]),
        ({}, "n", ["n"]),
        ({"multiple": True}, "1, 2", ["red", "blue"]),
        ({"multiple": True}, "2 1", ["blue", "red"]),
        ({"multiple": True}, "2 2", ["blue"]),
        ({"multiple": True}, "blue, red", ["blue", "red"]),
        ({"options": []}, "4 2", ["4 2"]),
    ],
)
def test_a_question_takes_numbers_labels_or_words(
    crystaler: Crystaler, fields: dict[str, Any], answer: str, labels: list[str]
) -> None:
    crystaler.script([question(**fields), answered(Color=labels)])
    code, shown, _ = ask(crystaler, answer)
    assert code == 0, shown
    assert "    | Which?" in shown
    assert ("  1. red\n  2. blue  cold\n" in shown) is ("options" not in fields)


@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        *(({"custom": False}, answer) for answer in ("green", "7", "0", "-1", "\u00b2")),
        *(({"custom": custom}, "1 2") for custom in (False,)),
        ({"multiple": True, "custom": False}, "1 3"),
        ({"multiple": True, "custom": False}, "red, green"),
    ],
)
def test_where_only_the_options_are_answers_it_is_asked_again(
    crystaler: Crystaler, fields: dict[str, Any], answer: str
) -> None:
    crystaler.script([question(**fields), answered(Color=["red"])])
    code, shown, _ = ask(crystaler, answer, "1")
    assert code == 0, shown


def test_two_numbers_for_a_question_of_one_choice_are_not_taken_for_words(crystaler: Crystaler) -> None:
    crystaler.script([question(), answered(Color=["blue"])])
    assert ask(crystaler, "1 2", "2")[0] == 0


@pytest.mark.parametrize("typed", ["\n", "  \n", "\x1b\n", "\x04"])
def test_a_question_can_be_dismissed(crystaler: Crystaler, typed: str) -> None:
    crystaler.script([question(), DONE])
    terminal = LineTerminal(crystaler)
    terminal.until_prompt()
    terminal.type(typed)
    assert terminal.end()[0] == 4


SEVERAL = {
    "toolCalls": [
        {"name": "question", "arguments": {"questions": [QUESTION, {"header": "Why", "text": "And why?"}]}},
    ]
}


@pytest.mark.parametrize(
    ("answers", "exit_code", "labels"),
    [
        (("1", "so", ""), 0, {"Color": ["red"], "Why": ["so"]}),
        (("1", "so", "yes"), 0, {"Color": ["red"], "Why": ["so"]}),
        (("1", "so", "n", "2", "else", "maybe", "y"), 0, {"Color": ["blue"], "Why": ["else"]}),
        (("1", "so", "d"), 4, None),
        (("1", ""), 4, None),
    ],
)
def test_several_questions_are_confirmed(
    crystaler: Crystaler, answers: tuple[str, ...], exit_code: int, labels: dict[str, list[str]] | None
) -> None:
    crystaler.script([SEVERAL, DONE if labels is None else answered(**labels)])
    code, shown, _ = ask(crystaler, *answers)
    assert code == exit_code, shown
    assert "[question 2 of 2] Why" in shown


def test_without_a_terminal_it_is_refused_before_anything_is_read(crystaler: Crystaler) -> None:
    crystaler.script([WRITE, DONE])
    result = crystaler.command("run", "--ask", "-p", "scripted", stdin=b"write a file\n")
    assert result.exit_code == 1
    assert "--ask needs a terminal on stdin" in result.stderr
    assert "give the task as an argument" in result.stderr
    assert result.stderr.count("\n") == 1


def test_it_cannot_be_combined_with_json(crystaler: Crystaler) -> None:
    crystaler.script([WRITE, DONE])
    code, shown, stdout = LineTerminal(crystaler, "--format", "json").end()
    assert code == 1
    assert "--ask cannot be combined with --format json" in shown
    assert [json.loads(line)["type"] for line in stdout.splitlines()] == ["stopped", "session"]


EDIT = {"path": "a.txt", "old_string": "two", "new_string": "2\x1b[2J\u202e"}


@pytest.mark.parametrize(
    ("call", "lines"),
    [
        (
            {"name": "edit", "arguments": EDIT},
            ["--- a.txt", "+++ a.txt", "@@ -1,3 +1,3 @@", " one\\x1b[31m", "-two", "+2\\x1b[2J\\u202e", " three"],
        ),
        ({"name": "write", "arguments": {"path": "a.txt", "content": "one\x1b[31m\nthree\n"}}, ["-two"]),
        (
            {"name": "write", "arguments": {"path": "new.txt", "content": "x\n"}},
            ["It creates new.txt with 1 line, 2 bytes."],
        ),
        (
            {"name": "write", "arguments": {"path": ".git/x", "content": "x\n"}},
            ["No diff is shown: .git/x lies under .git or"],
        ),
    ],
)
def test_what_would_change_is_shown_and_steers_nothing(
    crystaler: Crystaler, call: dict[str, object], lines: list[str]
) -> None:
    crystaler.makefile("a.txt", "one\x1b[31m\ntwo\nthree\n")
    crystaler.script([{"toolCalls": [{"name": "read", "arguments": {"path": "a.txt"}}, call]}, DONE])
    terminal = LineTerminal(crystaler, environ={"TERM": "xterm", "NO_COLOR": ""}, size=(120, 50))
    shown = terminal.until_prompt()
    assert steering(shown) == []
    change = COLOURS.sub("", shown).partition("  what would change:\n")[2]
    assert [line for line in lines if f"    | {line}" not in change] == []
    terminal.type("n\n")
    assert terminal.end()[0] == 4
