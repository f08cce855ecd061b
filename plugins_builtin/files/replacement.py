"""Replacing exact text in text: where it stands, how line ends are matched, what the new lines end with. No I/O."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice

from crystal.types._frozen import Frozen

_LINES_NAMED = 10
_PLACES_COUNTED = 1_000
"""Places that are looked for before the answer is "at least so many"."""

_PLACES_REPLACED = 1_000_000
"""Places that may be replaced one by one, each by a text of its own."""


class NotReplaced(ValueError):
    """The old text does not stand in the file, or not just once.

    :param lines: the lines it begins on, from 1; empty when it stands nowhere.
    """

    def __init__(self, lines: tuple[int, ...]) -> None:
        super().__init__(f"the text stands in {len(lines)} places")
        self.lines = lines

    @property
    def count(self) -> str:
        """How often it stands there, in words: ``3 times``, ``at least 1000 times``."""
        times = f"{len(self.lines)} times"
        return f"at least {times}" if len(self.lines) == _PLACES_COUNTED else times


class ReplacedTooLong(ValueError):
    """The changed text would be longer than it may be, or so many places would change that they cannot be held."""


class Replacement(Frozen):
    """A changed text.

    :param count: how many places were replaced.
    :param lines: the lines on which they begin, from 1; of many, more than are named.
    """

    text: str
    count: int
    lines: tuple[int, ...]


def replace_text(text: str, old: str, new: str, *, replace_all: bool = False, longest: int = 1 << 31) -> Replacement:
    """Replace ``old`` by ``new``, which is taken literally.

    A line end in ``old`` matches both ``\\n`` and ``\\r\\n``, because a reader does not see the difference; a
    lone ``\\r`` is a character like others. New lines get the line end of the place they are put in. Nothing
    outside the replaced places changes.

    :param old: not empty.
    :param longest: characters that the changed text may have.
    :raises NotReplaced: when ``old`` is not there, or, without ``replace_all``, in more than one place.
    :raises ReplacedTooLong: before anything that long is made.
    """
    searched = _Searched(text, old)
    if replace_all:
        count = searched.count()
        if not count:
            raise NotReplaced(())
    else:
        places = searched.overlapping()
        count = len(places)
        if count != 1:
            raise NotReplaced(_line_numbers(text, [start for start, _ in places]))
    if len(text) + count * (len(new) + new.count("\n") - len(old)) > longest:
        raise ReplacedTooLong
    breaks = _breaks(text) if "\n" in new and "\r\n" in text else []
    lines = _line_numbers(text, [start for start, _ in islice(searched.successive(), _LINES_NAMED + 1)])
    if searched.is_literal and not breaks:
        return Replacement(
            text=text.replace(searched.old, _fitted(new, old, text, breaks, 0)), count=count, lines=lines
        )
    if count > _PLACES_REPLACED:
        raise ReplacedTooLong
    pieces: list[str] = []
    position = 0
    for start, end in searched.successive():
        pieces += (text[position:start], _fitted(new, old, text, breaks, start))
        position = end
    pieces.append(text[position:])
    return Replacement(text="".join(pieces), count=count, lines=lines)


def name_lines(lines: tuple[int, ...]) -> str:
    """Name line numbers in a sentence, the first ten of them: ``line 3``, ``lines 3, 9, 12 and more``."""
    if len(lines) == 1:
        return f"line {lines[0]}"
    named = ", ".join(str(line) for line in lines[:_LINES_NAMED])
    return f"lines {named} and more" if len(lines) > _LINES_NAMED else f"lines {named}"


class _Searched:
    """A text in which an old text is looked for, line ends being equal when the old text has one.

    The search is ``str.find``, whose time grows with the text and not with the old text times it; places are those
    of the text as it is.
    """

    def __init__(self, text: str, old: str) -> None:
        self._text = text
        self.old = old
        self._ends: list[int] = []
        if "\n" in old:
            self.old = old.replace("\r\n", "\n")
            if "\r\n" in text:
                self._text, self._ends = _with_plain_ends(text)

    @property
    def is_literal(self) -> bool:
        """Whether the places are those where :attr:`old` stands in the text as it is."""
        return not self._ends

    def count(self) -> int:
        """How many places there are when none shares characters with another."""
        return self._text.count(self.old)

    def overlapping(self) -> list[tuple[int, int]]:
        """Every place, also those that share characters: an ``aa`` in ``aaa`` is not unique."""
        places: list[tuple[int, int]] = []
        found = self._text.find(self.old)
        while found >= 0 and len(places) < _PLACES_COUNTED:
            places.append(self._place(found))
            found = self._text.find(self.old, found + 1)
        return places

    def successive(self) -> Iterator[tuple[int, int]]:
        found = self._text.find(self.old)
        while found >= 0:
            yield self._place(found)
            found = self._text.find(self.old, found + len(self.old))

    def _place(self, found: int) -> tuple[int, int]:
        end = found + len(self.old)
        return found + bisect_left(self._ends, found), end + bisect_left(self._ends, end)


def _with_plain_ends(text: str) -> tuple[str, list[int]]:
    """Return the text with ``\\n`` for every ``\\r\\n``, and where in it those stand."""
    pieces = text.split("\r\n")
    ends: list[int] = []
    position = -1
    for piece in pieces[:-1]:
        position += len(piece) + 1
        ends.append(position)
    return "\n".join(pieces), ends


def _breaks(text: str) -> list[int]:
    return [found.start() for found in re.finditer("\n", text)]


def _fitted(new: str, old: str, text: str, breaks: list[int], start: int) -> str:
    """Return the new text with the line end of the place it is put in: the first one from there on, or the last one.

    :param breaks: where the text breaks its lines; empty when it does so in one way only, with ``\\n``.
    """
    if breaks:
        at = breaks[min(bisect_left(breaks, start), len(breaks) - 1)]
        if at > 0 and text[at - 1] == "\r":
            return new.replace("\r\n", "\n").replace("\n", "\r\n")
    return new.replace("\r\n", "\n") if "\r\n" in old else new


def _line_numbers(text: str, starts: list[int]) -> tuple[int, ...]:
    numbers = []
    line, position = 1, 0
    for start in starts:
        line += text.count("\n", position, start)
        position = start
        numbers.append(line)
    return tuple(numbers)
