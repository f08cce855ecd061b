"""What a workspace brings that changes what runs or what guards it, and whether it counts. Cheap to import."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from crystal.types._frozen import Frozen
from crystal.types.notes import Note, NoteCode

NEVER_TRUSTED = "projectTrust is never in config.json, so the project's own code does not count"
_NAMED_IN_A_NOTE = 10


class ProjectCode(Enum):
    """What counts of the code that a workspace brings."""

    ASK = "ask"
    """What ``trust.json`` has, as it was then."""
    NEVER = "never"
    THIS_PROCESS = "this process"
    """Everything, and nothing is remembered."""


class EntryState(Enum):
    """How something that needs trust stands to what the operator trusted."""

    TRUSTED = "trusted"
    CHANGED = "changed"
    NEW = "new"
    REFUSED = "refused"
    """It has no digest, so it cannot be trusted."""


class ProjectEntry(Frozen):
    """One thing of a workspace that counts only when the operator trusts it.

    :param name: such as ``plugins/Acme``.
    :param digest: of its content, empty when it was refused or not looked at.
    """

    name: str
    state: EntryState
    digest: str = ""


def untrusted_note(entries: Sequence[ProjectEntry]) -> Note | None:
    """Return the one note about what a workspace brings and the operator does not trust; ``None`` without any.

    :param entries: of every kind.
    """
    if not entries:
        return None
    shown = [f"{entry.name}{' (changed)' if entry.state is EntryState.CHANGED else ''}" for entry in entries]
    more = len(shown) - _NAMED_IN_A_NOTE
    names = ", ".join(shown[:_NAMED_IN_A_NOTE]) + (f" and {more} more" if more > 0 else "")
    text = f"This workspace brings code of its own that is not trusted and does not count: {names}. "
    return Note(
        code=NoteCode.PROJECT_UNTRUSTED,
        text=f"{text}'crystal trust' shows what it would load and asks.",
        source="crystal",
    )
