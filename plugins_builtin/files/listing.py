"""The ``list`` tool: the entries of one folder, in pages. Ignore rules do not apply."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from crystal.types.tools import ToolCall, ToolContext, ToolDefinition, ToolOutput
from crystal.workspace.fence import printable
from crystal.workspace.limits import ENTRY_LIMIT, OUTPUT_CHARACTERS
from crystal.workspace.open_files import describe_kind, open_folder
from plugins_builtin.files.argument_rules import require_arguments
from plugins_builtin.files.outcome import CallRefused, answer, counted, fence_of, positive

_NOTE_CHARACTERS = 500
"""Room kept in the output for what is said about the page."""

_FARTHEST = 10**18
"""An offset beyond is as good as this one: no folder holds as much, and longer numbers cannot be written out."""

_ENTRIES_HELD = 10_000
"""Entries held beyond those that a page needs before the others are dropped."""


class ListTool:
    """Lists a folder."""

    definition = ToolDefinition(
        name="list",
        description="List the entries of one folder, hidden ones included; folders end in /.",
        schema={
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "default: the workspace"},
                "offset": {"type": "integer", "minimum": 1, "description": "first entry, from 1"},
                "limit": {"type": "integer", "minimum": 1, "maximum": ENTRY_LIMIT},
            },
            "additionalProperties": False,
        },
    )

    async def invoke(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """List one folder."""
        return answer(_list, call, context)


def _list(call: ToolCall, context: ToolContext) -> ToolOutput:
    require_arguments(call, ListTool.definition)
    fence = fence_of(context)
    real = fence.admit(call.arguments.get("path", "."), context.permitted_paths).real
    shown = fence.show(real)
    offset = min(positive(call, "offset", 1), _FARTHEST)
    limit = min(positive(call, "limit", ENTRY_LIMIT), ENTRY_LIMIT)
    with open_folder(real, shown) as folder, os.scandir(folder) as scanned:
        count, entries = _first_entries(scanned, offset + limit - 1)
        page = _within_output(_describe(entry, folder) for entry in entries[offset - 1 :])
    if not count:
        return ToolOutput(text=f"{shown} is an empty folder.")
    if not page:
        raise CallRefused(f"{shown} has {counted(count, 'entry', 'entries')}; offset {offset} is past its end.")
    last = offset + len(page) - 1
    if last < count:
        page.append(f"(Entries {offset}-{last} of {count}; go on with offset {last + 1}.)")
    return ToolOutput(text="\n".join(page))


def _first_entries(scanned: Iterator[os.DirEntry[str]], wanted: int) -> tuple[int, list[os.DirEntry[str]]]:
    """Count the entries of a folder and return the first ones by name; only about as many are held at once."""
    count = 0
    held: list[os.DirEntry[str]] = []
    for entry in scanned:
        count += 1
        held.append(entry)
        if len(held) > 2 * wanted + _ENTRIES_HELD:
            held.sort(key=_name_bytes)
            del held[wanted:]
    held.sort(key=_name_bytes)
    return count, held[:wanted]


def _name_bytes(entry: os.DirEntry[str]) -> bytes:
    return os.fsencode(entry.name)


def _within_output(lines: Iterable[str]) -> list[str]:
    """Return as many lines as one output holds, and at least one."""
    page: list[str] = []
    room = OUTPUT_CHARACTERS - _NOTE_CHARACTERS
    for line in lines:
        room -= len(line) + 1
        if room < 0 and page:
            break
        page.append(line)
    return page


def _describe(entry: os.DirEntry[str], folder: int) -> str:
    name = printable(entry.name)
    if any("\ud800" <= character <= "\udfff" for character in entry.name):
        name += " (its name is not UTF-8; rename it with bash to use it)"
    try:
        if entry.is_symlink():
            return f"{name} -> {printable(os.readlink(entry.name, dir_fd=folder))}"
        if entry.is_dir(follow_symlinks=False):
            return f"{name}/"
        if entry.is_file(follow_symlinks=False):
            return name
        return f"{name} ({describe_kind(entry.stat(follow_symlinks=False).st_mode).partition(' ')[2]})"
    except OSError:
        # It was removed while the folder was listed, or cannot be looked at.
        return name
