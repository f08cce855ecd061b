"""``crystal schema NAME``: print a published JSON Schema."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import click

from crystal.types.notes import NoteCode, Severity


def _notes() -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A note of crystal",
        "type": "object",
        "required": ["code", "severity", "source", "text"],
        "properties": {
            "code": {"enum": [code.value for code in NoteCode]},
            "severity": {"enum": [severity.value for severity in Severity]},
            "source": {"type": "string"},
            "text": {"type": "string"},
        },
    }


def _script() -> dict[str, Any]:
    from plugins_builtin.protocols.script_schema import SCRIPT_SCHEMA

    return dict(SCRIPT_SCHEMA)


def _run_events() -> dict[str, Any]:
    from crystal.cli.printers.event_schema import RUN_EVENTS

    return RUN_EVENTS


def _stored(name: str) -> dict[str, Any]:
    from importlib.resources import files

    stored: dict[str, Any] = json.loads((files("crystal") / "schemas" / f"{name}.json").read_text("utf-8"))
    return stored


SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    "notes": _notes,
    "plugin": partial(_stored, "plugin"),
    "run-events": _run_events,
    "script": _script,
    "tools": partial(_stored, "tools"),
}


@click.command(name="schema")
@click.argument("name", type=click.Choice(sorted(SCHEMAS)))
def command(name: str) -> None:
    """Print the JSON Schema of what people or programs read and write."""
    sys.stdout.write(json.dumps(SCHEMAS[name](), indent=2) + "\n")
