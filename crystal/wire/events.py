"""Reads a model's response body as JSON events, whether it came as server-sent events, JSON lines or one JSON text.

It tells a stream from a page by the first byte, not by the content type, which gateways get wrong.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Callable
from typing import Any, Protocol

from crystal.types._frozen import Frozen
from crystal.types.model import ModelError, ModelErrorKind
from crystal.wire.errors import foreign_body_error
from crystal.wire.http import TransportLimits
from crystal.wire.json_lines import JsonLinesDecoder
from crystal.wire.lines import MAX_LINE_BYTES
from crystal.wire.sse import EXCERPT, ServerEvent, SseDecoder, event_values

_BLANK = b" \t\r\n"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class ByteSource(Protocol):
    """A body that arrives in pieces; :class:`crystal.wire.http.StreamedResponse` is one."""

    async def next_chunk(self, within: float | None = None) -> bytes | None:
        """Return the next bytes, or ``None`` at the end; see :class:`crystal.wire.http.StreamedResponse`."""


class JsonEvent(Frozen):
    """One event of a response.

    :param value: the JSON value, ``None`` for the ``[DONE]`` mark.
    :param name: the event's name, empty when it has none.
    :param whole: the body was a single JSON text instead of a stream.
    :param done: this is the ``[DONE]`` mark.
    """

    value: Any
    name: str = ""
    whole: bool = False
    done: bool = False


class EventReader:
    """Reads the events of one body, once.

    :param clock: seconds that never go back.
    """

    def __init__(
        self, source: ByteSource, limits: TransportLimits, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._source = source
        self._limits = limits
        self._clock = clock
        self._answer_is_over = False
        self._last_event = clock()

    def expect_end(self) -> None:
        """Say that the answer is complete: a short silence and a broken connection now count as its end."""
        self._answer_is_over = True

    async def events(self) -> AsyncGenerator[JsonEvent, None]:
        """Yield the events; close the generator when leaving it early.

        :raises ModelError: kind TIMEOUT when the stream hangs or keeps itself alive with comments only,
            NETWORK when it breaks, INCOMPLETE when it holds broken JSON, INVALID when it is a page for
            people.
        """
        head = await self._head()
        if head.startswith((b"{", b"[")):
            for event in _body_events(await self._rest(head)):
                yield event
            return
        if head.startswith(b"<"):
            raise foreign_body_error((await self._rest(head, EXCERPT * 20)).decode("utf-8", "replace"))
        decoder = SseDecoder()
        chunk: bytes | None = head
        while chunk:
            events = decoder.feed(chunk)
            self._note_progress(events)
            for arrived in events:
                for event in _values(arrived):
                    yield event
            chunk = await self._next()
        for arrived in decoder.close():
            for event in _values(arrived):
                yield event

    async def _head(self) -> bytes:
        """Return the body from its first visible byte; servers send blank lines while they think."""
        head = b""
        while (chunk := await self._next()) is not None:
            head += chunk
            if _BYTE_ORDER_MARK.startswith(head[:3]) and len(head) < 3:
                continue
            head = head.removeprefix(_BYTE_ORDER_MARK).lstrip(_BLANK)
            if head:
                return head
            self._note_progress([])
        return head

    async def _next(self) -> bytes | None:
        while True:
            try:
                chunk = await self._source.next_chunk(self._limits.grace if self._answer_is_over else None)
            except ModelError:
                if self._answer_is_over:
                    return None
                raise
            # An empty piece carries nothing and must not look like the end.
            if chunk is None or chunk:
                return chunk

    async def _rest(self, head: bytes, limit: int = MAX_LINE_BYTES) -> bytes:
        body = bytearray(head)
        while len(body) <= limit and (chunk := await self._next()) is not None:
            body += chunk
        return bytes(body)

    def _note_progress(self, events: list[ServerEvent]) -> None:
        now = self._clock()
        if events:
            self._last_event = now
        elif now - self._last_event > self._limits.event:
            raise ModelError(
                ModelErrorKind.TIMEOUT,
                f"The provider kept the connection open for {self._limits.event:g} seconds and said nothing.",
            )


def _values(event: ServerEvent) -> list[JsonEvent]:
    if event.is_done:
        return [JsonEvent(value=None, name=event.name, done=True)]
    return [JsonEvent(value=value, name=event.name) for value in event_values(event)]


def _body_events(body: bytes) -> list[JsonEvent]:
    text = body.decode("utf-8", "replace")
    try:
        return [JsonEvent(value=json.loads(text), whole=True)]
    except (ValueError, RecursionError):
        pass
    lines = JsonLinesDecoder()
    values = [*lines.feed(body), *lines.close()]
    return [JsonEvent(value=value) for value in values]
