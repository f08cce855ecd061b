"""The difference of two texts as a unified diff, in time and length that stay bounded whatever the texts are. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crystal.types._frozen import Frozen

CONTEXT_LINES = 3
SHOWN_LINES = 2_000
"""Lines of a diff that are shown; how many more there were is said."""

SHOWN_CHARACTERS = 1_000
"""Characters of one line that are shown; likewise."""

_COMPARED_PAIRS = 250_000
"""Old lines times new lines up to which the shortest difference is looked for; beyond, time would grow with them."""

NO_LINE_END = "\\ No newline at end of file"


class Run(Frozen):
    """Old lines ``old_start`` to ``old_end`` that new lines ``new_start`` to ``new_end`` stand for; from 0."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def unified_diff(before: str, after: str, name: str) -> str:
    """Return what has to change in ``before`` to get ``after``; empty when nothing has.

    Lines end at ``\\n`` only. Every other character of theirs stays, so the caller makes it safe to show.

    :param name: stands in the two lines at the top.
    """
    old, new = _lines(before), _lines(after)
    rendered = [line for hunk in _hunks(_runs(old, new)) for line in _rendered(hunk, old, new)]
    if not rendered:
        return ""
    left_out = len(rendered) - SHOWN_LINES
    if left_out > 0:
        rendered[SHOWN_LINES:] = [f"<{left_out} more lines of the diff are not shown>"]
    return "\n".join((f"--- {name}", f"+++ {name}", *rendered))


def _lines(text: str) -> list[str]:
    """Return the lines with their ends."""
    *ended, rest = text.split("\n")
    lines = [f"{line}\n" for line in ended]
    return [*lines, rest] if rest else lines


def _runs(old: Sequence[str], new: Sequence[str]) -> Iterator[Run]:
    shorter = min(len(old), len(new))
    head = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    tail = next((at for at in range(shorter - head) if old[-1 - at] != new[-1 - at]), shorter - head)
    middle_old, middle_new = old[head : len(old) - tail], new[head : len(new) - tail]
    if not middle_old and not middle_new:
        return
    if len(middle_old) * len(middle_new) <= _COMPARED_PAIRS:
        from difflib import SequenceMatcher

        for tag, old_start, old_end, new_start, new_end in SequenceMatcher(None, middle_old, middle_new).get_opcodes():
            if tag != "equal":
                yield Run(
                    old_start=head + old_start,
                    old_end=head + old_end,
                    new_start=head + new_start,
                    new_end=head + new_end,
                )
    elif len(middle_old) == len(middle_new):
        yield from _line_by_line(middle_old, middle_new, head)
    else:
        yield Run(old_start=head, old_end=len(old) - tail, new_start=head, new_end=len(new) - tail)


def _line_by_line(old: Sequence[str], new: Sequence[str], head: int) -> Iterator[Run]:
    start: int | None = None
    for at in range(len(old) + 1):
        differs = at < len(old) and old[at] != new[at]
        if differs and start is None:
            start = at
        elif not differs and start is not None:
            yield Run(old_start=head + start, old_end=head + at, new_start=head + start, new_end=head + at)
            start = None


def _hunks(runs: Iterator[Run]) -> Iterator[list[Run]]:
    """Gather the runs whose context would touch."""
    hunk: list[Run] = []
    for run in runs:
        if hunk and run.old_start - hunk[-1].old_end > 2 * CONTEXT_LINES:
            yield hunk
            hunk = []
        hunk.append(run)
    if hunk:
        yield hunk


def _rendered(hunk: Sequence[Run], old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    first, last = hunk[0], hunk[-1]
    above = min(CONTEXT_LINES, first.old_start)
    below = min(CONTEXT_LINES, len(old) - last.old_end)
    removed = _range(first.old_start - above, last.old_end + below)
    added = _range(first.new_start - above, last.new_end + below)
    yield f"@@ -{removed} +{added} @@"
    at = first.old_start - above
    for run in hunk:
        yield from _marked(" ", old[at : run.old_start])
        yield from _marked("-", old[run.old_start : run.old_end])
        yield from _marked("+", new[run.new_start : run.new_end])
        at = run.old_end
    yield from _marked(" ", old[at : at + below])


def _range(start: int, end: int) -> str:
    """Write a range of lines as diff does: from 1, and an empty one by the line before it."""
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        text = line.removesuffix("\n")
        left_out = len(text) - SHOWN_CHARACTERS
        yield mark + (f"{text[:SHOWN_CHARACTERS]}<{left_out} more characters>" if left_out > 0 else text)
        if not line.endswith("\n"):
            yield NO_LINE_END
