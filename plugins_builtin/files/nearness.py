"""What in a text is like an old text that was not found, for the answer to an edit. Bounded work, no I/O."""

from __future__ import annotations

import re

_LINES_COMPARED = 20_000
_CHARACTERS_COMPARED = 500_000
_LINE_CHARACTERS = 300
_CANDIDATES = 50
_LINES_SHOWN = 10
_ALIKE = 0.55


def describe_near(text: str, old: str) -> str:
    """Return a sentence and the lines of ``text`` that are most like ``old``; empty when none is.

    Looks first for a place that differs only in white space, then for the lines most like the longest line of
    ``old``.
    """
    lines = text[:_CHARACTERS_COMPARED].split("\n", _LINES_COMPARED)[:_LINES_COMPARED]
    place = _same_but_for_space(lines, old)
    if place is not None:
        first, last = place
        return "Only the white space differs here:\n" + _numbered(lines, range(first, min(last, first + _LINES_SHOWN)))
    nearest = _nearest_lines(lines, old)
    return "The nearest lines are:\n" + _numbered(lines, nearest) if nearest else ""


def _same_but_for_space(lines: list[str], old: str) -> tuple[int, int] | None:
    wanted = [_squeezed(line) for line in old.strip().split("\n")]
    if wanted == [""]:
        return None
    have = [_squeezed(line[: 4 * _LINE_CHARACTERS]) for line in lines]
    for index in range(len(have) - len(wanted) + 1):
        if have[index] == wanted[0] and have[index : index + len(wanted)] == wanted:
            return index, index + len(wanted)
    return None


def _nearest_lines(lines: list[str], old: str) -> list[int]:
    import difflib
    import heapq

    wanted = max((line.strip() for line in old.split("\n")), key=len)[:_LINE_CHARACTERS]
    words = set(re.findall(r"\w+", wanted))
    if not words:
        return []
    first_places: dict[str, int] = {}
    for index, line in enumerate(lines):
        first_places.setdefault(line[:_LINE_CHARACTERS].strip(), index)
    shared = ((len(words.intersection(re.findall(r"\w+", line))), -index, line) for line, index in first_places.items())
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)
    scored: list[tuple[float, int]] = []
    # Equal counts keep the earlier line. A line that shares no word can still be a misspelt one, so none is left out.
    for _, index, line in heapq.nlargest(_CANDIDATES, shared):
        matcher.set_seq1(line)
        if matcher.real_quick_ratio() >= _ALIKE and matcher.quick_ratio() >= _ALIKE:
            scored.append((matcher.ratio(), index))
    return sorted(-index for ratio, index in heapq.nlargest(3, scored) if ratio >= _ALIKE)


def _squeezed(line: str) -> str:
    return " ".join(line.split())


def _numbered(lines: list[str], indexes: range | list[int]) -> str:
    return "\n".join(f"{index + 1:6}\t{lines[index].removesuffix(chr(13))[:_LINE_CHARACTERS]}" for index in indexes)
