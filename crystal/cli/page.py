"""Text as a person has to see it who decides on it: what would be invisible is shown, long lines are folded. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from enum import Enum

from crystal.cli.safe_text import safe_text
from crystal.types._frozen import Frozen

_GUTTER = "    | "
_GOES_ON = "    > "
_INDENT = "    "

_TAB_CELLS = 8
"""The most that a tab takes."""

_NARROWEST = 10
"""Cells that a line keeps on a terminal narrower than anyone can read."""

_LOOKS_EMPTY = frozenset("\u034f\u115f\u1160\u2800\u3164\uffa0")
"""Letters and marks that are drawn as nothing."""

_NOT_ASCII = re.compile("[^\x00-\x7f]")


class Tone(Enum):
    """How a row is set off where there are colours."""

    PLAIN = "plain"
    HEADING = "heading"
    ADDED = "added"
    REMOVED = "removed"
    PLACE = "place"


class Row(Frozen):
    """One line, safe to print."""

    text: str
    tone: Tone = Tone.PLAIN


class Page(Frozen):
    """What a terminal can show.

    :param width: columns.
    :param encoding: characters that it does not have are shown as escapes.
    """

    width: int
    encoding: str = "utf-8"

    def visible(self, text: str) -> str:
        """Return ``text`` with every character shown as an escape that a terminal would obey or draw as nothing.

        Line ends and tabs stay. A space other than the ordinary and the ideographic one is shown too, since it
        separates no words for a shell.
        """
        safe = safe_text(text)
        if safe.isascii():
            return safe
        return _NOT_ASCII.sub(_shown, safe).encode(self.encoding, "backslashreplace").decode(self.encoding)

    def line(self, text: str) -> str:
        """Return ``text`` visible and on one line, uncut."""
        return self.visible(text).replace("\n", "\\n").replace("\t", "\\t")

    def fits(self, text: str) -> bool:
        """Whether visible text takes no more than one line."""
        return "\n" not in text and len(_fold(text, self.width)) == 1

    def rows(self, text: str, tone: Tone = Tone.PLAIN) -> Iterator[Row]:
        """Return a line of ours that ends in somebody else's text; what does not fit goes on indented."""
        first, *rest = _fold(text, self.width - len(_INDENT))
        yield Row(text=first, tone=tone)
        for piece in rest:
            yield Row(text=f"{_INDENT}{piece}", tone=tone)

    def quoted(self, text: str, tone_of: Callable[[str], Tone] = lambda line: Tone.PLAIN) -> Iterator[Row]:
        """Return somebody else's text, each line behind a mark, so that none of it stands where our lines begin.

        :param tone_of: gives each line its tone.
        """
        for line in text.removesuffix("\n").split("\n"):
            tone = tone_of(line)
            first, *rest = _fold(self.visible(line), self.width - len(_GUTTER))
            yield Row(text=f"{_GUTTER}{first}", tone=tone)
            for piece in rest:
                yield Row(text=f"{_GOES_ON}{piece}", tone=tone)


def _fold(line: str, width: int) -> list[str]:
    """Cut a visible line into pieces of at most ``width`` cells; an empty one is one empty piece."""
    width = max(width, _NARROWEST)
    if line.isascii() and "\t" not in line:
        return [line[at : at + width] for at in range(0, len(line), width)] or [""]
    return list(_pieces(line, width))


def _pieces(line: str, width: int) -> Iterator[str]:
    start = used = 0
    for at, character in enumerate(line):
        cells = _cells(character)
        if used + cells > width and at > start:
            yield line[start:at]
            start, used = at, 0
        used += cells
    yield line[start:]


def _cells(character: str) -> int:
    if character == "\t":
        return _TAB_CELLS
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _shown(match: re.Match[str]) -> str:
    character = match.group()
    category = unicodedata.category(character)
    is_space = category == "Zs" and character != "\u3000"
    is_selector = "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"
    if category in ("Cf", "Co", "Cn") or is_space or is_selector or character in _LOOKS_EMPTY:
        return ascii(character)[1:-1]
    return character
