"""The status board: what plugins say in their status fields, pushed from any thread, kept as one clean line each.

The host never polls and decides nothing about place or colour; a surface reads the board and hears its changes.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from collections.abc import Callable, Collection, Mapping

from crystal.host.notes import Notes
from crystal.types.notes import NoteCode

TEXT_CHARACTERS = 64
_ESCAPE = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]?|(?:\x1b[\\]PX^_]|[\x9d\x90])[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)?|\x1b.?"
)
"""Control sequences and control strings, closed or not, and every other escape with its one character."""


class StatusBoard:
    """The texts of all admitted fields of one host.

    :ivar changed: called after each change, in the thread that made it, with the field and its new text; may not wait.
    """

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._texts: dict[str, str] = {}
        self._lock = threading.Lock()
        self.changed: Callable[[str, str], None] | None = None

    @property
    def texts(self) -> Mapping[str, str]:
        """Field names to texts; an empty field is not there."""
        with self._lock:
            return dict(self._texts)

    def open_sink(self, plugin: str, fields: Collection[str]) -> StatusSink:
        """Return the sink of one plugin for its admitted fields; call it in the event loop that hears the notes."""
        return StatusSink(self, plugin, frozenset(fields), asyncio.get_running_loop())

    def put(self, field: str, text: str) -> None:
        """Publish a clean text, or remove the field when it is empty; nothing happens when it is there already."""
        with self._lock:
            if self._texts.get(field, "") == text:
                return
            if text:
                self._texts[field] = text
            else:
                del self._texts[field]
            heard = self.changed
        if heard is not None:
            heard(field, text)

    def note_unknown(self, plugin: str, name: str) -> None:
        """Say that a plugin set a field it did not register."""
        shown = clean_text(name) or "without a name"
        self._notes.add(
            NoteCode.STATUS_FIELD,
            f"Plugin '{plugin}' set the status field '{shown}', which it did not register; that is ignored.",
            plugin,
        )


class StatusSink:
    """What ``attach_status`` hands out; a closed one ignores every call."""

    __slots__ = ("_board", "_fields", "_lock", "_loop", "_noted", "_open", "_plugin")

    def __init__(
        self, board: StatusBoard, plugin: str, fields: frozenset[str], loop: asyncio.AbstractEventLoop
    ) -> None:
        self._board = board
        self._plugin = plugin
        self._fields = fields
        self._loop = loop
        self._open = True
        self._noted: set[str] = set()
        self._lock = threading.Lock()

    def set(self, name: str, text: str | None) -> None:
        """Replace the text of a field; blank text or ``None`` removes it. May be called from any thread."""
        # Outside the lock: both may run code of the plugin.
        field, shown = str(name).lower(), "" if text is None else clean_text(str(text))
        with self._lock:
            if not self._open:
                return
            if field not in self._fields:
                is_new = field not in self._noted
                self._noted.add(field)
            else:
                self._board.put(field, shown)
                return
        if is_new:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody hears notes any more
                self._loop.call_soon_threadsafe(self._board.note_unknown, self._plugin, str(name))

    def clear(self, name: str) -> None:
        """Remove a field."""
        self.set(name, "")

    def close(self) -> None:
        """Ignore every later call and remove what the plugin published."""
        with self._lock:
            self._open = False
            for field in self._fields:
                self._board.put(field, "")


def clean_text(text: str) -> str:
    """Return one line of at most 64 characters: escape sequences and control characters dropped, white space single.

    The rule is the seed's ("Status fields"); characters that reorder or hide text count as control characters.
    """
    printable = "".join(
        char if char.isprintable() else " " if char in "\n\r\t" else "" for char in _ESCAPE.sub("", text)
    )
    return " ".join(printable.split())[:TEXT_CHARACTERS].strip()
