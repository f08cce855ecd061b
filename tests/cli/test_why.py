"""``crystal why``: everything about how one call was judged, found by as much of its id as is unmistakable."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from crystal.cli.app import run_command_line
from crystal.engine.answers import Approve, Deny
from crystal.testing.crystaler import Crystaler
from crystal.types.approval import GrantScope
from tests.engine.runs import Operator

Why = Callable[..., tuple[int, str, str]]
HOSTILE = "x\x1b[2J\u202e\ny"


@pytest.fixture
def why(crystaler: Crystaler, capsys: pytest.CaptureFixture[str]) -> Why:
    """Run ``crystal why`` for the workspace and return exit code, stdout and stderr."""

    def run(*arguments: str, workspace: str | None = None) -> tuple[int, str, str]:
        place = ["--home", str(crystaler.home), "-w", workspace or str(crystaler.workspace)]
        code = run_command_line(["why", *arguments, *place])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


def described(why: Why, *arguments: str) -> dict[str, Any]:
    code, out, _ = why(*arguments, "--format", "json")
    assert code == 0
    value = json.loads(out)
    assert isinstance(value, dict)
    return value


def round_(*calls: tuple[str, str, dict[str, Any]]) -> dict[str, Any]:
    return {"toolCalls": [{"id": call_id, "name": name, "arguments": given} for call_id, name, given in calls]}


DONE = {"text": "Done."}
WRITE = ("w1", "write", {"path": "a.txt", "content": "x\n"})


def lines(out: str) -> dict[str, str]:
    """The labelled lines of the text."""
    return {line[2:12].strip(): line[12:] for line in out.splitlines() if line.startswith("  ")}


@pytest.mark.parametrize(
    ("answer", "approved", "answered_by", "scope", "words"),
    [
        (Approve(), True, "operator", "once", "approved by operator, once: this call alone"),
        (
            Approve(scope=GrantScope.SESSION),
            True,
            "operator",
            "session",
            "approved by operator, session: until the session ended",
        ),
        (
            Approve(scope=GrantScope.PERSISTENT),
            True,
            "operator",
            "persistent",
            "approved by operator, persistent: in this workspace until it is revoked",
        ),
        (Deny(), False, "operator", None, "denied by operator"),
        (None, False, "nobody", None, "denied by nobody"),
    ],
)
def test_who_answered_and_how_far_it_reaches(
    crystaler: Crystaler,
    why: Why,
    answer: Approve | Deny | None,
    approved: bool,
    answered_by: str,
    scope: str | None,
    words: str,
) -> None:
    crystaler.script([round_(WRITE), DONE])
    ran = crystaler.run(operator=None if answer is None else Operator(answer))
    found = lines(why("w1")[1])
    assert found["answer"] == words
    assert found["outcome"] == "ask, offered: once, session, persistent"
    assert found["session"] == f"{ran.session_id}, turn 1"
    assert found["call"] == "w1"
    value = described(why, "w1")
    assert (value["sessionID"], value["callId"], value["turn"]) == (ran.session_id, "w1", 1)
    assert value["arguments"] == {"path": "a.txt", "content": "x\n"}
    assert value["status"] == ("success" if approved else "failure")
    approval = value["approval"]
    assert (approval["approved"], approval["answeredBy"], approval["scope"]) == (approved, answered_by, scope)
    assert (approval["rule"], approval["outcome"]) == (11, "ask")


def test_the_json_has_what_the_event_of_the_run_has(crystaler: Crystaler, why: Why) -> None:
    crystaler.makefile("a.txt", "hello\n")
    crystaler.script([round_(("r1", "read", {"path": "a.txt"}), WRITE), DONE])
    ran = crystaler.run("do it", "--format", "json")
    for event in (line for line in ran.lines if line["type"] == "tool_use"):
        value = described(why, event["callId"])
        for field in ("name", "callId", "parentCallId", "arguments", "status", "sessionID"):
            assert value[field] == event[field]
        approval = value["approval"]
        for field in ("rule", "reason", "approved", "answeredBy", "scope", "changes"):
            assert approval[field] == event["approval"][field]
        for field in ("class", "hostClass"):
            assert approval[field].items() >= event["approval"][field].items()


GUARDS = """
from crystal import ApprovalAdvice, Risk, hookimpl

@hookimpl
def on_approval(call, facts):
    return ApprovalAdvice(risk=Risk.PRIVILEGED, require_prompt=True, reason="first\\x1b[2J\\nsecond")
