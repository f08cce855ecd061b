"""Grants of tools that say what a grant is for, and previews, through the real engine."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from crystal.engine.answers import Approve, Deny
from crystal.testing.crystaler import Crystaler
from crystal.types.approval import GrantScope
from crystal.types.events import ApprovalAsked
from tests.engine.runs import DONE, Operator, calls, turn_end, write

ONCE, SESSION, PERSISTENT = (Approve(scope=scope) for scope in GrantScope)
KEY = "sk-preview-0123456789"
STEPS = """
    from crystal import hookimpl
    from crystal.types.tools import Risk, ToolContribution, ToolDefinition, ToolOutput

    SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}

    class Steps:
        definition = ToolDefinition(name="steps", description="Take steps.", schema=SCHEMA)

        async def invoke(self, call, context):
            with (context.workspace / "log").open("a") as log:
                log.write(call.arguments["command"] + ";")
            return ToolOutput(text="taken")

    def parts(call):
        __PARTS__

    def preview(call, context):
        __PREVIEW__

    @hookimpl
    def contribute_tools():
        return [ToolContribution(name="steps", tool=Steps(), risk=Risk.WRITE, grant_parts=parts, preview=preview)]
    """
SPLIT = 'return tuple(part.strip() for part in call.arguments["command"].split("&&"))'


def make_steps(crystaler: Crystaler, parts: str = SPLIT, preview: str = 'return ""') -> None:
    crystaler.makeplugin("Acme", STEPS.replace("__PARTS__", parts).replace("__PREVIEW__", preview))


def steps(command: str) -> tuple[str, dict[str, Any]]:
    return "steps", {"command": command}


def log_of(crystaler: Crystaler) -> str:
    log = crystaler.workspace / "log"
    return log.read_text() if log.exists() else ""


def stored(crystaler: Crystaler) -> list[dict[str, str]]:
    file = crystaler.home / "permissions.json"
    return json.loads(file.read_text())["grants"] if file.exists() else []


def asked_by(operator: Operator) -> list[ApprovalAsked]:
    return [event for event in operator.asked if isinstance(event, ApprovalAsked)]


def test_a_persistent_grant_is_one_entry_a_part_and_covers_calls_made_of_them(crystaler: Crystaler) -> None:
    make_steps(crystaler)
    crystaler.script([calls(steps("a && b")), DONE])
    assert crystaler.run("do", operator=Operator(PERSISTENT)).exit_code == 0
    assert [entry["command"] for entry in stored(crystaler)] == ["a", "b"]
    assert {(entry["tool"], entry["origin"]) for entry in stored(crystaler)} == {("steps", "plugin:test/Acme")}
    crystaler.script([calls(steps("b")), calls(steps("b && a")), DONE])
    again = crystaler.run("do")
    assert again.exit_code == 0
    assert [call.approval and call.approval["rule"] for call in again.calls] == [6, 6]
    crystaler.script([calls(steps("a && c")), DONE])
    assert crystaler.run("do").exit_code == 4
    assert log_of(crystaler) == "a && b;b;b && a;"


def test_a_part_that_was_granted_before_is_not_written_twice(crystaler: Crystaler) -> None:
    make_steps(crystaler)
    crystaler.script([calls(steps("a")), calls(steps("a && b")), DONE])
    assert crystaler.run("do", operator=Operator(PERSISTENT)).exit_code == 0
    assert [entry["command"] for entry in stored(crystaler)] == ["a", "b"]


@pytest.mark.parametrize(
    ("parts", "noted"),
    [
        ("return None", ""),
        ("return ()", ""),
        ('raise ValueError("private words")', "ValueError"),
        ("raise SystemExit(1)", "SystemExit"),
        ('return "a"', "str"),
        ("return (1,)", "tuple"),
    ],
)
def test_what_cannot_be_granted_is_offered_once_only_and_the_turn_goes_on(
    crystaler: Crystaler, parts: str, noted: str
) -> None:
    make_steps(crystaler, parts)
    crystaler.script([calls(steps("a")), calls(steps("a")), DONE])
    operator = Operator(ONCE)
    result = crystaler.run("do", operator=operator)
    assert result.exit_code == 0
    assert [event.offered for event in asked_by(operator)] == [(GrantScope.ONCE,)] * 2
    assert ("grant_parts" in result.stderr) is bool(noted)
    assert noted in result.stderr
    assert "private words" not in result.stderr
    refused = Operator(SESSION)
    assert crystaler.run("do", operator=refused).exit_code == 4
    assert log_of(crystaler) == "a;a;"


@pytest.mark.parametrize(
    ("allow", "command", "ran"),
    [
        ("steps:a", "a", True),
        ("steps:a && b", "b && a", True),
        ("steps:a", "a && b", False),
        ("steps", "a && b", True),
    ],
)
def test_allow_covers_a_call_whose_parts_are_among_those_of_its_text(
    crystaler: Crystaler, allow: str, command: str, ran: bool
) -> None:
    make_steps(crystaler)
    crystaler.script([calls(steps(command)), DONE])
    assert crystaler.run("do", "--allow", allow).exit_code == (0 if ran else 4)
    assert log_of(crystaler) == (f"{command};" if ran else "")


@pytest.mark.parametrize(
    ("allow", "parts"),
    [("write:a.txt", SPLIT), ("steps:", SPLIT), ("steps:a", "return None"), ("steps:a", "raise ValueError")],
)
def test_an_allow_that_can_cover_nothing_is_refused_before_anything_starts(
    crystaler: Crystaler, allow: str, parts: str
) -> None:
    make_steps(crystaler, parts)
    crystaler.script([DONE])
    result = crystaler.run("do", "--allow", allow)
    assert result.exit_code == 1
    assert f"--allow {allow.partition(':')[0]}" in result.error
    assert len(result.stderr.strip().splitlines()) == 1
    assert not (crystaler.home / "sessions.db").exists()


def test_what_holds_a_key_is_never_offered_for_ever_nor_written_down(crystaler: Crystaler) -> None:
    crystaler.environ["OPENAI_API_KEY"] = KEY
    make_steps(crystaler, f'return ("curl -H {KEY}",)')
    crystaler.script([calls(steps("a")), DONE])
    operator = Operator(SESSION)
    assert crystaler.run("do", operator=operator).exit_code == 0
    assert asked_by(operator)[0].offered == (GrantScope.ONCE, GrantScope.SESSION)
    assert crystaler.run("do", operator=Operator(PERSISTENT)).exit_code == 4
    assert stored(crystaler) == []


def test_a_folder_that_no_file_can_name_takes_no_grant_for_ever_and_harms_no_other(crystaler: Crystaler) -> None:
    folder = os.fsdecode(os.fsencode(crystaler.workspace) + b"/\xff")
    os.mkdir(folder)
    crystaler.script([calls(write("a.txt", "x")), DONE])
    operator = Operator(SESSION)
    assert crystaler.run("do", "-w", folder, operator=operator).exit_code == 0
    assert asked_by(operator)[0].offered == (GrantScope.ONCE, GrantScope.SESSION)
    assert crystaler.run("do", operator=Operator(PERSISTENT)).exit_code == 0
    assert [grant["workspace"] for grant in stored(crystaler)] == [str(crystaler.workspace)]


def test_the_card_shows_the_diff_that_a_file_tool_would_make(crystaler: Crystaler) -> None:
    crystaler.makefile("a.txt", "old\n")
    crystaler.script([calls(write("a.txt", "new\n")), DONE])
    operator = Operator(Deny())
    crystaler.run("do", operator=operator)
    [asked] = asked_by(operator)
    assert {"-old", "+new"} <= set(asked.preview.splitlines())
    assert (crystaler.workspace / "a.txt").read_text() == "old\n"


def test_a_preview_reads_nothing_that_was_not_approved(crystaler: Crystaler) -> None:
    outside = crystaler.workspace.parent / "outside.txt"
    outside.write_text("private\n")
    crystaler.script([calls(write("../outside.txt", "new\n")), DONE])
    operator = Operator(Deny())
    crystaler.run("do", operator=operator)
    [asked] = asked_by(operator)
    assert "private" not in asked.preview


@pytest.mark.parametrize(
    ("preview", "noted"),
    [
        ('raise ValueError("private words")', "ValueError"),
        ("raise SystemExit(1)", "SystemExit"),
        ("return None", "NoneType"),
        ("return b'x'", "bytes"),
        ("import threading; threading.Event().wait()", "longer than 3 s"),
    ],
)
def test_a_preview_that_fails_is_empty_and_noted(crystaler: Crystaler, preview: str, noted: str) -> None:
    make_steps(crystaler, preview=preview)
    crystaler.script([calls(steps("a")), DONE])
    operator = Operator(ONCE)
    result = crystaler.run("do", operator=operator)
    assert result.exit_code == 0
    assert asked_by(operator)[0].preview == ""
    assert "preview" in result.stderr
    assert noted in result.stderr
    assert "private words" not in result.stderr


def test_a_preview_is_redacted_before_it_is_cut_and_says_that_it_was(crystaler: Crystaler) -> None:
    crystaler.environ["OPENAI_API_KEY"] = KEY
    make_steps(crystaler, preview=f'return "x" * 99_995 + "{KEY}" + "y" * 50')
    crystaler.script([calls(steps("a")), DONE])
    operator = Operator(ONCE)
    crystaler.run("do", operator=operator)
    [asked] = asked_by(operator)
    shown, _, said = asked.preview.rpartition("\n")
    assert len(shown) == 100_000
    assert "sk-p" not in asked.preview
    assert "100,000" in said


def test_only_a_call_that_is_asked_about_is_previewed(crystaler: Crystaler) -> None:
    make_steps(crystaler, preview='(context.workspace / "seen").touch()')
    crystaler.script([calls(steps("a")), DONE])
    result = crystaler.run("do", "--approval", "full")
    assert result.exit_code == 0
    assert turn_end(result).tool_calls == 1
    assert not (crystaler.workspace / "seen").exists()
