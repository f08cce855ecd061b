"""Slash commands, prompt placeholders and status fields."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

from crystal.types._frozen import Frozen
from crystal.types.approval import ApprovalMode
from crystal.types.environment import Environment, SessionModels


class Table(Frozen):
    """Rows under headings; the surface draws it."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""


class View(Frozen):
    """A titled text of several lines; the surface draws it."""

    title: str
    lines: tuple[str, ...]


CommandResult: TypeAlias = str | Table | View | None


class CommandContext(Frozen):
    """What a slash command gets.

    :param operations: the engine's methods (send, compact, resume, ...); answering an approval is not among them.
    """

    workspace: Path
    session_id: str
    approval: ApprovalMode
    operations: Any


class Command(Frozen):
    """One ``/name`` verb.

    :param run: gets the text after the verb and the context; its text becomes notes.
    """

    name: str
    description: str
    run: Callable[[str, CommandContext], CommandResult | Awaitable[CommandResult]]
    aliases: tuple[str, ...] = ()


class PlaceholderContext(Frozen):
    """What a placeholder is told; strings the host does not have yet are empty."""

    mode: str
    workspace: str
    session_id: str
    approval: str
    provider: str
    model: str
    environment: Environment
    models: SessionModels | None = None


class Placeholder(Frozen):
    """One ``{{name}}`` token; ``resolve`` is called at every binding and its text is inserted as it is."""

    name: str
    resolve: Callable[[PlaceholderContext], str]


class StatusField(Frozen):
    """One field of the custom status line; the description is at most 80 characters."""

    name: str
    description: str
