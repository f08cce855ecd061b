"""What servers stream becomes the same deltas, however they write it (G20 to G24, G50)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.types.model import (
    CallDelta,
    FinishDelta,
    FinishReason,
    ModelDelta,
    ModelError,
    ModelErrorKind,
    ReasoningDelta,
    TextDelta,
    Usage,
    UsageDelta,
)
from crystal.wire.events import JsonEvent
from crystal.wire.sse import SseDecoder, event_values
from plugins_builtin.protocols.chat_stream import ChatDecoder

DONE = JsonEvent(value=None, done=True)


def chunk(finish: Any = None, **delta: Any) -> JsonEvent:
    return JsonEvent(value={"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def event(**value: Any) -> JsonEvent:
    return JsonEvent(value=value)


def decode(*events: JsonEvent) -> list[ModelDelta]:
    decoder = ChatDecoder("tag")
    return [delta for arrived in events for delta in decoder.feed(arrived)] + decoder.close()


def text_of(deltas: list[ModelDelta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


def reasoning_of(deltas: list[ModelDelta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta))


def finish_of(*events: JsonEvent) -> FinishReason:
    last = decode(*events)[-1]
    assert isinstance(last, FinishDelta)
    return last.reason


def failure(*events: JsonEvent) -> ModelError:
    with pytest.raises(ModelError) as caught:
        decode(*events)
    return caught.value


CALL = {"index": 0, "id": "a", "type": "function", "function": {"name": "read", "arguments": '{"path":"a"}'}}
USAGE = {"prompt_tokens": 10, "completion_tokens": 5}


def test_a_whole_answer_in_order() -> None:
    assert decode(
        chunk(role="assistant", content=""),
        chunk(reasoning_content="Think."),
        chunk(content="Reading "),
        chunk(content="it."),
        chunk(tool_calls=[CALL]),
        chunk(finish="tool_calls"),
        event(choices=[], usage=USAGE),
        DONE,
    ) == [
        ReasoningDelta(text="Think."),
        TextDelta(text="Reading "),
        TextDelta(text="it."),
        CallDelta(key="0", call_id="a", name="read", arguments='{"path":"a"}'),
        UsageDelta(usage=Usage(input=10, output=5)),
        FinishDelta(reason=FinishReason.TOOL_CALLS, raw="tool_calls"),
    ]


@pytest.mark.parametrize(
    "odd",
    [
        event(choices=[]),
        event(choices=None),
        event(),
        event(choices=[], prompt_filter_results=[{}]),
        event(choices=[{"index": 0, "delta": None}]),
        event(choices=[{"index": 0}]),
        event(choices=[None, 1, "x"]),
        event(choices=[{"index": 1, "delta": {"content": "of another choice"}}]),
        event(usage=None),
        event(type="ping"),
        event(choices=[{"delta": {"content": None, "tool_calls": None, "role": None, "refusal": None}}]),
        event(choices=[{"delta": {"content": "", "reasoning": "", "tool_calls": []}, "finish_reason": ""}]),
        event(choices=[{"delta": {"content": 7, "reasoning": {}, "audio": {}, "unknown": [1]}}]),
        JsonEvent(value=[1, 2]),
        JsonEvent(value="text"),
        JsonEvent(value=None),
    ],
)
@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_odd_chunks_are_passed_over_anywhere(odd: JsonEvent, place: int) -> None:
    events = [chunk(content="hi"), chunk(finish="stop"), event(choices=[], usage=USAGE), DONE]
    assert decode(*events[:place], odd, *events[place:]) == decode(*events)


def test_usage_after_the_finish_is_taken_and_the_finish_stays_last() -> None:
    deltas = decode(chunk(finish="stop", content="x"), event(choices=[], usage=USAGE), DONE)
    assert deltas[-2:] == [
        UsageDelta(usage=Usage(input=10, output=5)),
        FinishDelta(reason=FinishReason.STOP, raw="stop"),
    ]


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning", "thinking", "reasoning_text"])
def test_reasoning_is_read_under_every_name(key: str) -> None:
    assert reasoning_of(decode(chunk(**{key: "hm"}), chunk(finish="stop", content="x"))) == "hm"


def test_reasoning_under_two_names_is_told_once() -> None:
    deltas = decode(chunk(reasoning_content="hm", reasoning="hm"), chunk(finish="stop", content="x"))
    assert reasoning_of(deltas) == "hm"


def test_content_in_parts_is_flattened_by_type() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "a"},
        "b",
        {"type": "text", "text": None},
        {"type": "new"},
        None,
    ]
    deltas = decode(chunk(content=parts), chunk(finish="stop"))
    assert (reasoning_of(deltas), text_of(deltas)) == ("hm", "ab")


def test_reasoning_details_are_merged_and_kept_with_the_reasoning() -> None:
    deltas = decode(
        chunk(reasoning_details=[{"type": "reasoning.text", "index": 0, "text": "I ", "id": None}]),
        chunk(reasoning_details=[{"type": "reasoning.text", "index": 0, "text": "see", "signature": "s"}]),
        chunk(reasoning_details=[{"type": "reasoning.encrypted", "index": 1, "data": "x"}]),
        chunk(content="yes"),
        chunk(finish="stop"),
    )
    details = [
        {"type": "reasoning.text", "index": 0, "text": "I see", "signature": "s"},
        {"type": "reasoning.encrypted", "index": 1, "data": "x"},
    ]
    assert deltas == [
        ReasoningDelta(text="I "),
        ReasoningDelta(text="see"),
        ReasoningDelta(text="", state={"tag": {"reasoning_details": details}}),
        TextDelta(text="yes"),
        FinishDelta(reason=FinishReason.STOP, raw="stop"),
    ]


@pytest.mark.parametrize(
    ("raw", "without_calls", "with_calls"),
    [
        ("stop", FinishReason.STOP, FinishReason.TOOL_CALLS),
        ("tool_calls", FinishReason.STOP, FinishReason.TOOL_CALLS),
        ("tool_call", FinishReason.STOP, FinishReason.TOOL_CALLS),
        ("function_call", FinishReason.STOP, FinishReason.TOOL_CALLS),
        ("eos", FinishReason.STOP, FinishReason.TOOL_CALLS),
        ("length", FinishReason.LENGTH, FinishReason.LENGTH),
        ("max_tokens", FinishReason.LENGTH, FinishReason.LENGTH),
        ("content_filter", FinishReason.FILTER, FinishReason.FILTER),
        ("sensitive", FinishReason.FILTER, FinishReason.FILTER),
        ("something_new", FinishReason.OTHER, FinishReason.TOOL_CALLS),
    ],
)
def test_calls_decide_the_finish_unless_the_provider_cut_it(
    raw: str, without_calls: FinishReason, with_calls: FinishReason
) -> None:
    assert finish_of(chunk(content="x"), chunk(finish=raw)) is without_calls
    assert finish_of(chunk(tool_calls=[CALL]), chunk(finish=raw)) is with_calls


def test_a_refusal_is_text_with_a_reason_of_its_own() -> None:
    deltas = decode(chunk(refusal="I "), chunk(refusal="will not."), chunk(finish="stop"))
    assert text_of(deltas) == "I will not."
    assert deltas[-1] == FinishDelta(reason=FinishReason.REFUSAL, raw="stop")


HALF = {"index": 0, "id": "a", "function": {"name": "read", "arguments": '{"path":"a'}}


@pytest.mark.parametrize(
    "events",
    [
        [],
        [DONE],
        [chunk(role="assistant", content="")],
        [chunk(content="half")],
        [chunk(tool_calls=[HALF])],
        [chunk(tool_calls=[CALL])],
        [chunk(tool_calls=[HALF]), DONE],
        [event(choices=[], usage=USAGE), DONE],
        [chunk(content="x"), chunk(finish="abort")],
    ],
)
def test_an_answer_without_its_end_is_incomplete(events: list[JsonEvent]) -> None:
    assert failure(*events).kind is ModelErrorKind.INCOMPLETE


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([chunk(content="x"), chunk(finish="stop")], FinishReason.STOP),
        ([chunk(content="x"), DONE], FinishReason.STOP),
        ([chunk(content="x", finish=""), chunk(finish=""), DONE], FinishReason.STOP),
        ([chunk(tool_calls=[CALL]), DONE], FinishReason.TOOL_CALLS),
        ([chunk(tool_calls=[HALF]), chunk(finish="length")], FinishReason.LENGTH),
        ([chunk(finish="stop"), DONE], FinishReason.STOP),
    ],
)
def test_a_finish_reason_or_an_end_mark_is_enough(events: list[JsonEvent], reason: FinishReason) -> None:
    assert finish_of(*events) is reason


@pytest.mark.parametrize("before", [[], [chunk(content="par")], [chunk(tool_calls=[HALF])]])
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (event(error={"message": "Overloaded", "type": "overloaded_error"}), ModelErrorKind.SERVER),
        (event(error={"message": "Overloaded", "type": "x", "code": 400}), ModelErrorKind.INVALID),
        (
            JsonEvent(value={"message": "Overloaded", "code": "rate_limit_exceeded"}, name="error"),
            ModelErrorKind.RATE,
        ),
        (event(object="error", message="Overloaded", code=400), ModelErrorKind.INVALID),
        (event(error="Overloaded"), ModelErrorKind.SERVER),
        (event(x_groq={"error": "Overloaded"}), ModelErrorKind.SERVER),
        (event(detail="Overloaded"), ModelErrorKind.SERVER),
        (
            event(
                choices=[{"delta": {"content": ""}, "finish_reason": "error"}],
                error={"code": 502, "message": "Overloaded"},
            ),
            ModelErrorKind.SERVER,
        ),
        (
            event(choices=[{"delta": {}, "finish_reason": "error", "error": {"code": 402, "message": "Overloaded"}}]),
            ModelErrorKind.QUOTA,
        ),
        (
            JsonEvent(value=[{"error": {"code": 429, "message": "Overloaded"}}], whole=True),
            ModelErrorKind.RATE,
        ),
    ],
)
def test_an_error_inside_a_success_is_an_error(before: list[JsonEvent], error: JsonEvent, kind: ModelErrorKind) -> None:
    raised = failure(*before, error)
    assert (raised.kind, raised.message) == (kind, "Overloaded")


@pytest.mark.parametrize("raw", ["error", "insufficient_system_resource"])
def test_a_finish_that_is_a_failure_may_be_tried_again(raw: str) -> None:
    error = failure(chunk(content="x"), chunk(finish=raw))
    assert (error.kind, error.code) == (ModelErrorKind.SERVER, raw)


def test_a_whole_json_body_is_one_burst() -> None:
    message = {"role": "assistant", "content": "hi", "tool_calls": [CALL], "reasoning_content": "hm"}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": USAGE}
    assert decode(JsonEvent(value=body, whole=True)) == [
        ReasoningDelta(text="hm"),
        TextDelta(text="hi"),
        CallDelta(key="0", call_id="a", name="read", arguments='{"path":"a"}'),
        UsageDelta(usage=Usage(input=10, output=5)),
        FinishDelta(reason=FinishReason.TOOL_CALLS, raw="stop"),
    ]


def test_a_json_body_that_is_no_completion_is_not_an_empty_answer() -> None:
    error = failure(JsonEvent(value={"status": "up"}, whole=True))
    assert error.kind is ModelErrorKind.INVALID
    assert "status" in error.message


def test_the_old_function_call_form_is_a_call() -> None:
    deltas = decode(
        chunk(function_call={"name": "read", "arguments": ""}),
        chunk(function_call={"arguments": '{"path":'}),
        chunk(function_call={"arguments": '"a"}'}),
        chunk(finish="function_call"),
    )
    calls = [delta for delta in deltas if isinstance(delta, CallDelta)]
    assert "".join(call.arguments for call in calls) == '{"path":"a"}'
    assert {call.key for call in calls} == {"0"}
    assert deltas[-1] == FinishDelta(reason=FinishReason.TOOL_CALLS, raw="function_call")


STREAM = (
    b'data: {"choices":[{"index":0,"delta":{"content":"Gr\\u00fc\xc3\x9fe "}}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":'
    b'{"name":"read","arguments":"{}"}}]}}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n'
)
SPELLINGS = [
    STREAM,
    STREAM.replace(b"\n", b"\r\n"),
    STREAM.replace(b"\n", b"\r"),
    STREAM.replace(b"data: ", b"data:"),
    b"\xef\xbb\xbf: ping\n\n" + STREAM.replace(b"\n\n", b"\n\n: ping\n\n"),
    STREAM.replace(b"data:", b"id: 1\nretry: 5\ndata:"),
    STREAM.replace(b"data: [DONE]\n\n", b""),
]


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(SPELLINGS), st.integers(1, 40))
def test_every_spelling_of_a_stream_at_every_boundary_is_the_same_answer(stream: bytes, size: int) -> None:
    sse = SseDecoder()
    arrived = [e for at in range(0, len(stream), size) for e in sse.feed(stream[at : at + size])] + sse.close()
    events = [
        DONE if e.is_done else JsonEvent(value=value)
        for e in arrived
        for value in ([None] if e.is_done else event_values(e))
    ]
    assert decode(*events) == [
        TextDelta(text="Grüße "),
        CallDelta(key="0", call_id="a", name="read", arguments="{}"),
        FinishDelta(reason=FinishReason.TOOL_CALLS, raw="tool_calls"),
    ]


CHUNK_KEYS = (
    *("choices", "delta", "message", "content", "tool_calls", "function", "index", "id", "name", "arguments"),
    *("finish_reason", "usage", "error", "reasoning_details", "x_groq", "type", "text"),
)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(CHUNK_KEYS), inner, max_size=4),
    max_leaves=12,
)
ENTRY = st.dictionaries(st.sampled_from(["index", "id", "type", "text", "data", "function", "extra"]), JSON, max_size=4)
DELTA = st.fixed_dictionaries(
    {}, optional={"content": JSON, "tool_calls": JSON | st.lists(ENTRY), "reasoning_details": JSON | st.lists(ENTRY)}
)
CHUNK = st.fixed_dictionaries({"choices": st.lists(st.fixed_dictionaries({"delta": DELTA}), max_size=2)})


@settings(max_examples=100, deadline=None)
@given(st.lists(JSON | CHUNK, max_size=4), st.booleans())
def test_no_json_whatever_breaks_the_decoder(values: list[Any], whole: bool) -> None:
    outcome: list[ModelDelta | ModelError]
    try:
        outcome = [*decode(*(JsonEvent(value=value, whole=whole) for value in values), chunk(finish="stop"))]
    except ModelError as error:
        outcome = [error]
    assert isinstance(outcome[-1], (FinishDelta, ModelError))
