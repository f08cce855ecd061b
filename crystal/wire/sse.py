"""Server-sent events: bytes in, events out, whatever the chunk boundaries. It does not know what they mean."""

from __future__ import annotations

import json
from typing import Any

from crystal.types._frozen import Frozen
from crystal.types.model import ModelError, ModelErrorKind
from crystal.wire.lines import MAX_LINE_BYTES, LineSplitter

EXCERPT = 200
"""Characters of a foreign body shown in an error."""


class ServerEvent(Frozen):
    """One dispatched event.

    :param name: the ``event`` field, empty when there was none.
    :param data: the ``data`` lines joined with LF.
    """

    name: str
    data: str

    @property
    def is_done(self) -> bool:
        """Whether this is the ``[DONE]`` mark that ends a chat stream."""
        return self.data.lstrip().startswith("[DONE]")


class SseDecoder:
    """Incremental decoder of one stream.

    Comments, ``id`` and ``retry`` are ignored: nothing here reconnects.
    """

    def __init__(self, limit: int = MAX_LINE_BYTES) -> None:
        self._lines = LineSplitter(limit)
        self._limit = limit
        self._name = b""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Return the events that ``chunk`` completes.

        :raises ModelError: when a line or an event is larger than the limit.
        """
        events = []
        for line in self._lines.feed(chunk):
            if line:
                self._take(line)
            elif (event := self._dispatch()) is not None:
                events.append(event)
        return events

    def close(self) -> list[ServerEvent]:
        """Return the event that the end of the stream completes.

        The standard discards an event without its empty line; servers end that way, so one whose data is JSON
        or the ``[DONE]`` mark counts.
        """
        line = self._lines.close()
        if line is not None:
            self._take(line)
        event = self._dispatch()
        if event is None or not (event.is_done or _is_json(event.data)):
            return []
        return [event]

    def _take(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._size += len(value)
            if self._size > self._limit:
                raise ModelError(
                    ModelErrorKind.INVALID,
                    f"The provider sent an event larger than {self._limit:,} bytes; the rest was not read.",
                )
        elif field == b"event":
            self._name = value

    def _dispatch(self) -> ServerEvent | None:
        name, data = self._name, self._data
        self._name, self._data, self._size = b"", [], 0
        if not data:
            return None
        return ServerEvent(name=name.decode("utf-8", "replace"), data=b"\n".join(data).decode("utf-8", "replace"))


def event_values(event: ServerEvent) -> list[Any]:
    """Return the JSON values of an event: usually one.

    Data that is no JSON and does not look like it is ignored. Several lines that are one JSON text each count
    as several values, because some servers leave out the empty line between events.

    :raises ModelError: kind INCOMPLETE, for data that begins as JSON and does not parse.
    """
    try:
        return [json.loads(event.data)]
    except (ValueError, RecursionError):
        pass
    values = []
    for line in event.data.split("\n"):
        try:
            values.append(json.loads(line))
        except (ValueError, RecursionError):
            if line.lstrip().startswith(("{", "[")) and not line.lstrip().startswith("[DONE]"):
                raise ModelError(
                    ModelErrorKind.INCOMPLETE,
                    f"The provider sent an event that is not valid JSON: {event.data[:EXCERPT]}",
                ) from None
    return values


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
