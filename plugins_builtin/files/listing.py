"""The ``list`` tool: the entries of one folder, in pages. Ignore rules do not apply."""

from __future__ import annotations

import os

from crystal.types.tools import ToolCall, ToolContext, ToolDefinition, ToolOutput
from crystal.workspace.fence import printable
from crystal.workspace.limits import ENTRY_LIMIT
from crystal.workspace.open_files import describe_kind, open_folder
from plugins_builtin.files.outcome import CallRefused, answer, counted, fence_of, positive


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
    fence = fence_of(context)
    real = fence.admit(call.arguments.get("path", "."), context.permitted_paths).real
    shown = fence.show(real)
    offset = positive(call, "offset", 1)
    limit = min(positive(call, "limit", ENTRY_LIMIT), ENTRY_LIMIT)
    with open_folder(real, shown) as folder, os.scandir(folder) as scanned:
        entries = sorted(scanned, key=lambda entry: os.fsencode(entry.name))
        page = [_describe(entry, folder) for entry in entries[offset - 1 : offset - 1 + limit]]
    if not entries:
        return ToolOutput(text=f"{shown} is an empty folder.")
    if not page:
        count = counted(len(entries), "entry", "entries")
        raise CallRefused(f"{shown} has {count}; offset {offset} is past its end.")
    last = offset + len(page) - 1
    if last < len(entries):
        page.append(f"(Entries {offset}-{last} of {len(entries)}; go on with offset {last + 1}.)")
    return ToolOutput(text="\n".join(page))


def _describe(entry: os.DirEntry[str], folder: int) -> str:
    name = printable(entry.name)
    if entry.is_symlink():
        return f"{name} -> {printable(os.readlink(entry.name, dir_fd=folder))}"
    if entry.is_dir(follow_symlinks=False):
        return f"{name}/"
    if entry.is_file(follow_symlinks=False):
        return name
    return f"{name} ({describe_kind(entry.stat(follow_symlinks=False).st_mode).partition(' ')[2]})"
