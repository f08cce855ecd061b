"""What the commands that list, show and switch plugins and tool sets have in common: options, rows, words."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from crystal.cli.listing import print_rows
from crystal.cli.safe_text import safe_line
from crystal.host.sources.switching import Switched
from crystal.host.sources.trees import DiscoveredFolder
from crystal.types._frozen import Frozen
from crystal.types.environment import ExtensionSource
from crystal.types.notes import Note

LINE = 4096
Function = TypeVar("Function", bound=Callable[..., Any])
Folder = TypeVar("Folder", bound=DiscoveredFolder)


class ExtensionRow(Frozen):
    """One folder or installed package as the lists show it.

    :param source: ``home``, ``project`` or ``package``.
    :param enabled: ``None`` when the manifest could not say.
    :param reason: why it is not loaded; empty when it is.
    :param details: further facts for ``show``, by name.
    """

    name: str
    source: str
    enabled: bool | None
    reason: str
    details: tuple[tuple[str, Any], ...]

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of a table."""
        enabled = {True: "yes", False: "no", None: "unknown"}[self.enabled]
        return self.name, self.source, enabled, "no" if self.reason else "yes", self.reason

    def as_object(self, headings: Sequence[str]) -> dict[str, Any]:
        """The row as JSON."""
        values = (self.name, self.source, self.enabled, not self.reason, self.reason)
        return dict(zip(headings, values, strict=True))


def place_options(function: Function) -> Function:
    """Add ``--source``, ``--workspace`` and ``--home``."""
    for option in (
        click.option("--home", help="Crystal home; else CRYSTAL_HOME, else ~/.crystal."),
        click.option("-w", "--workspace", type=click.Path(path_type=Path), help="Workspace; else the working folder."),
        click.option("--source", type=click.Choice(["home", "project"]), help="Only this tree."),
    ):
        function = option(function)
    return function


def headings(word: str) -> tuple[str, ...]:
    """Return the heads of a list's columns.

    :param word: what is listed.
    """
    return word, "source", "enabled", "effective", "reason"


def print_list(form: str, word: str, rows: Sequence[ExtensionRow]) -> None:
    """Print a list in the form that was asked for."""
    heads = headings(word)
    if form == "json":
        sys.stdout.write(json.dumps([row.as_object(heads) for row in rows], indent=2) + "\n")
    else:
        print_rows(form, heads, [row.cells for row in rows])


def print_one(form: str, word: str, row: ExtensionRow) -> None:
    """Print one row in full."""
    heads = headings(word)
    if form == "json":
        sys.stdout.write(json.dumps(row.as_object(heads) | dict(row.details), indent=2) + "\n")
        return
    for field, value in (*zip(heads, row.cells, strict=True), *row.details):
        text = ", ".join(value) if isinstance(value, list) else str(value)
        sys.stdout.write(f"{field:<12}{safe_line(text, LINE)}".rstrip() + "\n")


def choose_row(rows: Iterable[ExtensionRow], name: str) -> ExtensionRow | None:
    """Return the row of that name; a project's wins over the home's."""
    named = [row for row in rows if row.name == name]
    return next((row for row in named if row.source == ExtensionSource.PROJECT.value), named[0] if named else None)


def choose_folder(folders: Iterable[Folder], name: str, source: ExtensionSource | None) -> Folder | None:
    """Return the folder of that name; without a source the project's wins over the home's."""
    named = [folder for folder in folders if folder.directory == name and source in (None, folder.source)]
    return max(named, key=lambda folder: folder.source is ExtensionSource.PROJECT, default=None)


def say_notes(notes: Iterable[Note], told: frozenset[str]) -> None:
    """Write the notes that no row tells of: those about whole trees and what lies in them besides.

    :param told: full names of what has a row.
    """
    for note in notes:
        if note.source not in told:
            sys.stderr.write(f"crystal: {safe_line(note.text, LINE)}\n")


def say_switched(found: DiscoveredFolder, switched: Switched, enabled: bool, off: str) -> None:
    """Say what became of a switch, and what still stands in the way.

    :param off: why nothing of the kind is loaded in spite of it; empty when it is.
    """
    word = "enabled" if enabled else "disabled"
    already = "" if switched.changed else " already"
    told = f"{found.source.value}/{found.directory} is {word}{already}: {switched.path}"
    sys.stdout.write(safe_line(told, LINE) + "\n")
    if found.source is ExtensionSource.PROJECT and not switched.trusted:
        what = found.kind.word
        sys.stdout.write(f"  The project's {what} is not trusted and does not count; 'crystal trust' asks.\n")
    if enabled and off:
        sys.stdout.write(f"  Nothing is loaded all the same: {off}.\n")


def unknown(kind: str, name: str, source: str | None, known: Sequence[str]) -> click.ClickException:
    """Return the error for a name that nothing has.

    :param kind: ``plugin`` or ``tool set``.
    """
    where = f"{kind}s" if source is None else f"{source} {kind}s"
    nearest = difflib.get_close_matches(name, known, n=1)
    command = "plugins" if kind == "plugin" else "tools"
    mend = f"did you mean {nearest[0]}?" if nearest else f"'crystal {command} list' lists what there is."
    return click.ClickException(f"there is no {kind} folder {name!r} among the {where}; {mend}")
