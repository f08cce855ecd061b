"""From the deltas of one response to transcript items."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.engine.candidate import Accumulator, Candidate
from crystal.types.items import AssistantItem, ReasoningItem, ToolCallItem
from crystal.types.model import (
    CallDelta,
    FinishDelta,
    FinishReason,
    ModelDelta,
    ReasoningDelta,
    TextDelta,
    Usage,
    UsageDelta,
)

STOP = FinishDelta(reason=FinishReason.STOP)
TOOLS = FinishDelta(reason=FinishReason.TOOL_CALLS)


def assemble(
    deltas: Iterable[ModelDelta],
    taken: Iterable[str] = (),
    redact: Callable[[str], str] = lambda text: text,
) -> Candidate:
    accumulator = Accumulator()
    for delta in deltas:
        accumulator.add(delta)
    numbers = itertools.count(1)
    used = frozenset(taken)
    return accumulator.candidate(lambda kind: f"{kind}_new_{next(numbers)}", used.__contains__, redact)


def test_parts_keep_the_order_in_which_they_began() -> None:
    found = assemble(
        [
            ReasoningDelta(text="Let me "),
            ReasoningDelta(text="see."),
            TextDelta(text="First"),
            CallDelta(key="0", call_id="a", name="read", arguments='{"path":'),
            TextDelta(text="Then"),
            CallDelta(key="1", call_id="b", name="list", arguments="{}"),
            CallDelta(key="0", arguments='"x"}'),
            TOOLS,
        ]
    )
    assert [type(item) for item in found.items] == [
        ReasoningItem,
        AssistantItem,
        ToolCallItem,
        AssistantItem,
        ToolCallItem,
    ]
    assert [getattr(item, "text", "") for item in found.items] == ["Let me see.", "First", "", "Then", ""]
    assert [(call.call_id, call.name, call.arguments) for call in found.calls] == [
        ("a", "read", '{"path":"x"}'),
        ("b", "list", "{}"),
    ]
    assert found.finish is FinishReason.TOOL_CALLS
    assert len({item.id for item in found.items}) == 5


def test_a_response_without_its_end_is_no_candidate() -> None:
    accumulator = Accumulator()
    accumulator.add(TextDelta(text="half"))
    assert not accumulator.is_finished
    assert accumulator.text == "half"
    with pytest.raises(ValueError, match="no end"):
        accumulator.candidate(lambda kind: kind, lambda call_id: False, lambda text: text)


def test_an_empty_response_has_no_items() -> None:
    found = assemble([STOP])
    assert (found.items, found.finish, found.usage) == ((), FinishReason.STOP, None)


def test_an_id_may_come_late_and_the_first_one_counts() -> None:
    found = assemble(
        [
            CallDelta(key="0", name="read"),
            CallDelta(key="0", call_id="first", arguments="{}"),
            CallDelta(key="0", call_id="second"),
            TOOLS,
        ]
    )
    assert [call.call_id for call in found.calls] == ["first"]


def test_missing_repeated_and_taken_ids_are_renamed() -> None:
    found = assemble(
        [
            CallDelta(key="0", call_id="same", name="read"),
            CallDelta(key="1", call_id="same", name="read"),
            CallDelta(key="2", name="read"),
            CallDelta(key="3", call_id="old", name="read"),
            TOOLS,
        ],
        taken=["old"],
    )
    ids = [call.call_id for call in found.calls]
    assert ids[0] == "same"
    assert len(set(ids)) == 4
    assert "" not in ids
    assert "old" not in ids


def test_a_name_replaces_the_one_before_and_arguments_are_appended() -> None:
    found = assemble(
        [
            CallDelta(key="0", call_id="a", name="re", arguments='{"a"'),
            CallDelta(key="0", name="read", arguments=":1"),
            CallDelta(key="0", name="", arguments="}"),
            TOOLS,
        ]
    )
    assert [(call.name, call.arguments) for call in found.calls] == [("read", '{"a":1}')]


@pytest.mark.parametrize("reason", [FinishReason.LENGTH, FinishReason.FILTER, FinishReason.REFUSAL])
def test_calls_of_an_answer_that_was_cut_short_are_dropped_and_counted(reason: FinishReason) -> None:
    found = assemble(
        [
            TextDelta(text="I will"),
            CallDelta(key="0", call_id="a", name="write", arguments='{"path": "a", "content": "hal'),
            CallDelta(key="1", call_id="b", name="read", arguments="{}"),
            FinishDelta(reason=reason),
        ]
    )
    assert found.calls == ()
    assert found.dropped_calls == 2
    assert found.finish is reason
    assert [item.text for item in found.items if isinstance(item, AssistantItem)] == ["I will"]


@pytest.mark.parametrize("reason", [FinishReason.STOP, FinishReason.OTHER, FinishReason.TOOL_CALLS])
def test_complete_calls_count_whatever_word_the_provider_ends_with(reason: FinishReason) -> None:
    found = assemble([CallDelta(key="0", call_id="a", name="read"), FinishDelta(reason=reason)])
    assert found.finish is FinishReason.TOOL_CALLS
    assert len(found.calls) == 1
    assert found.dropped_calls == 0


def test_a_tool_call_finish_without_calls_is_an_ordinary_stop() -> None:
    assert assemble([TextDelta(text="Done."), TOOLS]).finish is FinishReason.STOP
    assert assemble([TextDelta(text="Done."), FinishDelta(reason=FinishReason.OTHER)]).finish is FinishReason.OTHER


def test_halves_of_a_surrogate_pair_over_two_deltas_become_one_character() -> None:
    found = assemble(
        [
            TextDelta(text="a\ud83d"),
            TextDelta(text="\ude00b"),
            CallDelta(key="0", call_id="a", name="write", arguments='{"content": "\ud83d'),
            CallDelta(key="0", arguments='\ude00"}'),
            TOOLS,
        ]
    )
    text, call = found.items
    assert isinstance(text, AssistantItem)
    assert text.text == "a😀b"
    assert isinstance(call, ToolCallItem)
    assert call.arguments == '{"content": "😀"}'


@pytest.mark.parametrize("redacted", ["key", "nothing"])
def test_a_half_of_a_pair_in_the_arguments_of_a_call_stays_what_was_asked_for(redacted: str) -> None:
    [call] = assemble(
        [CallDelta(key="0", call_id="a", name="write", arguments='{"content": "a\ud83dkey"}'), TOOLS],
        redact=lambda text: text.replace(redacted, "***"),
    ).items
    assert isinstance(call, ToolCallItem)
    assert json.loads(call.arguments) == {"content": "a\ud83dkey".replace(redacted, "***")}
    assert call.arguments.encode()


@given(st.lists(st.text(st.characters(), max_size=6), max_size=6))
@settings(max_examples=100, deadline=None)
def test_any_text_can_be_stored(pieces: list[str]) -> None:
    found = assemble([*(TextDelta(text=piece) for piece in pieces), STOP])
    for item in found.items:
        assert isinstance(item, AssistantItem)
        item.text.encode("utf-8")


@pytest.mark.parametrize("blank", ["", " ", "\n\n", "\t "])
def test_blank_text_is_no_block(blank: str) -> None:
    found = assemble([TextDelta(text=blank), CallDelta(key="0", call_id="a", name="read"), TOOLS])
    assert [type(item) for item in found.items] == [ToolCallItem]


def test_reasoning_is_kept_for_its_text_or_its_state() -> None:
    state = {"openai": {"id": "rs_1"}}
    found = assemble([ReasoningDelta(text=""), TextDelta(text="x"), ReasoningDelta(text="", state=state), STOP])
    kept = [item for item in found.items if isinstance(item, ReasoningItem)]
    assert [(item.text, item.state) for item in kept] == [("", state)]


def test_state_of_a_call_stays_with_it() -> None:
    found = assemble(
        [
            CallDelta(key="0", call_id="a", name="read", state={"gemini": {"signature": "s"}}),
            CallDelta(key="0", arguments="{}"),
            TOOLS,
        ]
    )
    assert found.calls[0].state == {"gemini": {"signature": "s"}}


def test_the_last_usage_counts_and_none_is_said_to_be_none() -> None:
    found = assemble(
        [UsageDelta(usage=Usage(input=1)), TextDelta(text="x"), UsageDelta(usage=Usage(input=9, output=2)), STOP]
    )
    assert found.usage == Usage(input=9, output=2)
    assert assemble([TextDelta(text="x"), STOP]).usage is None


def test_usage_may_come_after_the_end() -> None:
    assert assemble([TextDelta(text="x"), STOP, UsageDelta(usage=Usage(input=3))]).usage == Usage(input=3)


def test_secrets_leave_text_reasoning_and_arguments_also_when_they_came_in_two_pieces() -> None:
    found = assemble(
        [
            ReasoningDelta(text="the key is SEC"),
            ReasoningDelta(text="RET"),
            TextDelta(text="SE"),
            TextDelta(text="CRET!"),
            CallDelta(key="0", call_id="a", name="bash", arguments='{"command": "echo SEC'),
            CallDelta(key="0", arguments='RET"}'),
            TOOLS,
        ],
        redact=lambda text: text.replace("SECRET", "[redacted:KEY]"),
    )
    assert "SECRET" not in repr(found)
    assert repr(found).count("[redacted:KEY]") == 3
