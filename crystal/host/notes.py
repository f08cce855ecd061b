"""The note board of one host: what was skipped or deserves attention, in order, and who listens."""

from __future__ import annotations

from collections.abc import Callable

from crystal.types.notes import Note, NoteCode, Severity


class Notes:
    """Collects notes; a listener hears each one as it is added."""

    def __init__(self) -> None:
        self._notes: list[Note] = []
        self._listener: Callable[[Note], None] | None = None

    def listen(self, listener: Callable[[Note], None]) -> tuple[Note, ...]:
        """Have ``listener`` hear every later note; returns those already there."""
        self._listener = listener
        return tuple(self._notes)

    def add(self, code: NoteCode, text: str, source: str = "crystal", severity: Severity = Severity.WARNING) -> None:
        """Add one note."""
        self.add_note(Note(code=code, text=text, source=source, severity=severity))

    def add_note(self, note: Note) -> None:
        """Add a note made elsewhere."""
        self._notes.append(note)
        if self._listener is not None:
            self._listener(note)

    @property
    def all(self) -> tuple[Note, ...]:
        """Every note so far."""
        return tuple(self._notes)
