"""System prompts: composed by the host, added to here. :func:`crystal.hookspecs.raw.rewrite_prompt` runs afterwards."""

from __future__ import annotations

from crystal.hookspecs._kinds import append
from crystal.types.session import PromptFacts


@append("Appends only; the host's own text stays.")
def on_prompt(prompt: PromptFacts) -> str | None:
    """Called whenever a system prompt is composed: at the start of a session, on resume and when the mode changes.

    May return text for the end of the instruction block. May not replace the Work, Plan or Review text.

    :param prompt: ``mode`` and the ``text`` composed by the host.
    :return: the text to append, or ``None``; blank text is dropped.
    """
