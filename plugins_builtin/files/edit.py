"""The ``edit`` tool: replace exact text in one file and leave every other byte as it is."""

from __future__ import annotations

from crystal.types.tools import ToolCall, ToolContext, ToolDefinition, ToolOutput
from crystal.workspace.open_files import FileMissing, open_regular
from crystal.workspace.text_files import NotText, TextFile, decode_text, encode_text
from plugins_builtin.files.outcome import CallRefused, answer, counted, fence_of, unspellable
from plugins_builtin.files.replacement import NotReplaced, ReplacedTooLong, Replacement, name_lines, replace_text
from plugins_builtin.files.saving import LOADED_BYTES, load, other_names_note, save
from plugins_builtin.files.stamps import has_changed, states_of


class EditTool:
    """Edits a file. A file never read may be edited, since the exact text proves knowledge of it; one that
    changed since the session read it may not."""

    definition = ToolDefinition(
        name="edit",
        description="Replace exact text in a file. old_string must be unique unless replace_all is set, "
        "and is given without line numbers.",
        schema={
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "old_string": {"type": "string"},
                "new_string": {"type": "string"},
                "replace_all": {"type": "boolean"},
            },
            "required": ["path", "old_string", "new_string"],
            "additionalProperties": False,
        },
    )

    async def invoke(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Edit one file. It never waits between reading and writing, so two edits of one file cannot mix."""
        return answer(_edit, call, context)


def _edit(call: ToolCall, context: ToolContext) -> ToolOutput:
    fence = fence_of(context)
    path = call.arguments["path"]
    real = fence.admit(path, context.permitted_paths, writing=True).real
    shown = fence.show(real)
    old, new = call.arguments["old_string"], call.arguments["new_string"]
    _require_usable(old, new, shown)
    try:
        with open_regular(real, shown) as opened:
            before = load(opened)
    except FileMissing:
        raise CallRefused(f"There is no file {shown} to edit; create it with write.{unspellable(path)}") from None
    if before is None:
        raise CallRefused(f"{shown} is larger than the {LOADED_BYTES} bytes that edit takes; change it with bash.")
    states = states_of(context)
    seen = None if states is None else states.seen(real)
    if seen is not None and has_changed(seen, before, opened.status):
        raise CallRefused(f"{shown} changed on disk since it was read; read it again and repeat the edit.")
    try:
        decoded = decode_text(before)
    except NotText:
        raise CallRefused(f"{shown} is a binary file; edit changes only text.") from None
    _require_fitting(decoded, old, new, shown)
    replacement = _replace(decoded, old, new, shown, replace_all=bool(call.arguments.get("replace_all", False)))
    after = encode_text(decoded, replacement.text)
    if after == before:
        raise CallRefused(f"The edit would leave {shown} as it is; give a new_string that differs.")
    save(call, context, real, shown, after, before=before, status=opened.status)
    count = counted(replacement.count, "replacement")
    return ToolOutput(
        text=f"Edited {shown}: {count} at {name_lines(replacement.lines)}.{other_names_note(opened.status)}"
    )


def _require_usable(old: str, new: str, shown: str) -> None:
    if not old:
        raise CallRefused(f"old_string is empty; use write to create or fill {shown}, or name the text to replace.")
    if old == new:
        raise CallRefused(f"old_string and new_string are the same, so {shown} would not change; give another one.")
    for name, text in (("old_string", old), ("new_string", new)):
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise CallRefused(f"{name} holds half of a surrogate pair, which no file can hold; write it out.") from None


def _require_fitting(decoded: TextFile, old: str, new: str, shown: str) -> None:
    """Refuse an edit that would mix encodings or write the sign for unreadable bytes in their place."""
    if decoded.exact or decoded.codec != "utf-8":
        return
    if "\ufffd" in old:
        raise CallRefused(
            f"{shown} holds bytes that are not UTF-8, which read shows as U+FFFD; give an old_string without them."
        )
    if not new.isascii():
        raise CallRefused(
            f"{shown} is not UTF-8, so edit puts only ASCII text into it; convert the file first or write ASCII."
        )


def _replace(decoded: TextFile, old: str, new: str, shown: str, *, replace_all: bool) -> Replacement:
    try:
        return replace_text(decoded.text, old, new, replace_all=replace_all, longest=LOADED_BYTES)
    except ReplacedTooLong:
        raise CallRefused(
            f"The edit would make {shown} larger than edit can hold; replace fewer places or use bash."
        ) from None
    except NotReplaced as missed:
        if missed.lines:
            raise CallRefused(
                f"old_string appears {missed.count} in {shown} ({name_lines(missed.lines)}); "
                "add lines around it to make it unique or set replace_all."
            ) from None
    from plugins_builtin.files.nearness import describe_near

    near = describe_near(decoded.shown(), old)
    raise CallRefused(f"old_string was not found in {shown}; read the place and copy it exactly. {near}".rstrip())
