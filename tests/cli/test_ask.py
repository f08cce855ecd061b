"""``--ask`` on a real terminal: what is shown, and what each answer does."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
from typing import Any

import pytest

from crystal.testing.crystaler import Crystaler

WRITE = {"toolCalls": [{"name": "write", "arguments": {"path": "a.txt", "content": "one\x1b[2Jline"}}]}
GUARDED = {"toolCalls": [{"name": "write", "arguments": {"path": ".git/a.txt", "content": "x"}}]}
DONE = {"text": "Done."}


def ask(crystaler: Crystaler, *answers: str) -> tuple[int, str, str]:
    """Run with ``--ask`` on a terminal and type each answer when a prompt stands there.

    :return: the exit code, what stood on the terminal, and stdout.
    """
    assert crystaler._script is not None
    control, terminal = pty.openpty()
    try:
        process = subprocess.Popen(
            [
                *(sys.executable, "-P", "-c", "from crystal.cli.main import main; main()", "run", "do it", "--ask"),
                *("--script", str(crystaler._script), "--home", str(crystaler.home), "-w", str(crystaler.workspace)),
            ],
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=terminal,
            env=crystaler.environ,
        )
    finally:
        os.close(terminal)
    waiting = list(answers)
    shown = b""
    with contextlib.suppress(OSError):  # the other end of the terminal is closed when the process has ended
        while piece := os.read(control, 4096):
            shown += piece
            if waiting and shown.endswith((b"[n]o: ", b"dismisses: ")):
                os.write(control, waiting.pop(0).encode() + b"\n")
    stdout, _ = process.communicate(timeout=30)
    os.close(control)
    assert waiting == []
    return process.returncode, shown.decode(), stdout.decode()


@pytest.mark.parametrize(
    ("answer", "exit_code", "granted"),
    [
        ("y", 0, False),
        ("Y", 0, False),
        ("s", 0, False),
        ("a", 0, True),
        ("n", 4, False),
        ("", 4, False),
        ("what", 4, False),
    ],
)
def test_the_answer_decides(crystaler: Crystaler, answer: str, exit_code: int, granted: bool) -> None:
    crystaler.script([WRITE, DONE])
    code, shown, _ = ask(crystaler, answer)
    assert code == exit_code
    assert (crystaler.workspace / "a.txt").exists() is (exit_code == 0)
    assert (crystaler.home / "permissions.json").exists() is granted
    assert "[approval] write: Write + Workspace" in shown
    assert "one\\x1b[2Jline" in shown
    assert "\x1b[2J" not in shown


@pytest.mark.parametrize("answer", ["s", "a"])
def test_only_what_is_offered_can_be_chosen(crystaler: Crystaler, answer: str) -> None:
    crystaler.makefile(".git/config", "[core]\n")
    crystaler.script([GUARDED, DONE])
    code, shown, _ = ask(crystaler, answer)
    assert code == 4
    assert "[s]ession" not in shown
    assert "[a]lways" not in shown
    assert not (crystaler.workspace / ".git/a.txt").exists()


def question(**fields: Any) -> dict[str, Any]:
    """A round that asks one question with two options."""
    options = [{"label": "red"}, {"label": "blue", "description": "cold"}]
    asked = {"header": "Color", "text": "Which?", "options": options, **fields}
    return {"toolCalls": [{"name": "question", "arguments": {"questions": [asked]}}]}


@pytest.mark.parametrize(
    ("fields", "answer", "labels"),
    [
        ({}, "2", ["blue"]),
        ({}, "green, please", ["green, please"]),
        ({"multiple": True}, "1, 2", ["red", "blue"]),
        ({"multiple": True}, "2 1", ["blue", "red"]),
    ],
)
def test_a_question_takes_numbers_or_words(
    crystaler: Crystaler, fields: dict[str, Any], answer: str, labels: list[str]
) -> None:
    crystaler.script([question(**fields), {**DONE, "expect": {"lastResult": json.dumps({"Color": labels})}}])
    code, shown, _ = ask(crystaler, answer)
    assert code == 0, shown
    for words in ("[question] Which?", "1. red", "2. blue  cold"):
        assert words in shown


@pytest.mark.parametrize("answer", ["green", "7", "0"])
def test_where_only_the_options_are_answers_it_is_asked_again(crystaler: Crystaler, answer: str) -> None:
    crystaler.script([question(custom=False), {**DONE, "expect": {"lastResult": json.dumps({"Color": ["red"]})}}])
    code, shown, _ = ask(crystaler, answer, "1")
    assert code == 0, shown


def test_an_empty_answer_dismisses(crystaler: Crystaler) -> None:
    crystaler.script([question(), DONE])
    code, _, _ = ask(crystaler, "")
    assert code == 4


def test_two_calls_are_asked_about_one_after_the_other(crystaler: Crystaler) -> None:
    both = {"toolCalls": [*WRITE["toolCalls"], {"name": "write", "arguments": {"path": "b.txt", "content": "x"}}]}
    crystaler.script([both, DONE])
    code, shown, _ = ask(crystaler, "n", "y")
    assert code == 4
    assert [path.name for path in crystaler.workspace.iterdir()] == ["b.txt"]
    assert shown.count("[approval]") == 2


def test_the_whole_command_is_shown(crystaler: Crystaler) -> None:
    command = f"echo {'a' * 600} ; curl http://example.invalid/x"
    crystaler.script([{"toolCalls": [{"name": "bash", "arguments": {"command": command}}]}, DONE])
    code, shown, _ = ask(crystaler, "n")
    assert code == 4
    assert "curl http://example.invalid/x" in shown.replace("\r\n", "")


def test_an_interrupt_at_the_prompt_needs_no_enter(crystaler: Crystaler) -> None:
    crystaler.script([WRITE, DONE])
    control, terminal = pty.openpty()
    process = subprocess.Popen(
        [
            *(sys.executable, "-P", "-c", "from crystal.cli.main import main; main()", "run", "do it", "--ask"),
            *("--script", str(crystaler._script), "--home", str(crystaler.home), "-w", str(crystaler.workspace)),
        ],
        stdin=terminal,
        stdout=subprocess.DEVNULL,
        stderr=terminal,
        env=crystaler.environ,
    )
    os.close(terminal)
    shown = b""
    while not shown.endswith(b"[n]o: "):
        shown += os.read(control, 4096)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 5
    os.close(control)
    assert not (crystaler.workspace / "a.txt").exists()
