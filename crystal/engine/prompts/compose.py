"""Compose the host's own texts for a model: every one of them is bound here, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping

from crystal.engine.prompts.binding import bind
from crystal.engine.prompts.values import host_values, plugin_values
from crystal.engine.state import SessionState
from crystal.types._readonly import EMPTY
from crystal.types.notes import Note, NoteCode
from crystal.types.session import PromptFacts, PromptMode
from crystal.types.tools import Catalog


def compose_system(state: SessionState) -> PromptFacts:
    """Return the host's system prompt for the session's mode; the hooks add to it."""
    if state.mode is Catalog.PLAN:
        return PromptFacts(mode=PromptMode.PLAN, text=bind_template(state, state.templates.plan))
    return PromptFacts(mode=PromptMode.WORK, text=bind_template(state, state.templates.work))


def bind_template(state: SessionState, template: str, own: Mapping[str, str] = EMPTY) -> str:
    """Bind any template of the host: its own values, those of the plugins, and those that only this template has.

    Plugins resolve their placeholders anew at each call. A placeholder that cannot be resolved leaves its token, and a
    note that is written once for the same fault of the same plugin.

    :param own: texts by lower-case token; they are inserted as they are, so text that others wrote comes quoted.
    """
    if "{{" not in template:
        return template
    bound = bind(template, {**plugin_values(state), **host_values(state), **own})
    for name, fault in bound.faults.items():
        _note_fault(state, name, fault)
    return bound.text


def _note_fault(state: SessionState, name: str, fault: str) -> None:
    plugin = state.host.placeholders[name].plugin
    note = Note(
        code=NoteCode.PLACEHOLDER,
        text=f"The placeholder '{{{{{name}}}}}' of plugin '{plugin}' {fault}; its token stays in the prompt.",
        source=plugin,
    )
    if note not in state.host.notes.all:
        state.host.notes.add_note(note)
