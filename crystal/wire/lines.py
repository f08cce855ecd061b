"""Cuts a byte stream into lines at any chunk boundary; bytes are decoded later, one whole line at a time."""

from __future__ import annotations

from crystal.types.model import ModelError, ModelErrorKind

MAX_LINE_BYTES = 64 * 1024 * 1024
"""Longest line accepted: encrypted reasoning and images make lines of megabytes, but memory stays bounded."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class LineSplitter:
    """Split at LF, CR or CRLF, mixed as they come; a byte order mark at the very start is dropped."""

    def __init__(self, limit: int = MAX_LINE_BYTES) -> None:
        self._limit = limit
        self._pending = bytearray()
        self._after_carriage_return = False
        self._at_start = True

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that ``chunk`` completes, without their ends.

        :raises ModelError: when one line is longer than the limit.
        """
        if self._after_carriage_return and chunk:
            self._after_carriage_return = False
            if chunk.startswith(b"\n"):
                chunk = chunk[1:]
        if not chunk:
            return []
        # bytes.splitlines cuts at LF, CR and CRLF only; str.splitlines would also cut inside JSON strings.
        lines = chunk.splitlines()
        self._after_carriage_return = chunk.endswith(b"\r")
        rest = b"" if chunk.endswith((b"\n", b"\r")) else lines.pop()
        if lines:
            if self._pending:
                lines[0] = bytes(self._pending) + lines[0]
                self._pending.clear()
            if self._at_start:
                lines[0] = self._without_mark(lines[0])
            self._check(max(map(len, lines)))
        self._pending += rest
        self._check(len(self._pending))
        return lines

    def close(self) -> bytes | None:
        """Return the last line when the stream ended without a line end, else ``None``."""
        line = self._without_mark(bytes(self._pending)) if self._at_start else bytes(self._pending)
        self._pending.clear()
        return line or None

    def _without_mark(self, line: bytes) -> bytes:
        self._at_start = False
        return line.removeprefix(_BYTE_ORDER_MARK)

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise ModelError(
                ModelErrorKind.INVALID,
                f"The provider sent a line longer than {self._limit:,} bytes; the rest was not read.",
            )
