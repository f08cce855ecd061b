"""Approval through the real engine: who is asked, what a yes covers, and what happens without one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from crystal.engine.answers import Answer, Approve, Deny, Dismiss, Reply
from crystal.testing.crystaler import Crystaler
from crystal.types.approval import GrantScope
from crystal.types.capabilities import QuestionOption
from crystal.types.events import ApprovalAsked, QuestionAsked, RequestAnswered
from tests.engine.runs import DONE, Operator, assert_requests_are_valid, bash, calls, of, read, turn_end, write

ONCE, SESSION, PERSISTENT = (Approve(scope=scope) for scope in GrantScope)
QUESTIONS = {
    "questions": [
        {"header": "Color", "text": "Which?", "options": [{"label": "red"}, {"label": "blue", "description": "cold"}]},
        {"header": "Why", "text": "And why?"},
    ]
}


def names(crystaler: Crystaler) -> list[str]:
    return sorted(path.name for path in crystaler.workspace.iterdir())


def test_without_an_operator_a_write_is_denied_and_the_rest_goes_on(crystaler: Crystaler) -> None:
    crystaler.makefile("a.txt", "hello\n")
    crystaler.script([calls(write("b.txt"), read("a.txt"), bash("touch c.txt")), DONE])
    result = crystaler.run("do", "--format", "json")
    assert result.exit_code == 4
    assert [call.failed for call in result.calls] == [True, False, True]
    assert "nobody can be asked" in result.calls[0].output
    assert names(crystaler) == ["a.txt"]
    assert turn_end(result).denied == 2
    assert_requests_are_valid(result)
    assert "2 prompt(s) were denied" in result.stderr
    assert result.lines[-2]["type"] == "stopped"
    assert (result.lines[-2]["reason"], result.lines[-1]["exitCode"]) == ("denied", 4)
    [written, *_] = [line for line in result.lines if line["type"] == "tool_use"]
    assert (written["approval"]["rule"], written["approval"]["answeredBy"]) == (11, "nobody")


def test_a_failure_outranks_a_denial(crystaler: Crystaler) -> None:
    crystaler.script([calls(write("b.txt")), {"error": {"status": 401}}])
    assert crystaler.run().exit_code == 2


@pytest.mark.parametrize(
    ("answer", "ran", "by", "scope"),
    [
        (ONCE, True, "operator", "once"),
        (SESSION, True, "operator", "session"),
        (PERSISTENT, True, "operator", "persistent"),
        (Deny(), False, "operator", None),
        (Deny(by="nobody"), False, "nobody", None),
        (Dismiss(), False, "operator", None),
        (Reply(labels=(("yes",),)), False, "operator", None),
    ],
)
def test_the_operators_answer_decides(
    crystaler: Crystaler, answer: Answer, ran: bool, by: str, scope: str | None
) -> None:
    crystaler.script([calls(write("a.txt")), DONE])
    result = crystaler.run("do", "--format", "json", operator=Operator(answer))
    assert result.exit_code == (0 if ran else 4)
    assert names(crystaler) == (["a.txt"] if ran else [])
    [line] = [line for line in result.lines if line["type"] == "tool_use"]
    approval = line["approval"]
    assert (approval["approved"], approval["answeredBy"], approval["scope"]) == (ran, by, scope)
    [answered] = of(result, RequestAnswered)
    assert answered.answer == (scope or "deny")


def test_the_card_says_what_would_run(crystaler: Crystaler) -> None:
    crystaler.script([calls(write("a.txt", "text")), DONE])
    operator = Operator(Deny())
    crystaler.run("do", operator=operator)
    [asked] = operator.asked
    assert isinstance(asked, ApprovalAsked)
    assert (asked.name, dict(asked.arguments)) == ("write", {"path": "a.txt", "content": "text"})
    assert asked.final.label == "Write + Workspace"
    assert asked.offered == tuple(GrantScope)
    assert "a.txt" in asked.final.summary


@pytest.mark.parametrize(("answer", "asked"), [(ONCE, 2), (SESSION, 1), (PERSISTENT, 1)])
def test_a_session_grant_covers_the_second_equal_call(crystaler: Crystaler, answer: Approve, asked: int) -> None:
    crystaler.script([calls(bash("echo x >> log")), calls(bash("echo x >> log")), DONE])
    operator = Operator(answer)
    result = crystaler.run("do", operator=operator)
    assert result.exit_code == 0
    assert len(operator.asked) == asked
    assert (crystaler.workspace / "log").read_text() == "x\nx\n"
    assert [call.approval and call.approval["rule"] for call in result.calls] == [11, 11 if asked == 2 else 6]


def test_a_grant_for_one_command_covers_no_other(crystaler: Crystaler) -> None:
    crystaler.script([calls(bash("echo a > a")), calls(bash("echo a > a; echo b > b")), DONE])
    result = crystaler.run("do", operator=Operator(SESSION, Deny()))
    assert result.exit_code == 4
    assert names(crystaler) == ["a"]


def test_a_persistent_grant_is_written_and_honoured_in_the_next_run_of_this_workspace(crystaler: Crystaler) -> None:
    crystaler.script([calls(bash("touch a.txt")), DONE])
    assert crystaler.run("do", operator=Operator(PERSISTENT)).exit_code == 0
    stored = json.loads((crystaler.home / "permissions.json").read_text())
    assert stored["grants"] == [
        {
            "workspace": str(crystaler.workspace.resolve()),
            "origin": "builtin:shell",
            "tool": "bash",
            "command": "touch a.txt",
        }
    ]
    (crystaler.workspace / "a.txt").unlink()
    result = crystaler.run("do")
    assert result.exit_code == 0
    assert result.calls[0].approval is not None
    assert result.calls[0].approval["rule"] == 6
    other = crystaler.workspace.parent / "other"
    other.mkdir()
    assert crystaler.run("do", "-w", str(other)).exit_code == 4
    assert list(other.iterdir()) == []


@pytest.mark.parametrize("answer", [ONCE, SESSION])
def test_lesser_grants_are_gone_in_the_next_run(crystaler: Crystaler, answer: Approve) -> None:
    crystaler.script([calls(bash("touch a.txt")), DONE])
    first = crystaler.run("do", operator=Operator(answer))
    assert not (crystaler.home / "permissions.json").exists()
    assert crystaler.run("again", "-r", first.session_id).exit_code == 4


@pytest.mark.parametrize("answer", [SESSION, PERSISTENT])
def test_a_scope_that_was_not_offered_lets_nothing_run(crystaler: Crystaler, answer: Approve) -> None:
    crystaler.makefile(".git/config", "[core]\n")
    crystaler.script([calls(write(".git/hooks/pre-commit", "x")), DONE])
    operator = Operator(answer)
    result = crystaler.run("do", operator=operator)
    [asked] = operator.asked
    assert isinstance(asked, ApprovalAsked)
    assert asked.offered == (GrantScope.ONCE,)
    assert result.exit_code == 4
    assert not (crystaler.workspace / ".git/hooks").exists()
    assert not (crystaler.home / "permissions.json").exists()


def test_a_grant_does_not_cover_a_call_that_was_raised(crystaler: Crystaler) -> None:
    crystaler.makeplugin(
        "Acme",
        """
        from crystal import ApprovalAdvice, Risk, hookimpl

        @hookimpl
        def on_approval(call, facts):
            return ApprovalAdvice(risk=Risk.PRIVILEGED) if call.arguments["path"] == "b.txt" else None
        """,
    )
    crystaler.script([calls(write("a.txt"), write("b.txt")), DONE])
    operator = Operator(SESSION, Deny())
    assert crystaler.run("do", operator=operator).exit_code == 4
    assert names(crystaler) == ["a.txt"]
    [_, raised] = operator.asked
    assert isinstance(raised, ApprovalAsked)
    assert (raised.host.label, raised.final.label) == ("Write + Workspace", "Privileged + Workspace")


@pytest.mark.parametrize(
    ("options", "call", "ran"),
    [
        (["--approval", "full"], bash("touch x"), True),
        (["--approval", "edit"], write("x"), True),
        (["--approval", "edit"], bash("touch x"), False),
        (["--allow", "bash:touch x"], bash("touch x"), True),
        (["--allow", "bash:touch x"], bash(" touch x\n"), True),
        (["--allow", "bash:touch x"], bash("touch x y"), False),
        (["--allow", "bash:touch x"], bash("touch x; touch y"), False),
        (["--allow", "bash"], bash("touch x"), True),
        (["--allow", "write", "--allow", "bash:touch x"], bash("touch x"), True),
        (["--allow", "write"], bash("touch x"), False),
        (["--allow", "write"], write("x"), True),
        (["--allow", "write"], write("../x"), False),
        (["--allow", "write"], write(".git/x"), False),
    ],
)
def test_modes_and_allow_let_their_calls_pass(
    crystaler: Crystaler, options: list[str], call: tuple[str, dict[str, Any]], ran: bool
) -> None:
    crystaler.script([calls(call), DONE])
    result = crystaler.run("do", *options)
    assert result.exit_code == (0 if ran else 4)
    assert names(crystaler) == (["x"] if ran else [])
    assert not (crystaler.workspace.parent / "x").exists()


def test_allow_covers_a_tool_that_uses_the_network(crystaler: Crystaler) -> None:
    crystaler.makeplugin(
        "Acme",
        """
        import crystal
        from crystal import Authority, Risk, hookimpl

        @crystal.tool(risk=Risk.WRITE, authority=Authority.NETWORK)
        def fetch() -> str:
            'Fetch it.'
            return "fetched"

        @hookimpl
        def contribute_tools():
            return [fetch]
        """,
    )
    crystaler.script([calls(("fetch", {})), DONE])
    assert crystaler.run("do", "--approval", "full").exit_code == 4
    allowed = crystaler.run("do", "--allow", "fetch")
    assert allowed.exit_code == 0
    assert allowed.calls[0].approval is not None
    assert allowed.calls[0].approval["rule"] == 9


def test_questions_are_answered_with_the_labels_chosen(crystaler: Crystaler) -> None:
    crystaler.script([calls(("question", QUESTIONS)), DONE])
    operator = Operator(Reply(labels=(("blue",), ("because",))))
    result = crystaler.run("do", operator=operator)
    assert result.exit_code == 0
    [asked] = operator.asked
    assert isinstance(asked, QuestionAsked)
    assert asked.questions[0].options[1] == QuestionOption(label="blue", description="cold")
    assert json.loads(result.calls[0].output) == {"Color": ["blue"], "Why": ["because"]}


@pytest.mark.parametrize("answer", [None, Dismiss(), Deny(), Approve(), Reply(labels=()), Reply(labels=(("blue",),))])
def test_dismissed_questions_are_a_failed_result_and_exit_4(crystaler: Crystaler, answer: Answer | None) -> None:
    crystaler.script([calls(("question", QUESTIONS)), DONE])
    operator = None if answer is None else Operator(answer)
    result = crystaler.run("do", operator=operator)
    assert result.exit_code == 4
    assert "dismissed" in result.calls[0].output
    assert turn_end(result).denied == 1
    assert_requests_are_valid(result)
