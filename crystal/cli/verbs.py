"""Tasks that are no tasks: ``crystal run`` refuses one that begins with a slash verb."""

from __future__ import annotations

from crystal.host.reserved import VERBS


def is_verb(task: str) -> bool:
    """Whether the first word of ``task`` is a slash verb."""
    words = task.split(maxsplit=1)
    return bool(words) and words[0].startswith("/") and words[0][1:].lower() in VERBS
