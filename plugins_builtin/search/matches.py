"""What a search backend prints, read into matches and shown to the model. Pure: no I/O.

Both backends print one line for each matching or neighbouring line: ``path NUL number NUL column NUL text`` for a
match and ``path NUL number - text`` for a neighbour, the column counting UTF-8 bytes from 1. Ripgrep leaves out the
column and its NUL for an empty match at the end of a file.
"""

from __future__ import annotations

import re

from crystal.types._frozen import Frozen
from crystal.workspace.limits import MATCH_LIMIT, OUTPUT_CHARACTERS

LINE_SHOWN = 400
"""Characters shown of a longer line, around the match."""

_BEFORE_MATCH = 100
_CUT = "<…>"
_NOTES_CHARACTERS = 500
_RECORD = re.compile(rb"(?s)([^\0]+)\0(\d+)(?:(\0)(?:(\d+)\0)?|-)(.*)")


class FoundLine(Frozen):
    """One line that a backend printed.

    :param path: as the backend was given it, with what lies below.
    :param column: byte of the line at which the match begins, from 1; ``None`` for a neighbour.
    """

    path: str
    number: int
    column: int | None
    text: bytes


def parse_line(record: bytes) -> FoundLine | None:
    """Read one printed line; ``None`` for what is no such line, such as a separator."""
    match = _RECORD.fullmatch(record)
    if match is None:
        return None
    path, number, matched, column, text = match.groups()
    text = text.removesuffix(b"\r")
    return FoundLine(
        path=path.decode("utf-8", "surrogateescape"),
        number=int(number),
        column=None if matched is None else int(column or len(text) + 1),
        text=text,
    )


def cut_line(text: bytes, column: int | None) -> str:
    """Return a line as it is shown: a long one is cut around its match, the cuts marked ``<…>``."""
    decoded = text.decode("utf-8", "replace")
    if len(decoded) <= LINE_SHOWN:
        return decoded
    at = 0 if column is None else len(text[: column - 1].decode("utf-8", "replace"))
    start = max(0, min(at - _BEFORE_MATCH, len(decoded) - LINE_SHOWN))
    end = start + LINE_SHOWN
    return (_CUT if start else "") + decoded[start:end] + (_CUT if end < len(decoded) else "")


class Report:
    """Gathers found lines until a limit is reached and puts them into words.

    :param separated: whether groups of neighbouring lines are set apart by ``--``.
    """

    def __init__(self, *, separated: bool) -> None:
        self._separated = separated
        self._lines: list[str] = []
        self._room = OUTPUT_CHARACTERS - _NOTES_CHARACTERS
        self._matches = 0
        self._cut = False
        self._stopped = ""
        self._last: tuple[str, int] | None = None

    def add(self, shown_path: str, found: FoundLine) -> bool:
        """Take one line; ``False`` when a limit is reached and no more is wanted."""
        match = found.column is not None
        if match and self._matches == MATCH_LIMIT:
            return self._stop(f"{MATCH_LIMIT} matches")
        text = cut_line(found.text, found.column)
        mark = ":" if match else "-"
        line = f"{shown_path}{mark}{found.number}{mark}{text}"
        if self._separated and self._last not in (None, (shown_path, found.number - 1)):
            line = f"--\n{line}"
        if not self._take(line):
            return False
        self._matches += match
        self._cut = self._cut or len(text) < len(found.text.decode("utf-8", "replace"))
        self._last = (shown_path, found.number)
        return True

    def add_file(self, shown_path: str) -> bool:
        """Take the name of a file that holds a match; ``False`` when a limit is reached."""
        if self._matches == MATCH_LIMIT:
            return self._stop(f"{MATCH_LIMIT} files")
        self._matches += 1
        return self._take(shown_path)

    def text(self) -> str:
        """Everything taken, with what was left out; empty when nothing was taken."""
        notes = []
        if self._stopped:
            notes.append(f"Stopped at {self._stopped}; narrow pattern, path or glob.")
        if self._cut:
            notes.append(f"Long lines are cut around the match, at {_CUT}.")
        return "\n".join([*self._lines, f"({' '.join(notes)})"] if notes else self._lines)

    def _take(self, line: str) -> bool:
        self._room -= len(line) + 1
        if self._room < 0:
            return self._stop(f"{OUTPUT_CHARACTERS} characters")
        self._lines.append(line)
        return True

    def _stop(self, limit: str) -> bool:
        self._stopped = limit
        return False
