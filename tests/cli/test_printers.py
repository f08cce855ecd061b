"""The three formats of a run, fed with the events themselves."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any, get_args

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.cli.printers.event_schema import RUN_EVENTS
from crystal.cli.printers.final import FinalPrinter
from crystal.cli.printers.json_lines import JsonLinesPrinter
from crystal.cli.printers.readable import HEAD_LINES, TAIL_LINES, ReadablePrinter
from crystal.types._readonly import read_only
from crystal.types.approval import (
    ApprovalMode,
    ApprovalOutcome,
    ApprovalRecord,
    Authority,
    Classification,
    GrantScope,
    PolicyDecision,
    Risk,
)
from crystal.types.capabilities import Question
from crystal.types.events import (
    ApprovalAsked,
    ErrorRaised,
    Event,
    FollowUpDelivered,
    LoadedPlugin,
    NoteAdded,
    QuestionAsked,
    ReasoningCommitted,
    ReasoningStreamed,
    RequestAnswered,
    RetryScheduled,
    SessionClosed,
    SessionOpened,
    StepFinished,
    StepStarted,
    TextCommitted,
    TextStreamed,
    ToolCallFinished,
    ToolCallStarted,
    ToolProgressed,
    TurnFinished,
    TurnStarted,
)
from crystal.types.model import FinishReason, ModelErrorKind, Usage
from crystal.types.notes import Note, NoteCode
from crystal.types.session import StopReason
from crystal.types.tools import Catalog

SEPARATORS = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\rh\r\ni"
CLASS = Classification(risk=Risk.WRITE, summary="writes a")
ASKED = PolicyDecision(outcome=ApprovalOutcome.ASK, rule=11, reason="asked", offered=(GrantScope.ONCE,))
RECORD = ApprovalRecord(
    host=CLASS,
    final=Classification(risk=Risk.PRIVILEGED, authority=Authority.WORKSPACE | Authority.NETWORK),
    decision=ASKED,
    approved=False,
    answered_by="nobody",
    changes=("plugin:test/Acme: on_approval",),
)
OPENED = SessionOpened(
    session_id="s1",
    workspace="/ws",
    provider="scripted",
    model="script",
    approval=ApprovalMode.DEFAULT,
    resumed=False,
    plugins=(LoadedPlugin(name="builtin:files", hooks=("contribute_tools",), tools=("read", "edit")),),
    skipped=(Note(code=NoteCode.PLUGIN_INVALID, text="Plugin 'x' is not loaded.", source="x"),),
)
DONE = TurnFinished(
    stop_reason=StopReason.DONE,
    detail="",
    model_calls=2,
    tool_calls=1,
    denied=0,
    usage=Usage(input=10, output=3, cached=2, reasoning=1, estimated=True),
)


def tool_call(name: str = "read", output: str = "1: x", failed: bool = False, **facts: Any) -> ToolCallFinished:
    arguments = facts.pop("arguments", {"path": "a.py"})
    return ToolCallFinished(
        call_id="c1", name=name, arguments=read_only(arguments), failed=failed, output=output, **facts
    )


EVERY: tuple[Event, ...] = (
    OPENED,
    TurnStarted(text="do it", mode=Catalog.WORK),
    FollowUpDelivered(text="and that"),
    NoteAdded(note=Note(code=NoteCode.HOOK_ERROR, text="Plugin 'x' failed.", source="x")),
    StepStarted(step=1),
    ReasoningStreamed(text="hm"),
    TextStreamed(text="Look"),
    RetryScheduled(attempt=2, wait=1.23456, kind=ModelErrorKind.RATE, message="slow down"),
    ReasoningCommitted(item_id="i0", text="hmm"),
    TextCommitted(item_id="i1", text=SEPARATORS),
    ToolCallStarted(call_id="c1", name="read", arguments=read_only({"path": "a.py"})),
    ToolProgressed(call_id="c1", text="half way"),
    ApprovalAsked(
        request_id="r1",
        call_id="c1",
        name="read",
        arguments=read_only({}),
        host=CLASS,
        final=CLASS,
        offered=(GrantScope.ONCE,),
        reason="asked",
    ),
    RequestAnswered(request_id="r1", call_id="c1", answer="deny"),
    QuestionAsked(request_id="r2", call_id="c1", questions=(Question(header="H", text="Which?"),)),
    tool_call(output=SEPARATORS, approval=RECORD, arguments={"path": SEPARATORS, "more": [1, None, True]}),
    tool_call(parent_call_id="c0", images=2),
    StepFinished(step=1, finish=FinishReason.TOOL_CALLS, usage=Usage(input=5), tool_calls=1),
    StepStarted(step=2),
    StepFinished(step=2, finish=FinishReason.STOP, usage=Usage(), tool_calls=0),
    ErrorRaised(kind="server", message="went away", partial="half"),
    DONE,
    SessionClosed(session_id="s1"),
)


def test_every_event_is_fed_to_the_printers_here() -> None:
    assert {type(event) for event in EVERY} == set(get_args(Event))


def as_json(events: Sequence[Event], exit_code: int = 0, show_thinking: bool = False) -> str:
    stream = io.StringIO()
    printer = JsonLinesPrinter(stream, lambda: 1_700_000_000.125, show_thinking)
    for event in events:
        printer(event)
    printer.finish(exit_code, "denied" if exit_code else "done", "", DONE)
    return stream.getvalue()


def parsed(output: str) -> list[dict[str, Any]]:
    assert output.endswith("\n")
    return [json.loads(line, parse_constant=_not_json) for line in output.removesuffix("\n").split("\n")]


def _not_json(word: str) -> Any:
    raise AssertionError(f"{word} is not JSON")


@pytest.mark.parametrize("exit_code", [0, 4])
@pytest.mark.parametrize("show_thinking", [True, False])
def test_every_json_line_is_valid_against_the_published_schema(exit_code: int, show_thinking: bool) -> None:
    jsonschema.Draft202012Validator.check_schema(RUN_EVENTS)
    validator = jsonschema.Draft202012Validator(RUN_EVENTS)
    lines = parsed(as_json(EVERY, exit_code, show_thinking))
    for line in lines:
        assert [error.message for error in validator.iter_errors(line)] == []
        assert line["timestamp"] == "2023-11-14T22:13:20.125Z"
        assert line["sessionID"] == "s1"
    expected = ["session", "note", "step_start", "retry"]
    expected += ["reasoning"] if show_thinking else []
    expected += ["text", "tool_use", "tool_use", "step_finish", "step_start", "step_finish", "error"]
    expected += ["stopped"] if exit_code else []
    assert [line["type"] for line in lines] == [*expected, "session"]


def test_a_reader_that_splits_anywhere_a_text_could_split_sees_the_same_lines() -> None:
    output = as_json(EVERY)
    assert output.splitlines() == output.removesuffix("\n").split("\n")
    assert output.isascii()


def test_json_leaves_text_unaltered() -> None:
    lines = parsed(as_json(EVERY))
    assert [line["text"] for line in lines if line["type"] == "text"] == [SEPARATORS]
    first = next(line for line in lines if line["type"] == "tool_use")
    assert (first["output"], first["arguments"]["path"]) == (SEPARATORS, SEPARATORS)


@given(st.text(st.characters(), max_size=40))
@settings(max_examples=100, deadline=None)
def test_any_text_survives_one_json_line(text: str) -> None:
    output = as_json([OPENED, TextCommitted(item_id="i", text=text)])
    assert parsed(output)[1]["text"] == text
    assert output.count("\n") == len(output.splitlines()) == 3


def test_the_first_line_says_what_loaded_and_what_did_not() -> None:
    first = parsed(as_json(EVERY))[0]
    assert first["state"] == "opened"
    assert first["plugins"] == [{"name": "builtin:files", "hooks": ["contribute_tools"], "tools": ["read", "edit"]}]
    assert first["skipped"] == [{"code": "plugin-invalid", "source": "x", "text": "Plugin 'x' is not loaded."}]


def test_the_last_lines_say_why_it_stopped_and_how_to_go_on() -> None:
    stopped, closed = parsed(as_json(EVERY, exit_code=4))[-2:]
    assert (stopped["type"], stopped["reason"], stopped["exitCode"]) == ("stopped", "denied", 4)
    assert (closed["state"], closed["exitCode"], closed["resume"]) == ("closed", 4, "crystal run -r s1 TASK")
    assert closed["usage"] == {"input": 10, "output": 3, "cached": 2, "reasoning": 1, "estimated": True}


def test_a_run_that_never_opened_still_ends_with_a_complete_object() -> None:
    stream = io.StringIO()
    JsonLinesPrinter(stream, lambda: 0.0, False).finish(1, "invalid", "no such provider", None)
    stopped, closed = parsed(stream.getvalue())
    assert (stopped["detail"], stopped["exitCode"]) == ("no such provider", 1)
    assert (closed["sessionID"], closed["resume"], closed["usage"]) == ("", None, None)
    for line in (stopped, closed):
        jsonschema.Draft202012Validator(RUN_EVENTS).validate(line)


def test_a_tool_use_carries_how_it_was_judged() -> None:
    uses = [line for line in parsed(as_json(EVERY)) if line["type"] == "tool_use"]
    assert uses[0]["approval"] == {
        "rule": 11,
        "reason": "asked",
        "class": {"risk": "Privileged", "authority": "Workspace + Network", "summary": ""},
        "hostClass": {"risk": "Write", "authority": "Workspace", "summary": "writes a"},
        "approved": False,
        "answeredBy": "nobody",
        "scope": None,
        "changes": ["plugin:test/Acme: on_approval"],
    }
    assert (uses[1]["approval"], uses[1]["parentCallId"], uses[1]["images"]) == (None, "c0", 2)


def test_step_finish_counts_up_over_the_turn() -> None:
    steps = [line for line in parsed(as_json(EVERY)) if line["type"] == "step_finish"]
    assert [(step["modelCalls"], step["toolCalls"]) for step in steps] == [(1, 1), (2, 1)]


def as_readable(events: Sequence[Event], show_thinking: bool = False) -> str:
    stream = io.StringIO()
    printer = ReadablePrinter(stream, show_thinking)
    for event in events:
        printer(event)
    printer.finish(0, "done", "", DONE)
    return stream.getvalue()


def test_the_readable_trace_puts_labels_in_brackets_and_statuses_in_parentheses() -> None:
    lines = as_readable(EVERY).split("\n")
    assert lines[0].startswith("[session] s1  scripted/script  approval default")
    assert "[retry] attempt 2 in 1.2 s (rate)" in lines
    assert "[approval] read: Write + Workspace, asked" in lines
    assert "  [approval] Privileged + Workspace + Network: denied by nobody" in lines
    assert "[question] Which?" in lines
    assert "[child] [read] a.py (ok)" in lines
    assert "[discarded]" in lines
    assert "[done] 2 model calls, 1 tool calls, 10 + 3 tokens (estimated)" in lines


def test_reasoning_is_shown_when_asked_for() -> None:
    assert "hmm" not in as_readable(EVERY)
    assert "[thinking]\n  hmm\n" in as_readable(EVERY, show_thinking=True)


@pytest.mark.parametrize(
    ("event", "shown"),
    [
        (tool_call(output="x"), "[read] a.py (ok)\n  x\n"),
        (tool_call(output="no", failed=True), "[read] a.py (failed)\n  no\n"),
        (tool_call("grep", arguments={"pattern": "x", "limit": 3}), "[grep] x  limit=3 (ok)\n"),
    ],
)
def test_each_call_stands_beside_its_result(event: Event, shown: str) -> None:
    assert as_readable([event]).startswith(shown)


MANY = "\n".join(f"line {number}" for number in range(1, 41))


@pytest.mark.parametrize(
    ("event", "first", "last", "count"),
    [
        (tool_call(output=MANY), "  line 1", f"  <{40 - HEAD_LINES} more lines>", HEAD_LINES + 1),
        (tool_call("bash", output=MANY), f"  <{40 - TAIL_LINES} lines above>", "  line 40", TAIL_LINES + 1),
        (tool_call("edit", output=MANY), "  line 1", "  line 40", 40),
        (tool_call("write", output=MANY), "  line 1", "  line 40", 40),
        (tool_call(output=MANY, failed=True), "  line 1", "  line 40", 40),
    ],
)
def test_reads_show_their_head_bash_its_tail_and_changes_and_failures_all(
    event: Event, first: str, last: str, count: int
) -> None:
    shown = as_readable([event]).removesuffix("\n").split("\n")[1:]
    assert (shown[0], shown[-1], len(shown)) == (first, last, count)


@given(st.text(st.characters(), max_size=30))
@settings(max_examples=100, deadline=None)
def test_no_control_character_of_any_event_reaches_the_trace(text: str) -> None:
    nasty = f"\x1b[31m{text}\x9b\u202e\r"
    events: list[Event] = [
        TextCommitted(item_id="i", text=nasty),
        tool_call(nasty, nasty, arguments={nasty: nasty}),
        tool_call("bash", nasty, arguments={"command": [nasty]}),
        QuestionAsked(request_id="r", call_id="c", questions=(Question(header=nasty, text=nasty),)),
        ErrorRaised(kind="server", message=nasty, partial=nasty),
        ReasoningCommitted(item_id="i", text=nasty),
    ]
    output = as_readable(events, show_thinking=True)
    assert not {"\x1b", "\x9b", "\u202e", "\r"} & set(output)
    output.encode("utf-8")


def as_final(events: Sequence[Event]) -> str:
    stream = io.StringIO()
    printer = FinalPrinter(stream)
    for event in events:
        printer(event)
    printer.finish(0, "done", "", DONE)
    return stream.getvalue()


def test_final_prints_the_last_reply_alone() -> None:
    events: list[Event] = [
        OPENED,
        StepStarted(step=1),
        TextCommitted(item_id="1", text="Let me look."),
        tool_call(),
        StepStarted(step=2),
        ReasoningCommitted(item_id="2", text="hm"),
        TextCommitted(item_id="3", text="\nIt is fine."),
        TextCommitted(item_id="4", text="Bye.\n"),
        DONE,
    ]
    assert as_final(events) == "It is fine.\nBye.\n"


def test_final_prints_nothing_when_there_is_no_reply() -> None:
    assert as_final([OPENED, StepStarted(step=1), DONE]) == ""


def test_final_escapes_control_characters() -> None:
    assert as_final([StepStarted(step=1), TextCommitted(item_id="1", text="\x1b[2J")]) == "\\x1b[2J\n"
