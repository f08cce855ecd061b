"""Lists of rows in the three formats every list command has: a rich table, aligned text, JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from crystal.cli.safe_text import safe_line

LISTING_FORMATS = ("table", "text", "json")
Function = TypeVar("Function", bound=Callable[..., Any])


def listing_option(function: Function) -> Function:
    """Add ``--format table|text|json``."""
    return click.option("--format", "form", type=click.Choice(LISTING_FORMATS), default="table", help="Output format.")(
        function
    )


def print_rows(form: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under headings; in JSON each row is an object with the headings as keys."""
    if form == "json":
        listed = [dict(zip(headings, row, strict=True)) for row in rows]
        sys.stdout.write(json.dumps(listed, indent=2) + "\n")
        return
    safe = [[safe_line(cell) for cell in row] for row in rows]
    if form == "text":
        _print_text(headings, safe)
    else:
        _print_table(headings, safe)


def _print_text(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[column]) for row in (headings, *rows)) for column in range(len(headings))]
    for row in (headings, *rows):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        sys.stdout.write(line.rstrip() + "\n")


def _print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*headings)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console(file=sys.stdout).print(table)
