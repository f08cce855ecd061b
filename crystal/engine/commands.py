"""Slash commands: find the one that is meant, run it, and say what became of it."""

from __future__ import annotations

import asyncio
import difflib
import inspect
from typing import Any

from crystal.engine.state import SessionState
from crystal.host.admission import RegisteredCommand
from crystal.host.isolation import name_fault, run_isolated
from crystal.types.commands import CommandContext, Table, View
from crystal.types.notes import NoteCode, Severity

COMMAND_GRACE_SECONDS = 5.0


class UnknownCommand(Exception):
    """There is no such command; the message names the nearest one."""


async def run_command(state: SessionState, operations: Any, name: str, text: str) -> Table | View | None:
    """Run the command ``name`` and return what the surface is to draw; its text becomes a note.

    :param operations: what the command may do with the session.
    :param name: a verb or an alias, without the slash, in any case.
    :param text: what stood after the verb.
    :raises UnknownCommand: when nothing is registered by that name.
    """
    found = _find(state, name)
    context = CommandContext(
        workspace=state.workspace, session_id=state.session_id, approval=state.approval, operations=operations
    )

    async def invoke() -> Any:
        # Inside the task: a plain function may raise when it is called.
        result = found.command.run(text, context)
        return await result if inspect.isawaitable(result) else result

    result, error = await run_isolated(invoke(), grace=COMMAND_GRACE_SECONDS)
    if error is not None:
        what = "cancelled itself" if isinstance(error, asyncio.CancelledError) else name_fault(error)
        _say(state, found, f"The command '/{name}' of plugin '{found.plugin}' {what}.", Severity.ERROR)
        return None
    match result:
        case None:
            return None
        case str():
            if result.strip():
                _say(state, found, result, Severity.INFO)
            return None
        case Table() | View():
            return result
        case _:
            _say(
                state,
                found,
                f"The command '/{name}' of plugin '{found.plugin}' answered {type(result).__name__}; "
                "a text, a Table or a View is shown.",
                Severity.ERROR,
            )
            return None


def _find(state: SessionState, name: str) -> RegisteredCommand:
    known = state.host.commands
    key = name.lower()
    for verb, command in known.items():
        if key == verb or key in command.aliases:
            return command
    nearest = difflib.get_close_matches(key, known, n=1)
    mend = f"did you mean '/{nearest[0]}'?" if nearest else "'/help' lists the commands."
    raise UnknownCommand(f"There is no command '/{name}'; {mend}")


def _say(state: SessionState, found: RegisteredCommand, text: str, severity: Severity) -> None:
    state.host.notes.add(NoteCode.COMMAND_OUTPUT, state.redactor.apply(text), found.plugin, severity)
