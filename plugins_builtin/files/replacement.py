"""Replacing exact text in text: where it stands, how line ends are matched, what the new lines end with. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from crystal.types._frozen import Frozen

_LINES_NAMED = 10
_PLACES_COUNTED = 1_000


class NotReplaced(ValueError):
    """The old text does not stand in the file, or not just once.

    :param lines: the lines it begins on, from 1; empty when it stands nowhere.
    """

    def __init__(self, lines: tuple[int, ...]) -> None:
        super().__init__(f"the text stands in {len(lines)} places")
        self.lines = lines


class Replacement(Frozen):
    """A changed text.

    :param lines: the lines on which the replaced places begin, from 1.
    """

    text: str
    lines: tuple[int, ...]


def replace_text(text: str, old: str, new: str, *, replace_all: bool = False) -> Replacement:
    """Replace ``old`` by ``new``, which is taken literally.

    A line end in ``old`` matches both ``\\n`` and ``\\r\\n``, because a reader does not see the difference; a
    lone ``\\r`` is a character like others. New lines get the line end of the place they are put in. Nothing
    outside the replaced places changes.

    :param old: not empty.
    :raises NotReplaced: when ``old`` is not there, or, without ``replace_all``, in more than one place.
    """
    find = _finder(old)
    if not replace_all:
        places = _overlapping(text, find)
        if len(places) != 1:
            raise NotReplaced(_line_numbers(text, [start for start, _ in places]))
    else:
        places = list(_successive(text, find))
        if not places:
            raise NotReplaced(())
    pieces: list[str] = []
    position = 0
    for start, end in places:
        pieces += (text[position:start], _fitted(new, old, text, start, end))
        position = end
    pieces.append(text[position:])
    return Replacement(text="".join(pieces), lines=_line_numbers(text, [start for start, _ in places]))


def name_lines(lines: tuple[int, ...]) -> str:
    """Name line numbers in a sentence, the first ten of them: ``line 3``, ``lines 3, 9, 12 and more``."""
    if len(lines) == 1:
        return f"line {lines[0]}"
    named = ", ".join(str(line) for line in lines[:_LINES_NAMED])
    return f"lines {named} and more" if len(lines) > _LINES_NAMED else f"lines {named}"


_Find = Callable[[str, int], "tuple[int, int] | None"]


def _finder(old: str) -> _Find:
    """Return a function that finds the next place of ``old`` from a position on."""
    if "\n" not in old:

        def find_literal(text: str, position: int) -> tuple[int, int] | None:
            start = text.find(old, position)
            return None if start < 0 else (start, start + len(old))

        return find_literal
    pattern = re.compile("\r?\n".join(re.escape(line) for line in re.split("\r?\n", old)))

    def find_lines(text: str, position: int) -> tuple[int, int] | None:
        match = pattern.search(text, position)
        return None if match is None else match.span()

    return find_lines


def _overlapping(text: str, find: _Find) -> list[tuple[int, int]]:
    """Every place, also those that share characters: an ``aa`` in ``aaa`` is not unique."""
    places: list[tuple[int, int]] = []
    place = find(text, 0)
    while place is not None and len(places) < _PLACES_COUNTED:
        places.append(place)
        # A place that begins with \r\n would be found once more from its \n.
        step = 2 if text.startswith("\r\n", place[0]) else 1
        place = find(text, place[0] + step)
    return places


def _successive(text: str, find: _Find) -> Iterator[tuple[int, int]]:
    place = find(text, 0)
    while place is not None:
        yield place
        place = find(text, place[1])


def _fitted(new: str, old: str, text: str, start: int, end: int) -> str:
    """Return the new text with the line ends of the place it is put in."""
    if "\n" not in new:
        return new
    if _line_end(text, start, end) == "\r\n":
        return new.replace("\r\n", "\n").replace("\n", "\r\n")
    return new.replace("\r\n", "\n") if "\r\n" in old else new


def _line_end(text: str, start: int, end: int) -> str:
    """The line end that counts at a place: the first one in it, else the one of its line, else the one before."""
    at = text.find("\n", start, end)
    if at < 0:
        at = text.find("\n", end)
    if at < 0:
        at = text.rfind("\n", 0, start)
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"


def _line_numbers(text: str, starts: list[int]) -> tuple[int, ...]:
    numbers = []
    line, position = 1, 0
    for start in starts:
        line += text.count("\n", position, start)
        position = start
        numbers.append(line)
    return tuple(numbers)
