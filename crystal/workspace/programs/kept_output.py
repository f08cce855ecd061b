"""What a child printed, in bounded memory: head and tail of each stream, shown as a reader of text can use them.

Works on bytes and counts exactly what is left out. Starts nothing and prints nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from crystal.workspace.limits import OUTPUT_CHARACTERS

_RESERVED = 400
"""Room for the status line and the lines that tell of a cut or of what cannot be shown."""

_EDGE_BYTES = 4 * (OUTPUT_CHARACTERS // 2) + 4
"""Bytes kept at each end of a stream: half the characters at four bytes each, and a torn one at the seam."""

SEAM_CHARACTERS = 2_048
"""Characters beside a cut in which a blank is looked for, so that no half of a word, which may be a secret, is left."""

_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]"  # colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b\n]{0,2048}(?:\x07|\x1b\\)"  # titles, links and other strings
    r"|\x1b[ -/]{0,8}[0-~]"
)
"""Terminal sequences; a string that is not ended in time is text after a short sequence."""

_NO_TEXT = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\udc80-\udcff]")
_CONTROLS = dict.fromkeys([*range(9), 11, *range(14, 32), *range(127, 160)], "\ufffd")


class Shown(NamedTuple):
    """Output as text.

    :param unreadable: whether bytes that are no text were replaced by U+FFFD.
    :param overwritten: how many states of progress lines are left out, since a carriage return began them anew.
    """

    text: str
    unreadable: bool = False
    overwritten: int = 0


class KeptOutput:
    """Head and tail of one stream."""

    def __init__(self) -> None:
        self.total = 0
        self._head = bytearray()
        self._tail = bytearray()

    def feed(self, data: bytes | memoryview) -> None:
        """Take the next bytes of the stream."""
        self.total += len(data)
        free = _EDGE_BYTES - len(self._head)
        if free > 0:
            self._head += data[:free]
            data = data[free:]
        self._tail += data[-_EDGE_BYTES:]
        if len(self._tail) > 2 * _EDGE_BYTES:
            del self._tail[:-_EDGE_BYTES]

    @property
    def beginning(self) -> int:
        """How many bytes of the beginning are kept; they stay whatever comes after them."""
        return len(self._head)

    def between(self, start: int, end: int) -> tuple[int, bytes]:
        """Return the bytes from ``start`` to ``end`` as far as they are kept, and where they begin.

        Of bytes that reach into what was left out only those behind it are returned.

        :param end: at most :attr:`total`.
        """
        head = len(self._head)
        gap_end = self.total - len(self._tail)
        if end <= head:
            return start, bytes(self._head[start:end])
        if start < head and gap_end == head:
            return start, bytes(self._head[start:] + self._tail[: end - head])
        start = min(max(start, gap_end), end)
        return start, bytes(self._tail[max(start - gap_end, 0) : max(end - gap_end, 0)])

    def characters(self) -> int:
        """Return how many characters the kept text has; more than fit in a result when the stream was cut."""
        if self._whole():
            return len(_decode(self._head + self._tail))
        return self.total

    def shown(self, characters: int) -> Shown:
        """Return the text within ``characters``; a longer one is cut in the middle and says how many bytes.

        No word is cut in two unless it is longer than :data:`SEAM_CHARACTERS`, and of such a one that many are left out
        beside the cut: whoever looks for secrets in the text would not know a half of one.
        """
        if self._whole():
            whole = _decode(self._head + self._tail)
            if len(whole) <= characters:
                return show(whole)
            first, last = whole, whole
        else:
            first, last = _decode(self._head), _decode(self._tail)
        start = _before_cut(first[: characters - characters // 2])
        end = _after_cut(last[len(last) - characters // 2 :])
        missing = self.total - _size(start) - _size(end)
        return _join([show(start), Shown(f"\n[... {missing:,} bytes left out ...]\n"), show(end)])

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


def without_sequences(text: str) -> str:
    """Return a text without terminal sequences."""
    return _SEQUENCE.sub("", text) if "\x1b" in text or "\x9b" in text else text


def show(text: str) -> Shown:
    """Return what a reader gets: no terminal sequences, of a progress line its last state, nothing unprintable.

    :param text: decoded with surrogate escapes.
    """
    text = without_sequences(text)
    overwritten = 0
    if "\r" in text:
        lines = text.split("\n")
        for at, line in enumerate(lines):
            states = line.rstrip("\r").split("\r")
            if len(states) > 1:
                overwritten += sum(1 for state in states[:-1] if state)
                lines[at] = states[-1] + "\r" * (len(line) - len(line.rstrip("\r")))
        text = "\n".join(lines)
    if _NO_TEXT.search(text) is None:
        return Shown(text, overwritten=overwritten)
    text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").translate(_CONTROLS)
    return Shown(text, True, overwritten)


def _join(parts: Sequence[Shown]) -> Shown:
    return Shown(
        "".join(part.text for part in parts),
        any(part.unreadable for part in parts),
        sum(part.overwritten for part in parts),
    )


def join_streams(stdout: KeptOutput, stderr: KeptOutput) -> str:
    """Return both streams, standard output first, within what one result may hold; a text ends with a newline.

    Each stream may take half; what one leaves free the other takes. What could not be shown is said at the end.
    """
    room = OUTPUT_CHARACTERS - _RESERVED
    wanted_out, wanted_err = stdout.characters(), stderr.characters()
    half = room // 2
    room_err = min(wanted_err, max(half, room - wanted_out))
    room_out = min(wanted_out, room - room_err)
    parts = [stream.shown(size) for stream, size in ((stdout, room_out), (stderr, room_err)) if stream.total]
    ended = [part if part.text.endswith("\n") or not part.text else _join([part, Shown("\n")]) for part in parts]
    both = _join(ended)
    text = both.text
    if both.overwritten:
        text += f"({both.overwritten:,} overwritten states of progress lines are left out)\n"
    if both.unreadable:
        text += "(bytes that are no text are shown as U+FFFD)\n"
    return text
