"""Admission of slash commands, placeholders and status fields."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from crystal.host.admission.entries import NAME, Omitted, check_each
from crystal.host.dispatch import Collected
from crystal.host.reserved import PLACEHOLDERS, STATUS_FIELDS, VERBS
from crystal.types._frozen import Frozen
from crystal.types.commands import Command, Placeholder, StatusField
from crystal.types.notes import Note, NoteCode

_PLACEHOLDER = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_STATUS_FIELD = re.compile(r"[A-Za-z](?:[A-Za-z0-9]|-(?!-)){0,31}")
DESCRIPTION_CHARACTERS = 80


class RegisteredCommand(Frozen):
    """An admitted slash command.

    :param aliases: those of the command's aliases that were free.
    """

    plugin: str
    command: Command
    aliases: tuple[str, ...] = ()


class RegisteredPlaceholder(Frozen):
    """An admitted placeholder."""

    plugin: str
    placeholder: Placeholder


class RegisteredStatusField(Frozen):
    """An admitted status field.

    :param name: in lower case.
    :param description: at most 80 characters.
    """

    plugin: str
    name: str
    description: str


def admit_commands(entries: tuple[Collected, ...]) -> tuple[dict[str, RegisteredCommand], tuple[Note, ...]]:
    """Return the admitted commands by lower-case name, and a note for each omitted one.

    An alias that is taken is left out alone; the command stays.
    """
    admitted: dict[str, RegisteredCommand] = {}
    taken: set[str] = set()
    left_out: list[Note] = []

    def check(collected: Collected) -> None:
        command, plugin = collected.entry, collected.plugin
        if not isinstance(command, Command):
            raise Omitted(NoteCode.CONTRIBUTION_INVALID, f"is {type(command).__name__}, not a Command")
        name = _name(command.name, NAME, "a letter followed by letters, digits, _ or - (64 at most)")
        _require_texts(command.description)
        if not callable(command.run):
            raise Omitted(NoteCode.CONTRIBUTION_INVALID, f"'{name}' has a 'run' that cannot be called")
        reserved = VERBS if not plugin.startswith("builtin:") else frozenset()
        _require_free(name, taken, reserved, "verb")
        aliases = command.aliases if isinstance(command.aliases, tuple) else ()
        usable = []
        for alias in aliases:
            key = alias.lower() if isinstance(alias, str) and NAME.fullmatch(alias) else ""
            if not key or key in taken or key in reserved or key == name or key in usable:
                left_out.append(
                    Note(
                        code=NoteCode.CONTRIBUTION_NAME,
                        text=f"The command '/{name}' of plugin '{plugin}' goes without one of its aliases, "
                        "which is taken or no name.",
                        source=plugin,
                    )
                )
                continue
            usable.append(key)
        taken.update((name, *usable))
        admitted[name] = RegisteredCommand(plugin=plugin, command=command, aliases=tuple(usable))

    notes = check_each(entries, "command", check)
    return admitted, (*notes, *left_out)


def admit_placeholders(entries: tuple[Collected, ...]) -> tuple[dict[str, RegisteredPlaceholder], tuple[Note, ...]]:
    """Return the admitted placeholders by lower-case name, and a note for each omitted one."""
    admitted: dict[str, RegisteredPlaceholder] = {}

    def check(collected: Collected) -> None:
        placeholder = collected.entry
        if not callable(getattr(placeholder, "resolve", None)):
            raise Omitted(NoteCode.CONTRIBUTION_INVALID, "has no 'resolve'")
        name = _name(
            getattr(placeholder, "name", None), _PLACEHOLDER, "a letter followed by letters, digits or _ (64 at most)"
        )
        _require_free(name, admitted, PLACEHOLDERS, "placeholder")
        admitted[name] = RegisteredPlaceholder(plugin=collected.plugin, placeholder=placeholder)

    notes = check_each(entries, "placeholder", check)
    return admitted, notes


def admit_status_fields(entries: tuple[Collected, ...]) -> tuple[dict[str, RegisteredStatusField], tuple[Note, ...]]:
    """Return the admitted status fields by lower-case name, and a note for each omitted one."""
    admitted: dict[str, RegisteredStatusField] = {}

    def check(collected: Collected) -> None:
        field = collected.entry
        if not isinstance(field, StatusField):
            raise Omitted(NoteCode.CONTRIBUTION_INVALID, f"is {type(field).__name__}, not a StatusField")
        name = _name(field.name, _STATUS_FIELD, "a letter followed by letters, digits or single hyphens (32 at most)")
        _require_texts(field.description)
        _require_free(name, admitted, STATUS_FIELDS, "status field")
        one_line = " ".join(field.description.split())
        admitted[name] = RegisteredStatusField(
            plugin=collected.plugin, name=name, description=one_line[:DESCRIPTION_CHARACTERS]
        )

    notes = check_each(entries, "status field", check)
    return admitted, notes


def _name(name: Any, rule: re.Pattern[str], words: str) -> str:
    if not isinstance(name, str) or not rule.fullmatch(name) or name.endswith("-"):
        raise Omitted(NoteCode.CONTRIBUTION_NAME, f"has a name that is not {words}")
    return name.lower()


def _require_texts(description: Any) -> None:
    if not isinstance(description, str):
        raise Omitted(NoteCode.CONTRIBUTION_INVALID, "has a description that is not a text")


def _require_free(name: str, taken: Collection[str], reserved: Collection[str], kind: str) -> None:
    if name in reserved:
        raise Omitted(NoteCode.CONTRIBUTION_RESERVED, f"is named '{name}', which is a built-in {kind}")
    if name in taken:
        raise Omitted(NoteCode.CONTRIBUTION_DUPLICATE, f"is named '{name}', and there is a {kind} of that name already")
