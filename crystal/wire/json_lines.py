"""JSON lines: one JSON value a line, whatever the chunk boundaries."""

from __future__ import annotations

import json
from typing import Any

from crystal.types.model import ModelError, ModelErrorKind
from crystal.wire.lines import MAX_LINE_BYTES, LineSplitter
from crystal.wire.sse import EXCERPT


class JsonLinesDecoder:
    """Incremental decoder of one stream; blank lines are skipped and the last line may lack its end."""

    def __init__(self, limit: int = MAX_LINE_BYTES) -> None:
        self._lines = LineSplitter(limit)

    def feed(self, chunk: bytes) -> list[Any]:
        """Return the values that ``chunk`` completes.

        :raises ModelError: kind INCOMPLETE when a line is not JSON, INVALID when it is longer than the limit.
        """
        return [_value(line) for line in self._lines.feed(chunk) if line.strip()]

    def close(self) -> list[Any]:
        """Return the value of a last line without its end.

        :raises ModelError: kind INCOMPLETE when that line was cut off.
        """
        line = self._lines.close()
        return [_value(line)] if line is not None and line.strip() else []


def _value(line: bytes) -> Any:
    text = line.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ModelError(
            ModelErrorKind.INCOMPLETE, f"The provider sent a line that is not valid JSON: {text[:EXCERPT]}"
        ) from None
