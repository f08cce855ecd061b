"""Small hosts for tests: plugins made from functions, and a host that holds nothing else."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from crystal import hookimpl
from crystal.host.dispatch import Dispatcher
from crystal.host.hooks import Hooks
from crystal.host.ledger import Ledger
from crystal.host.manager import PluginRegistry
from crystal.host.notes import Notes
from crystal.types.notes import Note, NoteCode

SECRET = "swordfish-4711"
"""Stands in messages and arguments; no note may hold it."""


class MadePlugin:
    """A plugin whose hooks are plain functions; one that is marked already keeps its mark."""

    def __init__(self, name: object, **hooks: Callable[..., Any]) -> None:
        self.name = name
        for hook, function in hooks.items():
            setattr(self, hook, function if hasattr(function, "crystal_impl") else hookimpl(function))


@dataclasses.dataclass(frozen=True)
class SmallHost:
    """The parts of a host that registers and calls."""

    registry: PluginRegistry
    dispatcher: Dispatcher
    hooks: Hooks
    notes: Notes
    ledger: Ledger

    def noted(self) -> list[tuple[NoteCode, str]]:
        """Return code and source of each note."""
        return [(note.code, note.source) for note in self.notes.all]

    def only_note(self) -> Note:
        """Return the one note there is."""
        (note,) = self.notes.all
        return note


def full_name(name: str) -> str:
    """Return the name under which :func:`make_host` registers a plugin."""
    return f"plugin:home/{name}"


def make_host(*plugins: Any, timeout: float = 60.0, blocked: tuple[str, ...] = ()) -> SmallHost:
    """Register ``plugins`` in order, each under ``plugin:home/`` and its ``name``, and compile their calls."""
    notes = Notes()
    registry = PluginRegistry(notes, blocked)
    for number, plugin in enumerate(plugins):
        name = getattr(plugin, "name", None)
        registry.register(full_name(name if isinstance(name, str) and name.strip() else f"number-{number}"), plugin)
    ledger = Ledger()
    dispatcher = Dispatcher(registry, notes, ledger, timeout)
    dispatcher.compile()
    return SmallHost(registry=registry, dispatcher=dispatcher, hooks=Hooks(dispatcher), notes=notes, ledger=ledger)