"""


def test_each_hook_that_changed_the_class_is_named(crystaler: Crystaler, why: Why) -> None:
    crystaler.makeplugin("Acme", GUARDS)
    crystaler.makeplugin(
        "Breaks", "from crystal import hookimpl\n@hookimpl\ndef on_approval(call, facts):\n    1 / 0\n"
    )
    crystaler.makefile("a.txt", "hello\n")
    crystaler.script([round_(("r1", "read", {"path": "a.txt"})), DONE])
    crystaler.run()
    _, out, _ = why("r1")
    assert "\x1b" not in out
    hooks = [line for line in out.splitlines() if line.startswith("  hook")]
    assert [any(name in line for line in hooks) for name in ("plugin:test/Acme", "plugin:test/Breaks")] == [True, True]
    found = lines(out)
    assert found["host"].startswith("Read + Workspace")
    assert found["class"].startswith("Privileged + Workspace")
    assert "first\\x1b[2J\\nsecond" in found["class"]
    assert found["rule"].startswith("2: ")
    assert found["outcome"] == "ask, offered: once"
    assert len(described(why, "r1")["approval"]["changes"]) == len(hooks)


def test_a_call_made_by_a_tool_names_the_call_that_made_it(crystaler: Crystaler, why: Why) -> None:
    crystaler.makeplugin(
        "Acme",
        """
        from crystal import Authority, Risk, ToolContribution, ToolDefinition, hookimpl

        class Twice:
            definition = ToolDefinition(name="twice", description="d", schema={"type": "object"})
            async def invoke(self, call, context):
                return await context.call("read", {"path": "a.txt"})

        @hookimpl
        def contribute_tools():
            return [ToolContribution(name="twice", tool=Twice(), risk=Risk.READ, authority=Authority.WORKSPACE)]
        """,
    )
    crystaler.makefile("a.txt", "hello\n")
    crystaler.script([round_(("t1", "twice", {})), DONE])
    crystaler.run("do it", "--allow", "twice")
    code, _, err = why("nothing")
    assert code == 1
    child = err.rstrip(".\n").rpartition(", ")[2]
    assert lines(why(child)[1])["made by"] == "t1"
    assert described(why, child)["parentCallId"] == "t1"


def test_a_call_that_was_never_judged_says_so(crystaler: Crystaler, why: Why) -> None:
    crystaler.script([round_(("n1", "nothing", {"a": HOSTILE})), DONE])
    crystaler.run()
    _, out, _ = why("n1")
    assert lines(out)["decision"].startswith("none")
    assert "\x1b" not in out
    value = described(why, "n1")
    assert (value["approval"], value["status"], value["arguments"]) == (None, "failure", {"a": HOSTILE})


@pytest.fixture
def sessions(crystaler: Crystaler) -> list[str]:
    """Two sessions here and one elsewhere, the latest first."""
    crystaler.makefile("a.txt", "hello\n")
    other = crystaler.workspace.parent / "other"
    other.mkdir()
    made = []
    for name, options in (("call_first", ()), ("call_second", ()), ("call_third", ("-w", str(other)))):
        calls = [(f"{name}_{number}", "read", {"path": "a.txt"}) for number in (1, 2)]
        crystaler.script([round_(*calls, ("functions/x:0", "read", {"path": "a.txt"})), DONE])
        made.append(crystaler.run("do it", *options).session_id)
    return made[::-1]


@pytest.mark.parametrize(
    ("call", "session", "found"),
    [
        ("call_second_1", 1, "call_second_1"),
        ("call_s", 1, None),
        ("fun", 1, "functions/x:0"),
        ("functions/x:0", 1, "functions/x:0"),
        ("{0}/call_third_2", 0, "call_third_2"),
        ("{2}/functions/x:0", 2, "functions/x:0"),
        ("{2:.12}/functions/x", 2, "functions/x:0"),
        ("call_first_1", 1, None),
        ("{2}/call_first", 2, None),
        ("{2}/", 2, None),
        ("", 1, None),
    ],
)
def test_a_call_is_found_by_what_is_unmistakable(
    why: Why, sessions: Sequence[str], call: str, session: int, found: str | None
) -> None:
    code, out, err = why(call.format(*sessions))
    if found is not None:
        assert (code, lines(out)["call"]) == (0, found)
        assert lines(out)["session"].startswith(sessions[session])
        return
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert sessions[session] in err
    several = call in ("call_s", "{2}/call_first")
    assert ("several calls" in err) is several
    assert ("its last calls are" in err) is not several


@pytest.mark.parametrize(
    ("call", "words"),
    [("no/c1", "no session no"), ("no/\x1b[2J", "no session no"), ("\x1b[2J\nx", "no call \\x1b[2J\\nx")],
)
def test_what_is_not_there_is_one_safe_sentence(why: Why, sessions: Sequence[str], call: str, words: str) -> None:
    code, out, err = why(call)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert words in err
    assert "\x1b" not in err


def test_a_session_that_is_named_needs_no_workspace(crystaler: Crystaler, why: Why, sessions: Sequence[str]) -> None:
    other = crystaler.workspace.parent / "other"
    shutil.rmtree(other)
    assert why(f"{sessions[0]}/call_third_1", workspace=str(other))[0] == 0
    # Nor has a workspace to be there still.
    assert lines(why("call_third_1", workspace=str(other))[1])["session"].startswith(sessions[0])
    code, _, err = why("call_third_1", workspace="/nowhere")
    assert code == 1
    assert "no session of /nowhere" in err


def test_no_secret_is_shown(crystaler: Crystaler, why: Why) -> None:
    secret = "sk-0123456789abcdef"
    crystaler.environ["OPENAI_API_KEY"] = secret
    crystaler.makeplugin("Acme", GUARDS.replace("first", f"first {secret} "))
    crystaler.script([round_(("w1", "write", {"path": f"{secret}.txt", "content": secret})), DONE])
    crystaler.run()
    for form in ("text", "json"):
        out = why("w1", "--format", form)[1]
        assert secret not in out
        assert "[redacted:" in out
