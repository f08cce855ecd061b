"""What the command line shows of saved sessions: their list, one in full, and how a call was judged."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from crystal.cli.app import run_command_line
from crystal.testing.crystaler import Crystaler
from crystal.testing.result import RunResult

ROUNDS: list[dict[str, Any]] = [
    {
        "reasoning": "Hm.",
        "text": "Looking \x1b[31mhere.",
        "toolCalls": [
            {"name": "read", "arguments": {"path": "a.txt"}, "id": "c1"},
            {"name": "write", "arguments": {"path": "b.txt", "content": "x"}, "id": "c2"},
            {"name": "nothing", "arguments": {}, "id": "c3"},
        ],
    },
    {"text": "Done."},
]


@pytest.fixture
def ran(crystaler: Crystaler) -> RunResult:
    """A run with a call that passed, one that was denied and one that was refused."""
    crystaler.makefile("a.txt", "hello\n")
    crystaler.script(ROUNDS)
    return crystaler.run("look\nclosely")


def show(crystaler: Crystaler, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a command in this process and return what it printed, nothing of it able to steer a terminal."""
    place = ["--home", str(crystaler.home)]
    assert run_command_line([*arguments, *place]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    return shown


def here(crystaler: Crystaler) -> Sequence[str]:
    return "-w", str(crystaler.workspace)


def test_the_list_shows_the_sessions_of_the_workspace_latest_first(
    crystaler: Crystaler, ran: RunResult, capsys: pytest.CaptureFixture[str]
) -> None:
    crystaler.script([{"text": "Hi."}])
    second = crystaler.run("greet")
    other = crystaler.workspace.parent / "other"
    other.mkdir()
    elsewhere = crystaler.run("else", "-w", str(other))
    listed = json.loads(show(crystaler, capsys, "sessions", "list", *here(crystaler), "--format", "json"))
    assert [row["id"] for row in listed] == [second.session_id, ran.session_id]
    assert [(row["title"], row["turns"]) for row in listed] == [("greet", "1"), ("look", "1")]
    text = show(crystaler, capsys, "sessions", "list", "--all", "--format", "text")
    assert [line.split()[0] for line in text.splitlines()[1:]] == [
        elsewhere.session_id,
        second.session_id,
        ran.session_id,
    ]
    assert "greet" in show(crystaler, capsys, "sessions", "list", *here(crystaler))


def test_one_session_is_shown_in_order(
    crystaler: Crystaler, ran: RunResult, capsys: pytest.CaptureFixture[str]
) -> None:
    text = show(crystaler, capsys, "sessions", "show", ran.session_id[:12])
    marks = [line.split("]")[0] + "]" for line in text.splitlines() if line.startswith("[")]
    assert marks == [
        "[user]",
        "[thinking]",
        "[assistant]",
        "[call c1]",
        "[call c2]",
        "[call c3]",
        "[result c1]",
        "[result c2]",
        "[result c3]",
        "[assistant]",
    ]
    shown = json.loads(show(crystaler, capsys, "sessions", "show", ran.session_id, "--format", "json"))
    assert shown["id"] == ran.session_id
    kinds = [item["type"] for item in shown["items"]]
    assert kinds.count("tool_call") == kinds.count("tool_result") == 3
    assert [item["failed"] for item in shown["items"] if item["type"] == "tool_result"] == [False, True, True]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("c1", ["read", "rule      4", "approved by policy", "result    ok"]),
        ("c2", ["write", "rule      11", "denied by nobody", "Write + Workspace", "result    failed"]),
        ("c3", ["nothing", "decision  none", "result    failed"]),
    ],
)
def test_why_says_how_a_call_was_judged(
    crystaler: Crystaler, ran: RunResult, capsys: pytest.CaptureFixture[str], call: str, words: list[str]
) -> None:
    shown = show(crystaler, capsys, "why", call, *here(crystaler))
    assert [word for word in words if word not in shown] == []
    assert show(crystaler, capsys, "why", f"{ran.session_id}/{call}", *here(crystaler)) == shown


def test_why_names_the_hooks_that_changed_the_class(crystaler: Crystaler, capsys: pytest.CaptureFixture[str]) -> None:
    crystaler.makeplugin(
        "Acme",
        """
        from crystal import ApprovalAdvice, Risk, hookimpl

        @hookimpl
        def on_approval(call, facts):
            return ApprovalAdvice(risk=Risk.PRIVILEGED, reason="because")
        """,
    )
    crystaler.makefile("a.txt", "hello\n")
    crystaler.script(ROUNDS)
    crystaler.run("look")
    shown = show(crystaler, capsys, "why", "c1", *here(crystaler))
    for words in (
        "host      Read + Workspace",
        "class     Privileged + Workspace",
        "plugin:test/Acme: on_approval",
        "because",
    ):
        assert words in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sessions", "show", "nothing"], "nothing"),
        (["why", "c9"], "c9"),
        (["why", "nothing/c1"], "nothing"),
    ],
)
def test_what_is_not_there_is_named(
    crystaler: Crystaler, ran: RunResult, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    place = ["--home", str(crystaler.home), *(here(crystaler) if arguments[0] == "why" else ())]
    assert run_command_line([*arguments, *place]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert words in shown.err
    assert shown.err.count("\n") == 1


@pytest.mark.parametrize("arguments", [["sessions", "list"], ["sessions", "show", "x"], ["why", "c1"]])
def test_a_home_without_sessions_is_left_alone(
    crystaler: Crystaler, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert run_command_line([*arguments, "--home", str(crystaler.home)]) == 1
    assert "no saved session" in capsys.readouterr().err
    assert not crystaler.home.exists()
