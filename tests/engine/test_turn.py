"""A turn through the real engine: order, malformed model output, budgets, the loop guard, follow-ups."""

from __future__ import annotations

import json
from typing import Any

import pytest

from crystal.engine.answers import Approve
from crystal.engine.session import Session
from crystal.testing.crystaler import Crystaler
from crystal.types.events import (
    Event,
    NoteAdded,
    StepFinished,
    StepStarted,
    TextCommitted,
    TextStreamed,
    ToolCallStarted,
)
from crystal.types.items import AssistantItem, ToolCallItem, ToolResultItem, UserItem
from crystal.types.model import Usage
from crystal.types.session import StopReason
from tests.engine.runs import (
    DONE,
    Operator,
    assert_requests_are_valid,
    bash,
    calls,
    kinds,
    of,
    read,
    results_of,
    turn_end,
    write,
)


def test_the_events_of_a_turn_come_in_their_order(crystaler: Crystaler) -> None:
    crystaler.makefile("a.txt", "hello\n")
    crystaler.script([{"reasoning": "Hm.", "text": "Looking.", **calls(read("a.txt"))}, DONE])
    result = crystaler.run("look")
    assert result.exit_code == 0
    assert kinds(event for event in result.events if not isinstance(event, NoteAdded)) == [
        "SessionOpened",
        "TurnStarted",
        "StepStarted",
        "ReasoningStreamed",
        "TextStreamed",
        "ReasoningCommitted",
        "TextCommitted",
        "ToolCallStarted",
        "ToolCallFinished",
        "StepFinished",
        "StepStarted",
        "TextStreamed",
        "TextCommitted",
        "StepFinished",
        "TurnFinished",
        "SessionClosed",
    ]
    end = turn_end(result)
    assert (end.stop_reason, end.model_calls, end.tool_calls, end.denied) == (StopReason.DONE, 2, 1, 0)


def test_the_next_request_holds_all_that_was_said_and_the_same_tools(crystaler: Crystaler) -> None:
    crystaler.makefile("a.txt", "hello\n")
    crystaler.script([{"text": "Looking.", **calls(read("a.txt"))}, DONE])
    first, second = crystaler.run("look").requests
    assert second.items[: len(first.items)] == first.items
    assert [type(item) for item in second.items[len(first.items) :]] == [AssistantItem, ToolCallItem, ToolResultItem]
    assert "hello" in results_of(second.items)[0]
    assert second.tools is first.tools


def test_streamed_pieces_join_to_the_committed_text(crystaler: Crystaler) -> None:
    crystaler.script([{"text": "A longer answer than one piece.", "chunk": 5}])
    result = crystaler.run()
    pieces = [event.text for event in of(result, TextStreamed)]
    assert len(pieces) > 3
    assert "".join(pieces) == "A longer answer than one piece."
    assert [event.text for event in of(result, TextCommitted)] == ["A longer answer than one piece."]


def test_reads_side_by_side_have_their_results_in_call_order(crystaler: Crystaler) -> None:
    for name in "abc":
        crystaler.makefile(f"{name}.txt", f"file {name}\n")
    crystaler.script([calls(*(read(f"{name}.txt") for name in "cab")), DONE])
    result = crystaler.run()
    assert_requests_are_valid(result)
    texts = results_of(result.requests[1].items)
    assert [f"file {name}" in text for name, text in zip("cab", texts, strict=True)] == [True] * 3


def test_an_empty_answer_ends_the_turn(crystaler: Crystaler) -> None:
    crystaler.script([{}])
    result = crystaler.run()
    assert (result.exit_code, turn_end(result).stop_reason) == (0, StopReason.DONE)


NESTED = '{"path": ' + "[" * 600 + "]" * 600 + "}"
BROKEN: list[tuple[str, Any, str]] = [
    ("read", '{"path": "a', "not valid JSON"),
    ("read", "[1]", "an array"),
    ("read", '"str"', "not valid JSON"),
    ("read", "{}{}", "not valid JSON"),
    ("read", '{"path": NaN}', "NaN"),
    ("read", NESTED, "The call was not run."),
    ("read", {"path": {"name": "a.txt"}}, "$.path"),
    ("read", {"path": 3}, "rule: type"),
    ("read", {}, "rule: required"),
    ("read", {"path": "a.txt", "file": "b"}, "rule: additionalProperties"),
    ("read", {"path": "a\0b"}, "not run"),
    ("raed", {"path": "a.txt"}, "There is no tool 'raed'"),
    ("read file", {}, "There is no tool"),
]


