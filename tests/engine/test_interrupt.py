"""An interrupt ends a turn promptly and leaves a session that goes on."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from typing import Any

import pytest

from crystal.engine.answers import Approve, Reply
from crystal.engine.session import Session
from crystal.engine.transcript import INTERRUPTED
from crystal.testing.crystaler import Crystaler
from crystal.testing.result import RunResult
from crystal.types.events import (
    Event,
    StepFinished,
    StepStarted,
    TextCommitted,
    TextStreamed,
    ToolCallFinished,
    ToolCallStarted,
    ToolProgressed,
    TurnFinished,
)
from crystal.types.items import AssistantItem
from crystal.types.session import StopReason
from tests.engine.runs import DONE, Operator, assert_requests_are_valid, bash, calls, of, results_of, turn_end, write


def raising(number: signal.Signals, on: type[Any], times: int = 1) -> Callable[[Event], None]:
    """A listener that sends this process a signal when it hears the first event of a kind."""
    heard: list[Event] = []

    def listen(event: Event) -> None:
        if isinstance(event, on) and len(heard) < times:
            heard.append(event)
            signal.raise_signal(number)

    return listen


def is_gone(pid: int) -> bool:
    """Whether a process that may be no child of ours has ended; its end is waited for, its reaping is not."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], 10)[0])
    finally:
        os.close(descriptor)


def assert_interrupted(result: RunResult) -> None:
    assert result.exit_code == 5
    assert turn_end(result).stop_reason is StopReason.INTERRUPTED
    assert "interrupted" in result.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_stream(crystaler: Crystaler, number: signal.Signals) -> None:
    crystaler.script([{"text": "one two three", "chunk": 4, "delayMs": 20}, DONE])
    result = crystaler.run("do", "--format", "json", listener=raising(number, TextStreamed))
    assert_interrupted(result)
    assert of(result, TextCommitted) == []
    assert len(of(result, TextStreamed)) == 1
    stopped, closed = result.lines[-2:]
    assert (stopped["type"], stopped["reason"], stopped["exitCode"]) == ("stopped", "interrupted", 5)
    assert (closed["state"], closed["exitCode"]) == ("closed", 5)
    assert result.session_id in closed["resume"]
    crystaler.script([DONE])
    resumed = crystaler.run("go on", "-r", result.session_id)
    assert resumed.exit_code == 0
    assert not any(isinstance(item, AssistantItem) for item in resumed.requests[0].items)


def test_a_second_signal_changes_nothing(crystaler: Crystaler) -> None:
    crystaler.script([{"text": "one two three", "chunk": 4, "delayMs": 20}])
    result = crystaler.run("do", listener=raising(signal.SIGINT, TextStreamed, times=3))
    assert_interrupted(result)


def test_a_signal_ends_the_running_tool_with_its_children(crystaler: Crystaler) -> None:
    command = "(echo $BASHPID > child; exec sleep 60) & echo $$ > pid; while [ ! -s child ]; do :; done; echo up; wait"
    crystaler.script([calls(bash(command), write("late.txt"))])
    listen = raising(signal.SIGINT, ToolProgressed)
    result = crystaler.run("do", operator=Operator(Approve()), listener=listen)
    assert_interrupted(result)
    assert [event.output for event in of(result, ToolCallFinished)] == [INTERRUPTED, INTERRUPTED]
    assert not (crystaler.workspace / "late.txt").exists()
    for name in ("pid", "child"):
        assert is_gone(int((crystaler.workspace / name).read_text()))
    crystaler.script([DONE])
    first = crystaler.run("go on", "-r", result.session_id)
    second = crystaler.run("and on", "-r", result.session_id)
    for resumed in (first, second):
        assert resumed.exit_code == 0
        assert_requests_are_valid(resumed)
        assert results_of(resumed.requests[0].items) == [INTERRUPTED, INTERRUPTED]
        assert resumed.calls == ()


def test_results_that_were_there_are_kept(crystaler: Crystaler) -> None:
    crystaler.script([calls(write("a.txt"), bash("echo up; sleep 60"), write("b.txt"))])
    result = crystaler.run("do", "--approval", "full", listener=raising(signal.SIGINT, ToolProgressed))
    assert_interrupted(result)
    crystaler.script([DONE])
    resumed = crystaler.run("go on", "-r", result.session_id)
    assert_requests_are_valid(resumed)
    done, *others = results_of(resumed.requests[0].items)
    assert "a.txt" in done
    assert others == [INTERRUPTED, INTERRUPTED]


