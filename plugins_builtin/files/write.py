"""The ``write`` tool: create a file or replace the whole of one that the session has read."""

from __future__ import annotations

import os

from crystal.types.tools import ToolCall, ToolContext, ToolDefinition, ToolOutput
from crystal.workspace.limits import WRITE_BYTES
from crystal.workspace.open_files import open_regular
from crystal.workspace.text_files import NotText, decode_text
from plugins_builtin.files.outcome import CallRefused, answer, counted, fence_of, unspellable
from plugins_builtin.files.read import image_type
from plugins_builtin.files.saving import LOADED_BYTES, load, other_names_note, save
from plugins_builtin.files.stamps import has_changed, states_of


class WriteTool:
    """Writes a file as UTF-8. Overwriting one that the session has not read, or that changed since, is refused."""

    definition = ToolDefinition(
        name="write",
        description="Write a whole file, making its folders. An existing file must have been read before; "
        "prefer edit for changes.",
        schema={
            "type": "object",
            "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
            "required": ["path", "content"],
            "additionalProperties": False,
        },
    )

    async def invoke(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Write one file."""
        return answer(_write, call, context)


def _write(call: ToolCall, context: ToolContext) -> ToolOutput:
    fence = fence_of(context)
    path = call.arguments["path"]
    real = fence.admit(path, context.permitted_paths, writing=True).real
    shown = fence.show(real)
    data = _encoded(call.arguments["content"], shown)
    size = f"{counted(_line_count(data), 'line')}, {counted(len(data), 'byte')}"
    if not os.path.lexists(real):
        if path.rpartition("/")[2] in ("", ".", ".."):
            raise CallRefused(f"{shown} is written as a folder; give the name of a file.")
        if garbled := unspellable(path):
            raise CallRefused(f"There is no file {shown} and none is made under that name.{garbled}")
        save(call, context, real, shown, data, before=None, status=None)
        return ToolOutput(text=f"Created {shown} ({size}).")
    with open_regular(real, shown) as opened:
        before = load(opened)
    if before is None:
        raise CallRefused(f"{shown} is larger than the {LOADED_BYTES} bytes that write replaces; remove it with bash.")
    states = states_of(context)
    seen = None if states is None else states.seen(real)
    if seen is None:
        raise CallRefused(_unread(before, shown))
    if has_changed(seen, before, opened.status):
        raise CallRefused(f"{shown} changed on disk since it was read; read it again before overwriting it.")
    save(call, context, real, shown, data, before=before, status=opened.status)
    return ToolOutput(text=f"Overwrote {shown} ({size}).{_changes(before, data)}{other_names_note(opened.status)}")


def _unread(before: bytes, shown: str) -> str:
    try:
        decode_text(before)
    except NotText:
        if image_type(before) is None:
            return f"{shown} exists and is a binary file, which read cannot show; remove it with bash to replace it."
    return f"{shown} exists and was not read in this session; read it before overwriting it."


def _encoded(content: str, shown: str) -> bytes:
    try:
        data = content.encode("utf-8")
    except UnicodeEncodeError:
        raise CallRefused("content holds half of a surrogate pair, which no file can hold; write it out.") from None
    if len(data) > WRITE_BYTES:
        raise CallRefused(
            f"The content for {shown} has {len(data)} bytes and write takes at most {WRITE_BYTES}; write it in parts."
        )
    return data


def _changes(before: bytes, after: bytes) -> str:
    """Say what the new bytes change beside the text: the encoding, the byte order mark, the line ends."""
    try:
        old = decode_text(before)
    except NotText:
        return " It was a binary file and is UTF-8 text now."
    notes = ""
    if old.codec != "utf-8" or not old.exact:
        notes += f" Its encoding changed from {old.encoding if old.exact else 'one that is not UTF-8'} to UTF-8."
    elif old.mark and not after.startswith(old.mark):
        notes += " Its byte order mark is gone."
    if "\r\n" in old.text and b"\n" in after and b"\r\n" not in after:
        notes += " Its line ends changed from CRLF to LF."
    return notes


def _line_count(data: bytes) -> int:
    return data.count(b"\n") + (0 if not data or data.endswith(b"\n") else 1)