@pytest.mark.parametrize(("name", "arguments", "words"), BROKEN)
def test_malformed_calls_are_answered_and_the_turn_goes_on(
    crystaler: Crystaler, name: str, arguments: Any, words: str
) -> None:
    crystaler.makefile("a.txt", "hello\n")
    crystaler.script([calls((name, arguments), read("a.txt")), DONE])
    result = crystaler.run("look", "--format", "json")
    assert result.exit_code == 0, result.stderr
    broken, fine = result.calls
    assert (broken.failed, fine.failed) == (True, False)
    assert words in broken.output
    assert_requests_are_valid(result)
    assert results_of(result.requests[1].items)[0] == broken.output
    [item, _] = [item for item in result.requests[1].items if isinstance(item, ToolCallItem)]
    assert item.arguments == (arguments if isinstance(arguments, str) else json.dumps(arguments))


@pytest.mark.parametrize("arguments", ["", "  ", "null", "{}", {}])
def test_no_arguments_are_an_empty_object(crystaler: Crystaler, arguments: Any) -> None:
    crystaler.script([calls(("todoread", arguments)), DONE])
    result = crystaler.run()
    assert [call.failed for call in result.calls] == [False]


def test_plan_offers_no_changing_tool_and_answers_a_call_of_one(crystaler: Crystaler) -> None:
    crystaler.script([calls(write("a.txt"), bash("touch b.txt")), DONE])
    result = crystaler.run("plan it", "--plan", "--approval", "full")
    assert {"write", "edit", "bash"}.isdisjoint(tool.name for tool in result.requests[0].tools)
    assert result.exit_code == 0
    for call in result.calls:
        assert "not offered in plan mode" in call.output
    assert list(crystaler.workspace.iterdir()) == []
    assert_requests_are_valid(result)


def test_a_disabled_tool_is_an_unknown_one(crystaler: Crystaler) -> None:
    crystaler.script([calls(bash("touch b.txt")), DONE])
    result = crystaler.run("do", "--disable-tool", "bash", "--approval", "full")
    assert "There is no tool 'bash'" in result.calls[0].output
    assert list(crystaler.workspace.iterdir()) == []


def test_repeated_and_missing_call_ids_are_renamed(crystaler: Crystaler) -> None:
    crystaler.makefile("a.txt", "hello\n")
    same = {"name": "read", "arguments": {"path": "a.txt"}, "id": "same"}
    crystaler.script([{"toolCalls": [same, same]}, {"toolCalls": [same]}, DONE])
    result = crystaler.run()
    assert len({call.id for call in result.calls}) == 3
    assert_requests_are_valid(result)


@pytest.mark.parametrize("finish", ["length", "filter", "refusal"])
def test_calls_of_an_answer_that_was_cut_short_are_not_run(crystaler: Crystaler, finish: str) -> None:
    crystaler.script([{"text": "I write", **calls(write("a.txt")), "finish": finish}])
    result = crystaler.run("do", "--approval", "full")
    assert result.exit_code != 0
    assert result.calls == ()
    assert list(crystaler.workspace.iterdir()) == []
    assert "model-output" in result.note_codes


ENDLESS = [calls(read(f"{number}.txt"), usage={"input": 40, "output": 10}) for number in range(9)]


@pytest.mark.parametrize(
    ("options", "reason", "requests", "ran"),
    [
        (["--model-calls", "1"], StopReason.ROUND_BUDGET, 1, 1),
        (["--model-calls", "3"], StopReason.ROUND_BUDGET, 3, 3),
        (["--model-calls", "0"], StopReason.ROUND_BUDGET, 0, 0),
        (["--tool-calls", "2"], StopReason.CALL_BUDGET, 2, 2),
        (["--tool-calls", "0"], StopReason.CALL_BUDGET, 1, 0),
        (["--token-budget", "100"], StopReason.TOKEN_BUDGET, 2, 2),
        (["--token-budget", "60"], StopReason.TOKEN_BUDGET, 2, 2),
    ],
)
def test_a_budget_stops_the_turn_and_names_its_option(
    crystaler: Crystaler, options: list[str], reason: StopReason, requests: int, ran: int
) -> None:
    for number in range(9):
        crystaler.makefile(f"{number}.txt", f"file {number}\n")
    crystaler.script(ENDLESS)
    result = crystaler.run("read on", *options)
    end = turn_end(result)
    assert (result.exit_code, end.stop_reason) == (3, reason)
    assert options[0] in end.detail
    assert options[0] in result.stderr
    assert (len(result.requests), end.tool_calls) == (requests, ran)


def test_unlimited_removes_a_budget(crystaler: Crystaler) -> None:
    crystaler.script([calls(("todoread", {})), DONE])
    unlimited = ["--model-calls", "--tool-calls", "--token-budget", "--duration"]
    result = crystaler.run("do", *(word for option in unlimited for word in (option, "unlimited")))
    assert result.exit_code == 0


def test_calls_over_the_budget_are_answered_without_running(crystaler: Crystaler) -> None:
    crystaler.script([calls(write("a.txt"), write("b.txt"), write("c.txt"))])
    result = crystaler.run("do", "--tool-calls", "1", "--approval", "full")
    assert result.exit_code == 3
    assert [call.failed for call in result.calls] == [False, True, True]
    assert [path.name for path in crystaler.workspace.iterdir()] == ["a.txt"]
    crystaler.script([DONE])
    assert_requests_are_valid(crystaler.run("go on", "-c", "-w", str(crystaler.workspace)))


