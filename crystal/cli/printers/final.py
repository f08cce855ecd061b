"""``--format final``: the last reply alone."""

from __future__ import annotations

from typing import TextIO

from crystal.cli.safe_text import safe_text
from crystal.types.events import Event, StepStarted, TextCommitted, TurnFinished


class FinalPrinter:
    """Keeps the text of the last round and prints it at the end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._blocks: list[str] = []

    def __call__(self, event: Event) -> None:
        """Take one event."""
        if isinstance(event, StepStarted):
            self._blocks.clear()
        elif isinstance(event, TextCommitted):
            self._blocks.append(event.text)

    def finish(self, exit_code: int, reason: str, detail: str, finished: TurnFinished | None) -> None:
        """Print the reply."""
        if self._blocks:
            self._stream.write(safe_text("\n".join(self._blocks)).strip("\n") + "\n")
            self._stream.flush()