def test_reads_side_by_side_are_interrupted_with_one_result_each(crystaler: Crystaler) -> None:
    crystaler.makeplugin(
        "Acme",
        """
        import asyncio
        from crystal import Risk, ToolContribution, ToolDefinition, hookimpl

        class Acme:
            definition = ToolDefinition(name="acme", description="A sample.", schema={"type": "object"})

            async def invoke(self, call, context):
                context.progress("waiting")
                await asyncio.Event().wait()

        @hookimpl
        def contribute_tools():
            return [ToolContribution(name="acme", tool=Acme(), risk=Risk.READ)]
        """,
    )
    crystaler.script([calls(("acme", {}), ("todoread", {}), ("acme", {}))])
    result = crystaler.run("do", listener=raising(signal.SIGINT, ToolProgressed))
    assert_interrupted(result)
    crystaler.script([DONE])
    resumed = crystaler.run("go on", "-r", result.session_id)
    assert resumed.exit_code == 0
    assert_requests_are_valid(resumed)


def test_an_interrupt_while_the_operator_is_asked_denies_nothing_and_runs_nothing(crystaler: Crystaler) -> None:
    crystaler.script([calls(write("a.txt"), write("b.txt"))])
    operator = Operator(first=lambda session, _: session.interrupt())
    result = crystaler.run("do", operator=operator)
    assert_interrupted(result)
    assert len(operator.asked) == 1
    assert list(crystaler.workspace.iterdir()) == []
    crystaler.script([DONE])
    assert_requests_are_valid(crystaler.run("go on", "-r", result.session_id))


@pytest.mark.parametrize("hook", ["on_user_message", "on_turn_started", "on_model_response", "on_tool_call"])
def test_an_interrupt_ends_a_waiting_hook(crystaler: Crystaler, hook: str) -> None:
    argument = {"on_user_message": "message", "on_turn_started": "turn", "on_model_response": "response"}.get(
        hook, "call"
    )
    crystaler.makeplugin(
        "Acme",
        f"""
        import asyncio
        import signal
        from crystal import hookimpl

        @hookimpl
        async def {hook}({argument}):
            signal.raise_signal(signal.SIGINT)
            await asyncio.Event().wait()
        """,
    )
    crystaler.script([calls(("todoread", {})), DONE])
    result = crystaler.run("do")
    assert_interrupted(result)
    assert "hook-error" not in result.note_codes


@pytest.mark.parametrize("kind", [StepStarted, TextCommitted, ToolCallStarted, ToolCallFinished])
@pytest.mark.parametrize("by", ["session", "signal"])
def test_wherever_it_comes_the_turn_ends_once_and_soon(crystaler: Crystaler, kind: type[Any], by: str) -> None:
    sessions: list[Session] = []

    def listen(event: Event) -> None:
        if not sessions or not isinstance(event, kind):
            return
        if by == "signal":
            signal.raise_signal(signal.SIGINT)
        else:
            sessions[0].interrupt()

    crystaler.makefile("a.txt", "hello\n")
    ask = calls(("question", {"questions": [{"header": "Go", "text": "Go on?"}]}))
    more = [{"text": "More.", **calls(("read", {"path": "a.txt", "limit": number}))} for number in range(1, 9)]
    crystaler.script([ask, *more, DONE])
    operator = Operator(Reply(labels=(("yes",),)), first=lambda session, _: sessions.append(session))
    result = crystaler.run("do", operator=operator, listener=listen)
    assert_interrupted(result)
    assert len(of(result, StepStarted)) <= 4
    crystaler.script([DONE])
    assert_requests_are_valid(crystaler.run("go on", "-r", result.session_id))


@pytest.mark.parametrize("kind", [StepFinished, TurnFinished])
@pytest.mark.parametrize("by", ["session", "signal"])
def test_an_interrupt_at_the_very_end_makes_no_second_end(crystaler: Crystaler, kind: type[Any], by: str) -> None:
    sessions: list[Session] = []

    def listen(event: Event) -> None:
        if not isinstance(event, kind) or (isinstance(event, StepFinished) and event.step < 2):
            return
        if by == "signal":
            signal.raise_signal(signal.SIGINT)
        else:
            sessions[0].interrupt()

    crystaler.script([calls(write("a.txt")), DONE])
    operator = Operator(Approve(), first=lambda session, _: sessions.append(session))
    result = crystaler.run("do", operator=operator, listener=listen)
    end = turn_end(result)
    assert (end.model_calls, end.tool_calls) == (2, 1)
    assert result.exit_code == (5 if end.stop_reason is StopReason.INTERRUPTED else 0)
