"""``crystal sessions list|show``."""

from __future__ import annotations

import json
import os
import sys
from datetime import datetime
from pathlib import Path

import click

from crystal.cli.listing import listing_option, print_rows
from crystal.cli.safe_text import safe_line, safe_text
from crystal.engine.preflight import check_workspace, working_directory
from crystal.engine.repair import arrange
from crystal.store.home import Home, locate_home
from crystal.store.sessions import SessionRecord, SessionStore
from crystal.types.items import (
    AssistantItem,
    ModelItem,
    ReasoningItem,
    SystemItem,
    ToolCallItem,
    ToolResultItem,
    UserItem,
)

LISTED = 1000


@click.group(name="sessions")
def command() -> None:
    """List and show saved sessions."""


def open_store(home: Home) -> SessionStore:
    """Open the session database of a home that has one.

    :raises click.ClickException: when nothing was saved there yet.
    """
    if not home.database.exists():
        raise click.ClickException(f"there is no saved session in {home.root}; 'crystal run TASK' makes one.")
    return SessionStore.open(home)


@command.command(name="list")
@click.option("--all", "everywhere", is_flag=True, help="Sessions of every workspace.")
@click.option("-w", "--workspace", type=click.Path(path_type=Path), help="Workspace; else the working directory.")
@click.option("--home", help="Crystal home; else CRYSTAL_HOME, else ~/.crystal.")
@listing_option
def list_sessions(everywhere: bool, workspace: Path | None, home: str | None, form: str) -> None:
    """List the saved sessions of this workspace, the latest first."""
    store = open_store(locate_home(home, os.environ))
    try:
        chosen = None if everywhere else check_workspace(workspace or working_directory())
        records = store.list(chosen, LISTED)
    finally:
        store.close()
    headings = ("id", "updated", "turns", "items", "model", "title", "workspace")
    print_rows(form, headings, [_row(record) for record in records])


def _row(record: SessionRecord) -> tuple[str, ...]:
    updated = datetime.fromtimestamp(record.updated).astimezone().isoformat(sep=" ", timespec="seconds")
    model = f"{record.provider}/{record.model}"
    return record.id, updated, str(record.turns), str(record.items), model, record.title, record.workspace


@command.command(name="show")
@click.argument("session")
@click.option("--home", help="Crystal home; else CRYSTAL_HOME, else ~/.crystal.")
@click.option("--format", "form", type=click.Choice(("text", "json")), default="text", help="Output format.")
def show(session: str, home: str | None, form: str) -> None:
    """Show one session: what was said, called and answered. SESSION is an id or the beginning of one."""
    store = open_store(locate_home(home, os.environ))
    try:
        record = store.get(session)
        items, notes = store.load_items(record.id)
        usage = store.usage(record.id)
    finally:
        store.close()
    for note in notes:
        sys.stderr.write(f"crystal: {safe_text(note.text)}\n")
    arranged = arrange(items, lambda kind: f"{kind}_shown").items
    if form == "json":
        shown = {
            "id": record.id,
            "workspace": record.workspace,
            "title": record.title,
            "provider": record.provider,
            "model": record.model,
            "turns": record.turns,
            "usage": {"input": usage.input, "output": usage.output, "cached": usage.cached},
            "items": [_item_object(item) for item in arranged],
        }
        sys.stdout.write(json.dumps(shown, indent=2) + "\n")
        return
    model = f"{record.provider}/{record.model}"
    sys.stdout.write(f"{record.id}  {safe_line(record.title)}\n{safe_line(record.workspace)}  {safe_line(model)}\n\n")
    for item in arranged:
        sys.stdout.write(safe_text(_item_text(item)) + "\n")


def _item_text(item: ModelItem) -> str:
    match item:
        case UserItem():
            pictures = "".join(f"\n  [image {image.name or image.digest[:12]}]" for image in item.images)
            return f"[user] {item.text}{pictures}"
        case AssistantItem():
            return f"[assistant] {item.text}"
        case ReasoningItem():
            return f"[thinking] {item.text}"
        case ToolCallItem():
            return f"[call {item.call_id}] {item.name} {item.arguments}"
        case ToolResultItem():
            return f"[result {item.call_id}] ({'failed' if item.failed else 'ok'}) {item.text}"
        case SystemItem():
            return f"[system] {item.text}"


def _item_object(item: ModelItem) -> dict[str, object]:
    kinds = {
        UserItem: "user",
        AssistantItem: "assistant",
        ReasoningItem: "reasoning",
        ToolCallItem: "tool_call",
        ToolResultItem: "tool_result",
        SystemItem: "system",
    }
    shown: dict[str, object] = {"type": kinds[type(item)], "id": item.id}
    match item:
        case ToolCallItem():
            shown |= {"callId": item.call_id, "name": item.name, "arguments": item.arguments}
        case ToolResultItem():
            shown |= {"callId": item.call_id, "name": item.name, "text": item.text, "failed": item.failed}
        case _:
            shown["text"] = item.text
    if isinstance(item, (UserItem, ToolResultItem)) and item.images:
        shown["images"] = [
            {"digest": image.digest, "type": image.media_type, "size": image.size, "name": image.name}
            for image in item.images
        ]
    return shown
