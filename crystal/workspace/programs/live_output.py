"""What a running command prints, line by line as it prints it: few lines a second, however much there is.

Reads what :mod:`crystal.workspace.programs.kept_output` keeps; keeps no output of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from crystal.workspace.programs.kept_output import KeptOutput, without_sequences

LIVE_LINES = 20
"""Most lines shown at one time; a flood shows its newest lines only."""

LIVE_SECONDS = 0.2
"""The time between two showings, so that at most a hundred lines a second are shown."""

LIVE_CHARACTERS = 500

UNBROKEN = f"[a line of more than {LIVE_CHARACTERS} characters without a blank]"

_LINE_BYTES = 4 * LIVE_CHARACTERS + 4
"""An unfinished line of more bytes has always more characters than are shown of it."""

_ARRIVALS = 64
"""How often the streams may take turns between two showings and still be shown in the order of their lines."""


class LiveLines:
    """Passes the lines of several streams on, in the order in which they came, made safe for a terminal.

    Only whole lines and whole states of a progress line are shown, so that a secret is never split. A line that is
    too long is shown, once, as far as it will be; the end of one whose beginning was not kept is not shown.

    :param show: gets each line without its end, control characters replaced, at most :data:`LIVE_CHARACTERS` long; a
        longer one is cut between two words, and one that has no blank is only mentioned.
    """

    def __init__(self, show: Callable[[str], None], streams: Sequence[KeptOutput]) -> None:
        self._show = show
        self._streams = [_Stream(kept) for kept in streams]
        self._arrivals: list[tuple[int, int]] = []

    def arrived(self, stream: int) -> None:
        """Note that bytes have come on the stream of this index."""
        end = self._streams[stream].kept.total
        if self._arrivals and self._arrivals[-1][0] == stream:
            self._arrivals[-1] = (stream, end)
            return
        self._arrivals.append((stream, end))
        if len(self._arrivals) > _ARRIVALS:
            del self._arrivals[0]

    def show_new(self) -> None:
        """Show what is new; lines beyond the newest :data:`LIVE_LINES` are not shown."""
        found: list[bytes] = []
        for stream, end in self._arrivals:
            found += self._streams[stream].take(end)
        self._arrivals.clear()
        self._pass_on(found)

    def finish(self) -> None:
        """Show what is new, and last lines that have no end."""
        self.show_new()
        self._pass_on([line for stream in self._streams for line in stream.take_last()])

    def _pass_on(self, lines: Sequence[bytes]) -> None:
        for line in lines[-LIVE_LINES:]:
            text = without_sequences(line[:_LINE_BYTES].decode("utf-8", "replace"))
            if len(line) > _LINE_BYTES or len(text) > LIVE_CHARACTERS:
                text = _whole_words(text[:LIVE_CHARACTERS])
            self._show("".join(character if character.isprintable() else " " for character in text.expandtabs(4)))


def _whole_words(text: str) -> str:
    """Return a text that is cut at its end without the word at the cut, which may be half of a secret."""
    for at in range(len(text) - 1, -1, -1):
        if text[at].isspace():
            return text[:at]
    return UNBROKEN


class _Stream:
    """How far one stream has been looked at."""

    def __init__(self, kept: KeptOutput) -> None:
        self.kept = kept
        self._at = 0  # where the unfinished state of a line begins
        self._torn = False  # the beginning of that state must not be shown, or has been
        self._state: bytes | None = None  # what was last shown of the unfinished line

    def take(self, end: int) -> list[bytes]:
        """Return the lines that end before ``end`` and the newest state of the line that does not."""
        beginning = min(end, self.kept.beginning)
        found = self._take(beginning) if self._at < beginning else []
        return found + self._take(end) if end > beginning else found

    def _take(self, end: int) -> list[bytes]:
        start, data = self.kept.between(self._at, max(end, self._at))
        self._torn = self._torn or start > self._at
        first, *more = data.rsplit(b"\n", LIVE_LINES + 1)
        lines = [first, *more]
        rest = lines.pop()
        if len(lines) > LIVE_LINES:
            # The first part holds more lines than one, none of which is among the newest.
            del lines[0]
            self._torn, self._state = False, None
        found = []
        for line in lines:
            shown = self._last_state(line.rstrip(b"\r"))
            if shown is not None:
                found.append(shown)
            self._torn, self._state = False, None
        self._at = start + len(data) - len(rest)
        found += self._newest_state(rest)
        return found

    def _last_state(self, line: bytes) -> bytes | None:
        """Return what a finished line shows last, ``None`` when that cannot be shown or was."""
        _, overwritten, last = line.rpartition(b"\r")
        if self._torn and not overwritten:
            return None
        if self._state is not None and last in (b"", self._state):
            return None
        return last

    def _newest_state(self, rest: bytes) -> list[bytes]:
        """Return what an unfinished line shows, when that is complete and new, and move on behind it."""
        found = []
        complete, overwritten, open_state = rest.rpartition(b"\r")
        if overwritten:
            _, earlier, state = complete.rstrip(b"\r").rpartition(b"\r")
            if (earlier or not self._torn) and state not in (b"", self._state):
                found.append(state)
                self._state = state
            self._torn = False
            self._at += len(rest) - len(open_state)
        if len(open_state) > _LINE_BYTES:
            if not self._torn:
                found.append(open_state)
                self._state = open_state
            self._torn = True
            self._at += len(open_state)
        return found

    def take_last(self) -> list[bytes]:
        """Return a last line that has no end."""
        _, data = self.kept.between(self._at, self.kept.total)
        self._at = self.kept.total
        return [data] if data and not self._torn else []


class Pace:
    """Has something done soon after it was asked for, but not more often than every so many seconds."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float, act: Callable[[], None]) -> None:
        self._loop = loop
        self._seconds = seconds
        self._act = act
        self._earliest = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def ask(self) -> None:
        """Have it done as soon as it may be."""
        if self._timer is None:
            self._timer = self._loop.call_at(max(self._earliest, self._loop.time()), self._do)

    def _do(self) -> None:
        self._timer = None
        self._earliest = self._loop.time() + self._seconds
        self._act()

    def stop(self) -> None:
        """Have nothing done any more that was asked for."""
        if self._timer is not None:
            self._timer.cancel()
