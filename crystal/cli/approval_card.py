"""What the operator is shown of one request for approval on a line terminal, and what their answer means. Pure.

Everything in a card may be a model's words, so no line of it may look like the program's own or steer the terminal.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from crystal.cli.page import Page, Row, Tone
from crystal.engine.answers import Approve, Deny
from crystal.types.approval import Classification, GrantScope
from crystal.types.events import ApprovalAsked

ESCAPE = "\x1b"
"""What the escape key types on a line; it means no."""

_LABELS = {GrantScope.ONCE: "es, once", GrantScope.SESSION: "ession", GrantScope.PERSISTENT: "lways"}
_WORDS = {
    GrantScope.ONCE: ("y", "yes", "1"),
    GrantScope.SESSION: ("s", "session", "2"),
    GrantScope.PERSISTENT: ("a", "always", "3"),
}
_NO = ("n", "no", "4", "deny", ESCAPE)
_DIFF_TONES = {"+": Tone.ADDED, "-": Tone.REMOVED, "@": Tone.PLACE}


def card(event: ApprovalAsked, page: Page) -> list[Row]:
    """Return the whole of a request, nothing cut out of sight."""
    rows = [heading(event, page), *page.rows(f"  asked because: {page.line(event.reason)}")]
    raised = _raised(event.host, event.final)
    if raised:
        rows += page.rows(f"  the host's own class: {event.host.label}; since then {raised}")
    if event.final.summary:
        rows += page.rows(f"  summary: {page.line(event.final.summary)}")
    for name, value in event.arguments.items():
        rows += _argument(page.line(name), value, page)
    if event.preview:
        rows.append(Row(text="  what would change:"))
        rows += page.quoted(event.preview, lambda line: _DIFF_TONES.get(line[:1], Tone.PLAIN))
    return rows


def heading(event: ApprovalAsked, page: Page) -> Row:
    """Return the line that names tool and class."""
    return Row(text=f"[approval] {page.line(event.name)}: {event.final.label}", tone=Tone.HEADING)


def choices(offered: Sequence[GrantScope]) -> str:
    """Return the offered answers in a few words; the capital is the one that Enter alone stands for."""
    words = [_choice(scope, offered) for scope in _LABELS if scope in offered]
    return "; ".join((*words, "[n]o"))


def mend(event: ApprovalAsked, page: Page) -> str:
    """Return the line that follows an answer which is none."""
    said = []
    for scope in _LABELS:
        if scope in event.offered:
            enter = " or Enter" if scope is GrantScope.ONCE and enter_approves(event.offered) else ""
            said.append(f"{', '.join(_WORDS[scope])}{enter}")
    return f"{page.line(event.name)} waits for one of: {'; '.join(said)}; or n, no, 4, Esc to deny"


def parse_answer(text: str, offered: Sequence[GrantScope]) -> Approve | Deny | None:
    """Return what an answer means; ``None`` when it is not one that was offered."""
    word = text.strip(" \t\r\n").lower()
    if word in _NO:
        return Deny()
    if not word:
        return Approve() if enter_approves(offered) else None
    return next((Approve(scope=scope) for scope in offered if word in _WORDS[scope]), None)


def enter_approves(offered: Sequence[GrantScope]) -> bool:
    """Whether Enter alone means once.

    Only where a lasting grant is offered too, that is for Read or Write in the workspace: a key pressed by habit must
    not let anything Forbidden, Privileged, raised or beyond the workspace run.
    """
    return GrantScope.ONCE in offered and len(offered) > 1


def _choice(scope: GrantScope, offered: Sequence[GrantScope]) -> str:
    letter = _WORDS[scope][0]
    if scope is GrantScope.ONCE and enter_approves(offered):
        letter = letter.upper()
    return f"[{letter}]{_LABELS[scope]}"


def _raised(host: Classification, final: Classification) -> str:
    """Say in which way a class was raised above the host's own; empty when it was not."""
    changes = []
    if final.risk > host.risk:
        changes.append(f"the risk was raised to {final.risk.label}")
    if added := final.authority & ~host.authority:
        changes.append(f"{added.label} was added")
    if final.require_prompt and not host.require_prompt:
        changes.append("a prompt was required")
    return " and ".join(changes)


def _argument(name: str, value: object, page: Page) -> Iterator[Row]:
    if isinstance(value, str):
        text = value
    else:
        text = json.dumps(value, ensure_ascii=False)
        if not page.fits(text):
            text = json.dumps(value, ensure_ascii=False, indent=2)
    # Our own rows have a colon here; a name that a model made up cannot pass for one of them.
    inline = f"  {name} = {page.visible(text)}"
    if page.fits(inline):
        yield Row(text=inline.rstrip())
        return
    yield from page.rows(f"  {name} =")
    yield from page.quoted(text)
