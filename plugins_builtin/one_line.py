"""The one line that tells a person what a call is about, made from text that a model wrote."""

from __future__ import annotations

CHARACTERS = 200


def one_line(text: str, characters: int = CHARACTERS) -> str:
    """Return ``text`` on one line: what does not print is escaped, and a long text is cut with an ellipsis."""
    shown = text[: characters + 1]
    if not shown.isprintable():
        shown = "".join(
            character if character.isprintable() else character.encode("unicode_escape").decode() for character in shown
        )
    return shown if len(shown) <= characters else shown[: characters - 1] + "…"
