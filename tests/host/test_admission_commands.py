"""Admission of slash commands, placeholders and status fields: each entry on its own, the host's names stay its own."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from crystal.host.admission import admit_commands, admit_placeholders, admit_status_fields
from crystal.host.dispatch import Collected
from crystal.host.reserved import PLACEHOLDERS, STATUS_FIELDS, VERBS
from crystal.types.commands import Command, CommandContext, Placeholder, PlaceholderContext, StatusField
from crystal.types.notes import NoteCode

ONE, OTHER = "plugin:home/One", "plugin:home/Other"


def run(text: str, context: CommandContext) -> str:
    return text


def resolve(context: PlaceholderContext) -> str:
    return "value"


def entries(*pairs: tuple[str, Any]) -> tuple[Collected, ...]:
    return tuple(Collected(plugin=plugin, entry=entry) for plugin, entry in pairs)


def command(name: Any, **changes: Any) -> Command:
    return dataclasses.replace(Command(name="x", description="does it", run=run), name=name, **changes)


@pytest.mark.parametrize("name", ["lint", "Run-It", "a_b", "x" * 64])
def test_a_command_is_admitted_by_its_lower_case_name(name: str) -> None:
    admitted, notes = admit_commands(entries((ONE, command(name))))
    assert list(admitted) == [name.lower()]
    assert notes == ()


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        (None, NoteCode.CONTRIBUTION_INVALID),
        ("lint", NoteCode.CONTRIBUTION_INVALID),
        (command(""), NoteCode.CONTRIBUTION_NAME),
        (command("1up"), NoteCode.CONTRIBUTION_NAME),
        (command("a b"), NoteCode.CONTRIBUTION_NAME),
        (command("/lint"), NoteCode.CONTRIBUTION_NAME),
        (command("x" * 65), NoteCode.CONTRIBUTION_NAME),
        (command(3), NoteCode.CONTRIBUTION_NAME),
        (command("lint", description=None), NoteCode.CONTRIBUTION_INVALID),
        (command("lint", run="ls"), NoteCode.CONTRIBUTION_INVALID),
        *((command(verb), NoteCode.CONTRIBUTION_RESERVED) for verb in sorted(VERBS)),
        (command("HELP"), NoteCode.CONTRIBUTION_RESERVED),
    ],
)
def test_a_command_that_breaks_a_rule_is_omitted_alone(entry: Any, code: NoteCode) -> None:
    admitted, notes = admit_commands(entries((ONE, entry), (ONE, command("kept"))))
    assert list(admitted) == ["kept"]
    assert [note.code for note in notes] == [code]
    assert ONE in notes[0].text


def test_the_first_command_of_a_name_wins_and_aliases_count_as_names() -> None:
    admitted, notes = admit_commands(
        entries(
            (ONE, command("lint", aliases=("l",))),
            (OTHER, command("Lint")),
            (OTHER, command("l")),
            (OTHER, command("check", aliases=("lint", "quit", "c", "c", "no name", 4))),
        )
    )
    assert {name: (found.plugin, found.aliases) for name, found in admitted.items()} == {
        "lint": (ONE, ("l",)),
        "check": (OTHER, ("c",)),
    }
    assert [note.code for note in notes] == [NoteCode.CONTRIBUTION_DUPLICATE] * 2 + [NoteCode.CONTRIBUTION_NAME] * 5


def test_a_built_in_plugin_may_bring_a_built_in_verb() -> None:
    admitted, notes = admit_commands(entries(("builtin:commands", command("help", aliases=("h",)))))
    assert (list(admitted), notes) == (["help"], ())


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("Ticket", None),
        ("a_1", None),
        ("x" * 64, None),
        ("x" * 65, NoteCode.CONTRIBUTION_NAME),
        ("", NoteCode.CONTRIBUTION_NAME),
        ("_a", NoteCode.CONTRIBUTION_NAME),
        ("a-b", NoteCode.CONTRIBUTION_NAME),
        ("{{a}}", NoteCode.CONTRIBUTION_NAME),
        (None, NoteCode.CONTRIBUTION_NAME),
        *((name.upper(), NoteCode.CONTRIBUTION_RESERVED) for name in sorted(PLACEHOLDERS)),
    ],
)
def test_placeholder_names(name: Any, code: NoteCode | None) -> None:
    admitted, notes = admit_placeholders(entries((ONE, Placeholder(name=name, resolve=resolve))))
    assert [note.code for note in notes] == ([] if code is None else [code])
    assert list(admitted) == ([name.lower()] if code is None else [])


def test_the_first_placeholder_of_a_name_wins_whatever_its_case() -> None:
    admitted, notes = admit_placeholders(
        entries(
            (ONE, Placeholder(name="ticket", resolve=resolve)), (OTHER, Placeholder(name="Ticket", resolve=resolve))
        )
    )
    assert admitted["ticket"].plugin == ONE
    assert [(note.code, note.source) for note in notes] == [(NoteCode.CONTRIBUTION_DUPLICATE, OTHER)]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("Build-State", None),
        ("x" * 32, None),
        ("x" * 33, NoteCode.CONTRIBUTION_NAME),
        ("a--b", NoteCode.CONTRIBUTION_NAME),
        ("a-", NoteCode.CONTRIBUTION_NAME),
        ("-a", NoteCode.CONTRIBUTION_NAME),
        ("1a", NoteCode.CONTRIBUTION_NAME),
        ("a_b", NoteCode.CONTRIBUTION_NAME),
        (None, NoteCode.CONTRIBUTION_NAME),
        *((name.title(), NoteCode.CONTRIBUTION_RESERVED) for name in sorted(STATUS_FIELDS)),
    ],
)
def test_status_field_names(name: Any, code: NoteCode | None) -> None:
    admitted, notes = admit_status_fields(entries((ONE, StatusField(name=name, description="what"))))
    assert [note.code for note in notes] == ([] if code is None else [code])
    assert list(admitted) == ([name.lower()] if code is None else [])


def test_the_description_of_a_status_field_is_one_line_of_eighty_characters() -> None:
    admitted, _ = admit_status_fields(entries((ONE, StatusField(name="build", description="a\nb " + "x" * 200))))
    assert admitted["build"].description == ("a b " + "x" * 200)[:80]


def test_an_entry_whose_code_raises_is_omitted_alone() -> None:
    class Hostile:
        @property
        def resolve(self) -> None:
            raise SystemExit(3)

    admitted, notes = admit_placeholders(entries((ONE, Hostile()), (ONE, Placeholder(name="kept", resolve=resolve))))
    assert list(admitted) == ["kept"]
    assert "SystemExit" in notes[0].text
