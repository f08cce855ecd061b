"""Questions on a line terminal: how one is shown, and which labels a typed line stands for. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from crystal.cli.page import Page, Row, Tone
from crystal.types.capabilities import Question


def form(question: Question, number: int, total: int, page: Page) -> list[Row]:
    """Return the rows of one question.

    :param number: its place among those asked together, from 1.
    """
    which = f" {number} of {total}" if total > 1 else ""
    rows = list(page.rows(f"[question{which}] {page.line(question.header)}", Tone.HEADING))
    rows += page.quoted(question.text)
    for position, option in enumerate(question.options, 1):
        words = f"{page.line(option.label)}  {page.line(option.description)}".rstrip()
        rows += page.rows(f"  {position}. {words}")
    return rows


def hint(question: Question) -> str:
    """Return what can be typed, in a few words."""
    if not question.options:
        return "your answer"
    numbers = "numbers" if question.multiple else "a number"
    return f"{numbers}, or your own words" if question.custom else numbers


def parse_labels(question: Question, answer: str) -> tuple[str, ...]:
    """Return the labels that a line stands for; none when it is no answer to this question.

    Numbers and labels choose options; anything else is the operator's own words where the question takes them.
    """
    chosen = _numbered(question, answer) or _named(question, answer)
    if chosen:
        return chosen if question.multiple or len(chosen) == 1 else ()
    return (answer,) if question.custom and answer else ()


def summary(questions: Sequence[Question], answers: Sequence[tuple[str, ...]], page: Page) -> list[Row]:
    """Return what would be sent, for the operator to confirm."""
    rows = [Row(text="[answers]", tone=Tone.HEADING)]
    for question, labels in zip(questions, answers, strict=True):
        rows += page.rows(f"  {page.line(question.header)}: {', '.join(map(page.line, labels))}")
    return rows


def _numbered(question: Question, answer: str) -> tuple[str, ...]:
    words = answer.replace(",", " ").split()
    if not words or not all(
        word.isascii() and word.isdecimal() and 1 <= int(word) <= len(question.options) for word in words
    ):
        return ()
    # Named twice is chosen once.
    return tuple(dict.fromkeys(question.options[int(word) - 1].label for word in words))


def _named(question: Question, answer: str) -> tuple[str, ...]:
    labels = {option.label.casefold(): option.label for option in question.options}
    for words in ((answer,), answer.split(",")):
        found = [labels.get(word.strip().casefold(), "") for word in words]
        if all(found):
            return tuple(dict.fromkeys(found))
    return ()
