"""Slash commands of plugins: run by name or alias, with text that becomes notes, and contained when they fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crystal.engine.commands import UnknownCommand
from crystal.host.sources.builtin import FoundPlugin
from crystal.types.commands import Command, CommandContext, Table, View
from crystal.types.events import NoteAdded, TurnFinished
from crystal.types.notes import NoteCode, Severity
from tests.engine.runs import DONE
from tests.engine.surface import Surface
from tests.host.hosts import MadePlugin


@pytest.fixture
def surface(tmp_path: Path) -> Surface:
    return Surface(tmp_path)


def run_command(surface: Surface, run: Callable[..., Any], line: str = "lint a b") -> Any:
    """Open a session with one command, run ``line``, close, and return what the surface is to draw."""
    command = Command(name="Lint", description="lints", run=run, aliases=("l",))
    plugin = FoundPlugin(name="plugin:test/Acme", plugin=MadePlugin("Acme", contribute_commands=lambda: [command]))

    async def talk() -> Any:
        session = await surface.open([DONE], extra_plugins=(plugin,))
        try:
            name, _, text = line.partition(" ")
            return await session.command(name, text)
        finally:
            await session.close()

    return asyncio.run(talk())


def outputs(surface: Surface) -> list[tuple[str, Severity]]:
    notes = [event.note for event in surface.events if isinstance(event, NoteAdded)]
    return [(note.text, note.severity) for note in notes if note.code is NoteCode.COMMAND_OUTPUT]


@pytest.mark.parametrize("verb", ["lint", "LINT", "l", "L"])
def test_a_text_becomes_a_note_and_gets_what_stood_after_the_verb(surface: Surface, verb: str) -> None:
    def run(text: str, context: CommandContext) -> str:
        assert context.workspace == surface.workspace
        return f"linted {text!r}"

    assert run_command(surface, run, f"{verb} a  b") is None
    assert outputs(surface) == [("linted 'a  b'", Severity.INFO)]


@pytest.mark.parametrize("drawn", [Table(headings=("a",), rows=(("1",),)), View(title="t", lines=("x",))])
def test_a_table_and_a_view_are_for_the_surface_to_draw(surface: Surface, drawn: Table | View) -> None:
    async def run(text: str, context: CommandContext) -> Table | View:
        await asyncio.sleep(0)
        return drawn

    assert run_command(surface, run) == drawn
    assert outputs(surface) == []


@pytest.mark.parametrize("said", [None, "", "  \n"])
def test_nothing_said_is_no_note(surface: Surface, said: str | None) -> None:
    assert run_command(surface, lambda text, context: said) is None
    assert outputs(surface) == []


@pytest.mark.parametrize("fault", [ValueError("odd"), SystemExit(3), asyncio.CancelledError(), GeneratorExit()])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_command_that_fails_is_said_and_ends_nothing(surface: Surface, fault: BaseException, is_async: bool) -> None:
    def plain(text: str, context: CommandContext) -> None:
        raise fault

    async def later(text: str, context: CommandContext) -> None:
        raise fault

    run_command(surface, later if is_async else plain)
    [(text, severity)] = outputs(surface)
    assert severity is Severity.ERROR
    assert "/lint" in text
    assert "plugin:test/Acme" in text


def test_an_answer_of_another_kind_is_said(surface: Surface) -> None:
    assert run_command(surface, lambda text, context: 4) is None
    assert "answered int" in outputs(surface)[0][0]


def test_an_unknown_verb_gets_the_nearest_one(surface: Surface) -> None:
    with pytest.raises(UnknownCommand, match="did you mean '/lint'"):
        run_command(surface, lambda text, context: "", "lnt")


def test_a_command_may_start_a_turn_but_has_no_way_to_answer_an_approval(surface: Surface) -> None:
    async def run(text: str, context: CommandContext) -> str:
        offered = {name for name in dir(context.operations) if not name.startswith("_")}
        assert offered == {"send", "follow_up", "interrupt", "reload"}
        ended: TurnFinished = await context.operations.send("do it")
        return ended.stop_reason.value

    run_command(surface, run)
    assert outputs(surface) == [("done", Severity.INFO)]