@pytest.mark.parametrize("where", ["stream", "tool"])
def test_the_time_budget_ends_streams_and_tools(crystaler: Crystaler, where: str) -> None:
    slow = {"text": "slow", "delayMs": 60_000}
    crystaler.script([slow if where == "stream" else calls(bash("sleep 60"), bash("touch late"))])
    result = crystaler.run("do", "--duration", "0.3s", "--approval", "full")
    end = turn_end(result)
    assert (result.exit_code, end.stop_reason) == (3, StopReason.DURATION_BUDGET)
    assert "--duration" in end.detail
    assert list(crystaler.workspace.iterdir()) == []
    crystaler.script([DONE])
    resumed = crystaler.run("go on", "-r", result.session_id)
    assert resumed.exit_code == 0
    assert_requests_are_valid(resumed)


def test_usage_is_summed_and_an_estimate_is_said_to_be_one(crystaler: Crystaler) -> None:
    known = {"usage": {"input": 100, "output": 20, "cached": 50}}
    crystaler.script([{**calls(("todoread", {})), **known}, {**DONE, **known}])
    assert turn_end(crystaler.run()).usage == Usage(input=200, output=40, cached=100)
    crystaler.script([{"text": "x" * 400}])
    usage = turn_end(crystaler.run()).usage
    assert usage.estimated
    assert usage.output == 100


@pytest.mark.parametrize("rounds", [[calls(read("a.txt"))] * 6, [calls(*[read("a.txt")] * 6)]])
def test_the_loop_guard_warns_at_the_third_and_ends_at_the_fifth(
    crystaler: Crystaler, rounds: list[dict[str, Any]]
) -> None:
    crystaler.makefile("a.txt", "hello\n")
    crystaler.script(rounds)
    result = crystaler.run()
    end = turn_end(result)
    assert (result.exit_code, end.stop_reason) == (3, StopReason.REPEATED_CALL)
    assert "'read'" in end.detail
    crystaler.script([DONE])
    [request] = crystaler.run("go on", "-r", result.session_id).requests
    texts = results_of(request.items)
    assert [("third time" in text) for text in texts[:5]] == [False, False, True, False, False]
    assert_requests_are_valid(result)


def test_equal_arguments_in_another_order_are_the_same_call(crystaler: Crystaler) -> None:
    crystaler.makefile("a.txt", "hello\n")
    forms = ['{"path": "a.txt", "limit": 1}', '{"limit":1,"path":"a.txt"}']
    crystaler.script([calls(("read", forms[number % 2])) for number in range(5)])
    assert turn_end(crystaler.run()).stop_reason is StopReason.REPEATED_CALL


def test_a_changing_result_is_no_loop(crystaler: Crystaler) -> None:
    rounds = [calls(bash("echo x >> log; wc -l < log"))] * 6
    crystaler.script([*rounds, DONE])
    assert crystaler.run("do", "--approval", "full").exit_code == 0


def test_follow_ups_are_delivered_when_the_batch_ends(crystaler: Crystaler) -> None:
    def queue(session: Session, _: object) -> None:
        session.follow_up("also b")
        session.follow_up("and c")

    crystaler.script([calls(write("a.txt"), read("a.txt")), DONE])
    result = crystaler.run("write", operator=Operator(Approve(), first=queue))
    assert result.exit_code == 0
    assert [type(item) for item in result.requests[1].items[-4:]] == [
        ToolResultItem,
        ToolResultItem,
        UserItem,
        UserItem,
    ]
    assert [item.text for item in result.requests[1].items if isinstance(item, UserItem)] == [
        "write",
        "also b",
        "and c",
    ]
    assert_requests_are_valid(result)


def test_a_follow_up_on_the_last_answer_is_delivered_before_the_turn_ends(crystaler: Crystaler) -> None:
    sessions: list[Session] = []

    def listen(event: Event) -> None:
        if isinstance(event, TextCommitted) and event.text == "Done.":
            sessions[0].follow_up("one more thing")

    crystaler.script([calls(write("a.txt")), DONE, {"text": "That too."}])
    operator = Operator(Approve(), first=lambda session, _: sessions.append(session))
    result = crystaler.run("write", operator=operator, listener=listen)
    assert turn_end(result).model_calls == 3
    last = result.requests[-1].items[-1]
    assert isinstance(last, UserItem)
    assert last.text == "one more thing"


def test_steps_are_numbered_from_one_and_closed(crystaler: Crystaler) -> None:
    crystaler.script([calls(("todoread", {})), DONE])
    result = crystaler.run()
    assert [event.step for event in of(result, StepStarted)] == [1, 2]
    assert [(event.step, event.tool_calls) for event in of(result, StepFinished)] == [(1, 1), (2, 0)]
    assert len(of(result, ToolCallStarted)) == 1
