"""``crystal tools new``: a tool set that works, to begin from."""

from __future__ import annotations

import json
import keyword
import os
from collections.abc import Mapping
from pathlib import Path

import click

from crystal.cli.plugin_new import module_name, write_folder
from crystal.host.reserved import RESERVED_TOOLS
from crystal.host.sources.disk import DIRECTORY_NAME
from crystal.workspace.fence import printable

PROGRAM = '''\
#!/usr/bin/env python3
"""Reads the arguments of one call from standard input and prints the result."""

import json
import sys

arguments = json.load(sys.stdin)
print(f"Hello, {arguments['who']}.")
'''

MODULE = '''\
"""Every function with @tool above it is a tool."""

from crystal import tool


@tool
def NAME(who: str) -> str:
    """Greet somebody by name."""
    return f"Hello, {who}."
'''


@click.command(name="new")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--runner", type=click.Choice(["exec", "python"]), default="exec", help="A program, or a Python module.")
def command(directory: Path, runner: str) -> None:
    """Write a tool set to begin from into DIRECTORY, which must not be there yet."""
    folder = Path(os.path.abspath(directory))
    if not DIRECTORY_NAME.fullmatch(folder.name):
        raise click.ClickException(
            f"{printable(folder.name)!r} cannot name a tool set's folder; give a letter, then letters, digits, "
            "_ . or - (64 at most)."
        )
    files = _exec_files(folder.name) if runner == "exec" else _python_files(folder.name)
    write_folder(folder, files, executable=frozenset(("run.py",)))
    tool = tool_name(folder.name)
    click.echo(f"{folder} holds {', '.join(files)}; it brings the tool {tool}.")
    if folder.parent.parent.name == ".crystal":
        click.echo("A workspace's set counts when it is trusted; 'crystal trust' asks.")
    elif folder.parent.name != "tools":
        click.echo("Use it: move the folder into tools/ of your Crystal home (~/.crystal/tools).")


def tool_name(name: str) -> str:
    """Return a tool's name for a folder's; one that a built-in tool or the language has gets a tail."""
    plain = "".join(letter if letter.isalnum() else "_" for letter in name.lower())
    return f"{plain[:59]}_tool" if plain in RESERVED_TOOLS or keyword.iskeyword(plain) else plain


def _exec_files(name: str) -> dict[str, str]:
    schema = {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"]}
    tool = {"name": tool_name(name), "description": "Greet somebody by name.", "schema": schema}
    manifest = {"runner": "exec", "command": ["./run.py"], "tools": [tool]}
    return {"tools.json": _text(manifest), "run.py": PROGRAM}


def _python_files(name: str) -> dict[str, str]:
    module = f"{module_name(name)}.py"
    manifest = {"runner": "python", "module": module}
    return {"tools.json": _text(manifest), module: MODULE.replace("NAME", tool_name(name))}


def _text(manifest: Mapping[str, object]) -> str:
    return json.dumps(manifest, indent=2) + "\n"
