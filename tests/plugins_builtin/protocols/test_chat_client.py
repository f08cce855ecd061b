"""The chat client against a real server: what it sends, streams, repeats and gives up (G20 to G22, G29, G53, G55)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from email.utils import formatdate
from typing import Any, cast

import pytest

from crystal.types.model import (
    CallDelta,
    ClientRequest,
    FinishDelta,
    FinishReason,
    ModelDelta,
    ModelError,
    ModelErrorKind,
    ModelRequest,
    ModelSettings,
    NoticeDelta,
    Purpose,
    TextDelta,
    Usage,
    UsageDelta,
)
from crystal.wire.http import TransportLimits
from plugins_builtin.protocols.chat_client import ChatClient, ChatEndpoint
from plugins_builtin.protocols.chat_endpoint import chat_headers, chat_url, request_dialect
from tests.local_server import (
    Answer,
    HangUp,
    LocalServer,
    Recorded,
    Repeat,
    Wait,
    chat_answer,
    json_answer,
    sse_answer,
)
from tests.plugins_builtin.protocols.transcripts import load_image, system, user

MODEL = ModelSettings(name="m", context_window=8000, max_tokens=64, temperature=0.1)
ASKED = ModelRequest(purpose=Purpose.WORK, items=(system(), user("hi")))
QUICK = TransportLimits(first_byte=0.2, idle=0.2, event=0.2, grace=0.1, drain=0.05)
NOW = 1_790_000_000.0


@pytest.fixture(autouse=True)
def without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def client_for(server: LocalServer, limits: TransportLimits | None = None, model: ModelSettings = MODEL) -> ChatClient:
    request = ClientRequest(
        provider="local", protocol="openai", base_uri=server.base_uri + "/v1", api_key="key-1", model=model
    )
    endpoint = ChatEndpoint(url=chat_url(request.base_uri), headers=chat_headers(request))
    return ChatClient(request, endpoint, request_dialect(request), limits=limits, wall_clock=lambda: NOW)


async def stream(client: ChatClient, request: ModelRequest = ASKED) -> list[ModelDelta]:
    return [delta async for delta in client.stream(request, load_image)]


def ask(*answers: Answer, times: int = 1, **options: Any) -> tuple[list[ModelDelta], list[Recorded]]:
    """Ask ``times`` times with one client; return the deltas of the last answer and all requests."""

    async def inside() -> list[ModelDelta]:
        client = client_for(server, **options)
        try:
            for _ in range(times):
                deltas = await stream(client)
            return deltas
        finally:
            await client.aclose()

    with LocalServer(answers) as server:
        return asyncio.run(inside()), server.requests


def refused(*answers: Answer, **options: Any) -> tuple[ModelError, list[Recorded]]:
    async def inside() -> None:
        client = client_for(server, **options)
        try:
            with pytest.raises(ModelError) as caught:
                await stream(client)
            errors.append(caught.value)
        finally:
            await client.aclose()

    errors: list[ModelError] = []
    with LocalServer(answers) as server:
        asyncio.run(inside())
    return errors[0], server.requests


def text_of(deltas: list[ModelDelta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


def test_a_request_is_answered_with_deltas_and_its_connection_serves_the_next() -> None:
    deltas, requests = ask(chat_answer("Hi."), chat_answer("Hi.", [("c1", "read", {"path": "a"})]), times=2)
    assert deltas == [
        TextDelta(text="Hi."),
        CallDelta(key="0", call_id="c1", name="read", arguments='{"path": "a"}'),
        UsageDelta(usage=Usage(input=10, output=5)),
        FinishDelta(reason=FinishReason.TOOL_CALLS, raw="tool_calls"),
    ]
    assert {request.connection for request in requests} == {1}
    assert requests[0].path == "/v1/chat/completions"
    assert requests[0].headers["authorization"] == "Bearer key-1"
    assert requests[0].json == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.1,
        "max_tokens": 64,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
    }


PAYLOAD = sse_answer(
    {"choices": [{"delta": {"content": "Grüße "}}]},
    {"choices": [{"delta": {"content": "dir"}, "finish_reason": "stop"}]},
)
WIRE = b"".join(chunk for chunk in PAYLOAD.chunks if isinstance(chunk, bytes))
SPELLINGS = {
    "lf": WIRE,
    "crlf": WIRE.replace(b"\n", b"\r\n"),
    "cr": WIRE.replace(b"\n", b"\r"),
    "no space": WIRE.replace(b"data: ", b"data:"),
    "comments": b": hello\n\n" + WIRE.replace(b"\n\n", b"\n\n: ping\n\n"),
    "mark": b"\xef\xbb\xbf" + WIRE,
    "no end": WIRE.rstrip(),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("size", [1, 5, 10_000])
def test_a_stream_may_be_spelt_and_cut_in_any_way(spelling: str, size: int) -> None:
    wire = SPELLINGS[spelling]
    deltas, _ = ask(Answer(chunks=[wire[at : at + size] for at in range(0, len(wire), size)]))
    assert deltas == [
        TextDelta(text="Grüße "),
        TextDelta(text="dir"),
        FinishDelta(reason=FinishReason.STOP, raw="stop"),
    ]


@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream", "text/plain"])
def test_a_whole_json_answer_is_taken_whatever_it_calls_itself(content_type: str) -> None:
    body = b'{"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}'
    deltas, _ = ask(Answer(chunks=[b"\n\n", body[:9], body[9:]], headers={"content-type": content_type}))
    assert deltas == [TextDelta(text="hi"), FinishDelta(reason=FinishReason.STOP, raw="stop")]


def finished(*rest: bytes | HangUp | Wait | Repeat) -> Answer:
    return Answer(chunks=[b'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n', *rest])


@pytest.mark.parametrize(
    "rest", [(), (HangUp(),), (Wait(),), (b"data: [DONE]\n\n", Wait()), (b"data: [DONE]\n\n", HangUp())]
)
def test_a_complete_answer_is_kept_whatever_the_connection_does_next(rest: tuple[Any, ...]) -> None:
    deltas, _ = ask(finished(*rest), limits=QUICK)
    assert text_of(deltas) == "hi"
    assert deltas[-1] == FinishDelta(reason=FinishReason.STOP, raw="stop")


HALF = (
    b'data: {"choices":[{"delta":{"tool_calls":'
    b'[{"index":0,"id":"a","function":{"name":"read","arguments":"{"}}]}}]}\n\n'
)


@pytest.mark.parametrize(
    ("chunks", "kind"),
    [
        ([], ModelErrorKind.INCOMPLETE),
        ([HALF], ModelErrorKind.INCOMPLETE),
        ([HALF, b'data: {"choi'], ModelErrorKind.INCOMPLETE),
        ([HALF, b'data: {"choi\n\n'], ModelErrorKind.INCOMPLETE),
        ([HALF, b"data: [DONE]\n\n"], ModelErrorKind.INCOMPLETE),
        ([HALF, HangUp()], ModelErrorKind.NETWORK),
        ([HALF, Wait()], ModelErrorKind.TIMEOUT),
        ([HALF, Repeat(b": keep-alive\n\n")], ModelErrorKind.TIMEOUT),
        ([Repeat(b"\n\n")], ModelErrorKind.TIMEOUT),
        ([HALF, b'data: {"error":{"type":"overloaded_error","message":"m"}}\n\n'], ModelErrorKind.SERVER),
        ([b"<html><body>Sign in"], ModelErrorKind.INVALID),
    ],
)
def test_an_answer_that_breaks_off_is_an_error(chunks: list[Any], kind: ModelErrorKind) -> None:
    error, requests = refused(Answer(chunks=chunks), limits=QUICK)
    assert error.kind is kind
    assert len(requests) == 1


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (
            json_answer({"error": {"code": "insufficient_quota", "message": "words"}}, 429),
            ModelErrorKind.QUOTA,
        ),
        (json_answer({"error": {"message": "words"}}, 429), ModelErrorKind.RATE),
        (
            json_answer({"error": {"type": "overloaded_error", "message": "words"}}, 529),
            ModelErrorKind.SERVER,
        ),
        (json_answer({"error": {"message": "words"}}, 402), ModelErrorKind.QUOTA),
        (json_answer({"error": {"message": "words"}}, 400), ModelErrorKind.INVALID),
        (json_answer({"error": {"message": "words"}}, 401), ModelErrorKind.AUTH),
        (json_answer({"error": {"message": "words"}}, 503), ModelErrorKind.SERVER),
        (
            json_answer({"error": {"message": "words", "code": "context_length_exceeded"}}, 400),
            ModelErrorKind.OVERFLOW,
        ),
    ],
)
def test_a_refusal_is_one_request_and_has_the_providers_words(answer: Answer, kind: ModelErrorKind) -> None:
    error, requests = refused(answer)
    assert (error.kind, error.message, error.status) == (kind, "words", answer.status)
    assert len(requests) == 1


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": formatdate(NOW + 5, usegmt=True)}, 5.0),
        ({"retry_after": formatdate(NOW - 5, usegmt=True)}, 0.0),
        ({"retry_after": "3"}, 3.0),
        ({"retry_after_ms": "1500"}, 1.5),
        ({"retry_after_ms": "1500", "retry_after": "3"}, 1.5),
        ({"retry_after": formatdate(NOW + 864_000, usegmt=True)}, 864_000.0),
        ({}, None),
    ],
)
def test_the_wait_that_a_provider_asks_for_reaches_the_engine(headers: dict[str, str], seconds: float | None) -> None:
    error, _ = refused(json_answer({"error": {"message": "m"}}, 429, **headers))
    assert error.retry_after == seconds


def test_an_error_body_that_breaks_off_does_not_hide_the_status() -> None:
    error, _ = refused(Answer(status=503, chunks=[b'{"error', HangUp()]))
    assert (error.kind, error.status) == (ModelErrorKind.SERVER, 503)


class Picky:
    """A server that refuses fields with a 400, one at a time."""

    def __init__(self, *fields: str) -> None:
        self.fields = fields

    def __call__(self, request: Recorded) -> Answer:
        for field in self.fields:
            if field in request.json:
                message = f"Unsupported parameter: '{field}' is not supported with this model."
                return json_answer({"error": {"message": message, "param": field}}, 400)
        return chat_answer("fine")


def converse(server: LocalServer, times: int, model: ModelSettings = MODEL) -> tuple[list[str], tuple[str, ...]]:
    async def inside() -> tuple[list[str], tuple[str, ...]]:
        client = client_for(server, model=model)
        try:
            answers = [await stream(client) for _ in range(times)]
            notices = [delta.text for answer in answers for delta in answer if isinstance(delta, NoticeDelta)]
            return [text_of(answer) for answer in answers], tuple(notices)
        finally:
            await client.aclose()

    return asyncio.run(inside())


def test_refused_fields_are_dropped_and_stay_dropped() -> None:
    with LocalServer(Picky("stream_options", "temperature")) as server:
        texts, changes = converse(server, 2)
    assert texts == ["fine", "fine"]
    assert [change.partition("now on: ")[2] for change in changes] == [
        "stream_options left out.",
        "temperature left out.",
    ]
    assert len(server.requests) == 4
    assert not {"stream_options", "temperature"} & server.requests[-1].json.keys()


def test_the_output_limit_goes_under_its_other_name() -> None:
    with LocalServer(Picky("max_tokens")) as server:
        texts, changes = converse(server, 2)
    assert texts == ["fine", "fine"]
    [change] = changes
    assert change.endswith("from now on: max_tokens sent as max_completion_tokens.")
    limits = [{k: v for k, v in request.json.items() if k.startswith("max")} for request in server.requests]
    assert limits == [{"max_tokens": 64}, {"max_completion_tokens": 64}, {"max_completion_tokens": 64}]


def test_a_limit_refused_under_both_names_is_shown_with_the_providers_words() -> None:
    with (
        LocalServer(Picky("max_tokens", "max_completion_tokens")) as server,
        pytest.raises(ModelError, match="'max_completion_tokens' is not supported") as caught,
    ):
        converse(server, 1)
    assert caught.value.kind is ModelErrorKind.INVALID
    assert len(server.requests) == 2


def test_a_limit_that_the_operator_named_is_shown_when_it_is_refused() -> None:
    named = ModelSettings(name="m", context_window=8000, max_tokens=64, limit_field="max_tokens")
    with LocalServer(Picky("max_tokens")) as server, pytest.raises(ModelError, match="'max_tokens' is not supported"):
        converse(server, 1, named)
    assert len(server.requests) == 1


def test_a_server_that_refuses_for_ever_is_not_asked_for_ever() -> None:
    words = "unsupported: stream_options temperature max_tokens max_completion_tokens top_p reasoning_effort"
    with (
        LocalServer(lambda request: json_answer({"error": {"message": words}}, 400)) as server,
        pytest.raises(ModelError, match="unsupported"),
    ):
        converse(server, 1)
    assert len(server.requests) <= 5


@pytest.mark.parametrize("chunks", [[Wait()], [b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n', Wait()]])
def test_cancelling_closes_the_connection_and_the_client_goes_on(chunks: list[Any]) -> None:
    async def inside() -> str:
        client = client_for(server)
        task = asyncio.create_task(stream(client))
        assert await asyncio.to_thread(server.arrived.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.client_left.wait, 10)
        text = text_of(await stream(client))
        await client.aclose()
        return text

    with LocalServer([Answer(chunks=chunks), chat_answer("next")]) as server:
        assert asyncio.run(inside()) == "next"


def test_leaving_a_stream_early_closes_the_connection() -> None:
    async def inside() -> None:
        client = client_for(server)
        deltas = cast("AsyncGenerator[ModelDelta, None]", client.stream(ASKED, load_image))
        assert await anext(deltas) == TextDelta(text="a")
        await deltas.aclose()
        assert await asyncio.to_thread(server.client_left.wait, 10)
        await client.aclose()

    with LocalServer([Answer(chunks=[b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n', Wait()])]) as server:
        asyncio.run(inside())


def test_deltas_arrive_while_the_answer_is_still_being_made() -> None:
    async def inside() -> list[ModelDelta]:
        client = client_for(server)
        got = []
        async for delta in client.stream(ASKED, load_image):
            got.append(delta)
            gate.event.set()
        await client.aclose()
        return got

    gate = Wait()
    first, *rest = chat_answer("a").chunks[1:]
    with LocalServer([Answer(chunks=[first, gate, *rest])]) as server:
        assert text_of(asyncio.run(inside())) == "a"
