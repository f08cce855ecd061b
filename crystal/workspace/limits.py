"""Figures every workspace tool keeps to, and the one way an output that is too long is cut."""

from __future__ import annotations

OUTPUT_CHARACTERS = 100_000
"""Characters of one tool output."""

ENTRY_LIMIT = 1_000
"""Entries of one page of ``list`` and matches of one ``glob``."""

MATCH_LIMIT = 500
"""Matching lines (or files) of one ``grep``."""

GREP_FILE_BYTES = 8 * 1024 * 1024
"""A larger file is not searched."""

WRITE_BYTES = 2 * 1024 * 1024
"""The most that ``write`` puts into one file."""

SCAN_CHARACTERS = 1_000_000
"""Characters of a file that one ``read`` looks at, counted from its start."""

SCAN_LINES = 20_000
"""Lines of a file that one ``read`` looks at, counted from its start."""

IMAGE_BYTES = 20 * 1024 * 1024
"""A larger image is not shown to the model."""


def truncate_output(text: str, limit: int = OUTPUT_CHARACTERS) -> str:
    """Shorten ``text`` to at most ``limit`` characters, keeping its head and its tail and saying what was
    cut.

    :param limit: characters of the result, the sentence about the cut included. When not even that sentence
        fits, the first ``limit`` characters are returned.
    """
    if len(text) <= limit:
        return text
    # The mark is measured with the longest number it can hold, so that the result never exceeds the limit.
    kept = limit - len(_mark(len(text)))
    if kept <= 0:
        return text[: max(limit, 0)]
    head = kept - kept // 2
    tail = kept // 2
    return text[:head] + _mark(len(text) - kept) + (text[-tail:] if tail else "")


def _mark(characters: int) -> str:
    return f"\n<… {characters} characters left out …>\n"
