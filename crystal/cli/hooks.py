"""``crystal hooks``: every hook with its live implementations in call order, or one in full."""

from __future__ import annotations

import difflib
import inspect
import json
import os
import sys
from pathlib import Path

import click

from crystal.cli.listing import listing_option, print_rows
from crystal.cli.loaded_host import loaded_host
from crystal.cli.safe_text import safe_line
from crystal.hookspecs.pending import PENDING
from crystal.host.build import Host
from crystal.host.manager import HookSpecification
from crystal.store.home import locate_home

_LINE = 4096


@click.command(name="hooks")
@click.argument("name", required=False)
@click.option("-w", "--workspace", type=click.Path(path_type=Path), help="Workspace; else the working folder.")
@click.option("--home", help="Crystal home; else CRYSTAL_HOME, else ~/.crystal.")
@listing_option
def command(name: str | None, workspace: Path | None, home: str | None, form: str) -> None:
    """List the hooks with their live implementations in call order; with NAME, show one in full.

    Plugins are loaded as a run would load them; what there is to say about them goes to stderr.
    """
    with loaded_host(locate_home(home, os.environ), workspace) as host:
        for note in host.notes.all:
            sys.stderr.write(f"crystal: {safe_line(note.text, _LINE)}\n")
        if name is None:
            headings = ("hook", "kind", "arguments", "implementations")
            print_rows(form, headings, [_row(host, found) for found in host.plugins.specifications.values()])
            return
        specification = host.plugins.specifications.get(name)
        if specification is None:
            nearest = difflib.get_close_matches(name, host.plugins.specifications, n=1)
            mend = f"did you mean {nearest[0]}?" if nearest else "'crystal hooks' lists them."
            raise click.ClickException(f"there is no hook {name!r}; {mend}")
        if form == "json":
            sys.stdout.write(json.dumps(as_object(host, specification), indent=2) + "\n")
        else:
            sys.stdout.write(describe(host, specification))


def _row(host: Host, specification: HookSpecification) -> tuple[str, ...]:
    plugins = ", ".join(found.plugin for found in host.plugins.implementations(specification.name))
    if specification.name in PENDING:
        plugins = f"(comes with {PENDING[specification.name]})"
    raw = " (raw)" if specification.declaration.raw else ""
    return (
        specification.name,
        specification.declaration.kind.value + raw,
        ", ".join(specification.arguments),
        plugins,
    )


def as_object(host: Host, specification: HookSpecification) -> dict[str, object]:
    """Return everything about one hook as JSON."""
    declaration = specification.declaration
    return {
        "hook": specification.name,
        "kind": declaration.kind.value,
        "raw": declaration.raw,
        "guard": declaration.guard,
        "arguments": list(specification.arguments),
        "contract": declaration.contract,
        "documentation": inspect.getdoc(specification.function) or "",
        "pending": PENDING.get(specification.name),
        "implementations": [
            {"plugin": found.plugin, "arguments": list(found.arguments)}
            for found in host.plugins.implementations(specification.name)
        ],
    }


def describe(host: Host, specification: HookSpecification) -> str:
    """Return everything about one hook as text."""
    declaration = specification.declaration
    signature = str(inspect.signature(specification.function)).replace("'", "")
    lines = [
        f"{specification.name}{signature}",
        f"kind      {declaration.kind.value}{' (raw)' if declaration.raw else ''}",
        f"contract  {declaration.contract}",
    ]
    if declaration.guard:
        lines.append("guard     an implementation that fails makes the call require the operator")
    if specification.name in PENDING:
        lines.append(f"pending   nothing calls it yet; it comes with {PENDING[specification.name]}")
    lines += ["", inspect.getdoc(specification.function) or "", "", "implementations, in call order:"]
    found = host.plugins.implementations(specification.name)
    lines += [f"  {each.plugin}({', '.join(each.arguments)})" for each in found] or ["  none"]
    return "\n".join(lines) + "\n"
