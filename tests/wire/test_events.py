"""A body is read as what it is: a stream, one JSON text, lines, or a page that is no answer at all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from crystal.types.model import ModelError, ModelErrorKind
from crystal.wire.events import EventReader, JsonEvent
from crystal.wire.http import TransportLimits

LIMITS = TransportLimits(event=600.0, grace=5.0)


class Pieces:
    """A body in memory. A number among the pieces is time that passes; an error among them is raised."""

    def __init__(self, pieces: Iterable[bytes | float | ModelError]) -> None:
        self._pieces = list(pieces)
        self.now = 0.0
        self.waits: list[float | None] = []

    def clock(self) -> float:
        return self.now

    async def next_chunk(self, within: float | None = None) -> bytes | None:
        self.waits.append(within)
        while self._pieces:
            piece = self._pieces.pop(0)
            if isinstance(piece, ModelError):
                raise piece
            if isinstance(piece, bytes):
                return piece
            self.now += piece
        return None


def read(*pieces: bytes | float | ModelError, over_after: int = 1000) -> list[JsonEvent]:
    async def collect() -> list[JsonEvent]:
        source = Pieces(pieces)
        reader = EventReader(source, LIMITS, source.clock)
        events = []
        async for event in reader.events():
            events.append(event)
            if len(events) == over_after:
                reader.expect_end()
        return events

    return asyncio.run(collect())


def test_a_stream_gives_its_events_and_its_end_mark() -> None:
    assert read(b'data: {"a":1}\n\nevent: error\nda', b'ta: {"b":2}\n\n', b"data: [DONE]\n\n") == [
        JsonEvent(value={"a": 1}),
        JsonEvent(value={"b": 2}, name="error"),
        JsonEvent(value=None, done=True),
    ]


@pytest.mark.parametrize("lead", [b"", b"\xef\xbb\xbf", b"\n\n \r\n", b"\xef\xbb\xbf\n"])
@pytest.mark.parametrize("size", [1, 2, 100])
def test_one_json_text_is_told_from_a_stream_by_its_first_byte(lead: bytes, size: int) -> None:
    body = lead + b'{"choices": [\n\n]}'
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    assert read(*pieces) == [JsonEvent(value={"choices": []}, whole=True)]


def test_json_lines_without_data_fields_are_read_too() -> None:
    assert read(b'{"a":1}\n{"a"', b":2}\n") == [JsonEvent(value={"a": 1}), JsonEvent(value={"a": 2})]


def test_an_empty_body_has_no_events() -> None:
    assert read() == read(b"") == read(b"\n\n") == read(b": hello\n\n") == []


def test_an_empty_piece_is_not_the_end() -> None:
    assert read(b"", b"data: 1\n\n", b"", b"data: 2\n\n") == [JsonEvent(value=1), JsonEvent(value=2)]


def test_a_page_for_people_is_an_error_that_shows_its_beginning() -> None:
    with pytest.raises(ModelError, match="no API answer: <html> <h1>Sign in") as caught:
        read(b"\n<html>\n <h1>Sign", b" in</h1>" * 1000)
    assert caught.value.kind is ModelErrorKind.INVALID
    assert len(caught.value.message) < 300


def test_json_that_is_cut_off_is_incomplete() -> None:
    with pytest.raises(ModelError) as caught:
        read(b'{"choices": [')
    assert caught.value.kind is ModelErrorKind.INCOMPLETE


@pytest.mark.parametrize("filler", [b": keep-alive\n\n", b"\n", b"event: ping\n\n"])
def test_comments_alone_do_not_keep_a_dead_stream_alive(filler: bytes) -> None:
    dead: list[bytes | float | ModelError] = [100.0, filler] * 8
    with pytest.raises(ModelError) as caught:
        read(*dead, b"data: 1\n\n")
    assert caught.value.kind is ModelErrorKind.TIMEOUT


def test_an_event_now_and_then_keeps_a_slow_stream_alive() -> None:
    slow: list[bytes | float | ModelError] = [500.0, b": x\n\n", 50.0, b"data: 1\n\n"] * 5
    assert len(read(*slow)) == 5


@pytest.mark.parametrize("kind", [ModelErrorKind.NETWORK, ModelErrorKind.TIMEOUT])
def test_a_broken_connection_after_the_answer_is_its_end(kind: ModelErrorKind) -> None:
    broken = ModelError(kind, "gone")
    assert read(b"data: 1\n\n", broken, over_after=1) == [JsonEvent(value=1)]
    with pytest.raises(ModelError):
        read(b"data: 1\n\n", broken)


def test_what_follows_the_answer_is_waited_for_only_shortly() -> None:
    async def waits() -> list[float | None]:
        source = Pieces([b"data: 1\n\n", b"data: 2\n\n"])
        reader = EventReader(source, LIMITS, source.clock)
        async for _ in reader.events():
            reader.expect_end()
        return source.waits

    assert asyncio.run(waits()) == [None, LIMITS.grace, LIMITS.grace]
