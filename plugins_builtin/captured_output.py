"""What a child prints, in bounded memory: head and tail of each stream kept, live lines passed on.

Works on bytes and counts exactly what is left out. Starts nothing and prints nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from crystal.workspace.limits import OUTPUT_CHARACTERS

_RESERVED = 400
"""Room for the status line and the lines that tell of a cut."""

_EDGE_BYTES = 4 * (OUTPUT_CHARACTERS // 2) + 4
"""Bytes kept at each end of a stream: half the characters at four bytes each, and a torn one at the seam."""

LIVE_LINES = 20
"""Most lines passed on from one read; a flood shows its newest lines only."""

LIVE_CHARACTERS = 500

SEAM_CHARACTERS = 256
"""Characters beside a cut in which a blank is looked for, so that no half of a word, which may be a secret, is left."""

_OPEN_BYTES = 4 * LIVE_CHARACTERS + 4
"""Bytes kept of a line that has no end yet: always more characters than are shown of it."""


class KeptOutput:
    """Head and tail of one stream."""

    def __init__(self) -> None:
        self.total = 0
        self._head = bytearray()
        self._tail = bytearray()

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self.total += len(data)
        free = _EDGE_BYTES - len(self._head)
        if free > 0:
            self._head += data[:free]
            data = data[free:]
        self._tail += data[-_EDGE_BYTES:]
        if len(self._tail) > 2 * _EDGE_BYTES:
            del self._tail[:-_EDGE_BYTES]

    def characters(self) -> int:
        """Return how many characters the kept text has; more than fit in a result when the stream was cut."""
        if self._whole():
            return len(_decode(self._head + self._tail))
        return self.total

    def text(self, characters: int) -> str:
        """Return the text within ``characters``; a longer one is cut in the middle and says how many bytes.

        No word is cut in two unless it is longer than :data:`SEAM_CHARACTERS`, and of such a one that many are left out
        beside the cut: whoever looks for secrets in the text would not know a half of one.
        """
        if self._whole():
            whole = _decode(self._head + self._tail)
            if len(whole) <= characters:
                return _shown(whole)
            first, last = whole, whole
        else:
            first, last = _decode(self._head), _decode(self._tail)
        start = _before_cut(first[: characters - characters // 2])
        end = _after_cut(last[len(last) - characters // 2 :])
        missing = self.total - _size(start) - _size(end)
        return f"{_shown(start)}\n[... {missing:,} bytes left out ...]\n{_shown(end)}"

    def _whole(self) -> bool:
        return self.total == len(self._head) + len(self._tail)


def _before_cut(text: str) -> str:
    """Return a text that is cut at its end without the word at the cut."""
    kept = len(text) - SEAM_CHARACTERS
    for at in range(len(text) - 1, max(kept, 0) - 1, -1):
        if text[at].isspace():
            return text[: at + 1]
    return text[: max(kept, 0)]


def _after_cut(text: str) -> str:
    """Return a text that is cut at its beginning without the word at the cut."""
    for at in range(min(len(text), SEAM_CHARACTERS)):
        if text[at].isspace():
            return text[at:]
    return text[SEAM_CHARACTERS:]


def _decode(data: bytes | bytearray) -> str:
    """Decode so that every byte that is no UTF-8 stays countable."""
    return data.decode("utf-8", "surrogateescape")


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _shown(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def join_streams(stdout: KeptOutput, stderr: KeptOutput) -> str:
    """Return both streams, standard output first, within what one result may hold; a text ends with a newline.

    Each stream may take half; what one leaves free the other takes.
    """
    room = OUTPUT_CHARACTERS - _RESERVED
    wanted_out, wanted_err = stdout.characters(), stderr.characters()
    half = room // 2
    room_err = min(wanted_err, max(half, room - wanted_out))
    room_out = min(wanted_out, room - room_err)
    parts = [stream.text(size) for stream, size in ((stdout, room_out), (stderr, room_err)) if stream.total]
    return "".join(part if part.endswith("\n") else part + "\n" for part in parts)


class LiveLines:
    """Passes the lines of one stream on as they come, made safe for a terminal.

    :param show: gets each line without its end, control characters replaced, at most :data:`LIVE_CHARACTERS` long; a
        longer one is cut between two words as in :meth:`KeptOutput.text`.
    """

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._open = b""

    def feed(self, data: bytes) -> None:
        """Take the next bytes; lines beyond the newest :data:`LIVE_LINES` of this read are not shown."""
        # The first part may hold more lines than one, but then there are enough after it.
        *lines, rest = data.rsplit(b"\n", LIVE_LINES + 1)
        if lines:
            lines[0] = self._open + lines[0]
            self._open = b""
        self._open = _newest_state(self._open + rest)
        for line in lines[-LIVE_LINES:]:
            self._pass_on(line)

    def finish(self) -> None:
        """Show a last line that has no end."""
        if self._open:
            self._pass_on(self._open)
            self._open = b""

    def _pass_on(self, line: bytes) -> None:
        text = _newest_state(line).rstrip(b"\r").decode("utf-8", "replace")
        if len(text) > LIVE_CHARACTERS:
            text = _before_cut(text[:LIVE_CHARACTERS])
        self._show("".join(character if character.isprintable() else " " for character in text.expandtabs(4)))


def _newest_state(line: bytes) -> bytes:
    """Return what a line shows last, in bounded memory: a progress bar rewrites it after each carriage return."""
    state = line[line.rstrip(b"\r").rfind(b"\r") + 1 :]
    ending = b"\r" if state.endswith(b"\r") else b""
    return state.rstrip(b"\r")[:_OPEN_BYTES] + ending
