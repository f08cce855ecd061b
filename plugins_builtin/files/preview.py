"""What ``edit`` and ``write`` would change, for the person who is asked: a diff, or a sentence where there can be none.

It reads only what a call may read without anyone's approval, changes nothing, and never raises over a file.
"""

from __future__ import annotations

import os

from crystal.types.paths import PathZone
from crystal.types.tools import ToolCall, ToolContext
from crystal.workspace.fence import PathRefused, permit, printable
from crystal.workspace.open_files import FileMissing, open_regular, read_bytes
from crystal.workspace.text_files import NotText, TextFile, decode_text
from plugins_builtin.files.line_diff import unified_diff
from plugins_builtin.files.outcome import counted, fence_of
from plugins_builtin.files.replacement import NotReplaced, ReplacedTooLong, name_lines, replace_text

DIFFED_BYTES = 2 * 1024 * 1024
"""The largest file of which a diff is made."""

DIFFED_LINES = 100_000
"""Lines of the old and of the new text up to which a diff is made: the operator waits for it."""

_UNREAD = {
    PathZone.GUARDED: "lies under .git or .crystal",
    PathZone.OUTSIDE: "lies outside the workspace",
    PathZone.CREDENTIAL: "is a place for credentials",
    PathZone.HOST: "belongs to Crystal's own home",
}


class NoDiff(Exception):
    """There can be no diff; the message is one sentence that says why."""


def preview_write(call: ToolCall, context: ToolContext) -> str:
    """Return the diff that a call of ``write`` would make, or a sentence."""
    content = str(call.arguments.get("content", ""))
    try:
        name, before = _load(call, context)
    except NoDiff as error:
        return f"{error} The call writes {_size(content)}."
    return f"It creates {name} with {_size(content)}." if before is None else diff_of_write(name, before, content)


def preview_edit(call: ToolCall, context: ToolContext) -> str:
    """Return the diff that a call of ``edit`` would make, or a sentence."""
    try:
        name, before = _load(call, context)
    except NoDiff as error:
        return str(error)
    if before is None:
        return f"There is no file {name}, so the edit will fail."
    old, new = str(call.arguments.get("old_string", "")), str(call.arguments.get("new_string", ""))
    return diff_of_edit(name, before, old, new, replace_all=bool(call.arguments.get("replace_all", False)))


def diff_of_write(name: str, before: bytes, content: str) -> str:
    """Return what changes when ``content`` takes the place of ``before``."""
    try:
        decoded = decode_text(before)
    except NotText:
        return f"{name} is a binary file of {counted(len(before), 'byte')}; the call replaces it with {_size(content)}."
    notes = []
    if decoded.codec != "utf-8" or not decoded.exact:
        notes.append("Its encoding becomes UTF-8.")
    # A mark in the content is one of the file, so it is not part of the text that is compared.
    kept = bool(decoded.mark) and content.startswith("\ufeff")
    if decoded.mark and not kept:
        notes.append("Its byte order mark goes.")
    return _described(name, decoded, content.removeprefix("\ufeff") if kept else content, notes)


def diff_of_edit(name: str, before: bytes, old: str, new: str, *, replace_all: bool) -> str:
    """Return what changes when ``old`` is replaced by ``new`` in ``before``."""
    if not old:
        return f"The text to replace in {name} is empty, so the edit will fail."
    try:
        decoded = decode_text(before)
    except NotText:
        return f"{name} is a binary file, so the edit will fail."
    try:
        replaced = replace_text(decoded.text, old, new, replace_all=replace_all, longest=2 * DIFFED_BYTES)
    except ReplacedTooLong:
        return f"No diff is shown: with the edit, {name} would be larger than a diff is made of."
    except NotReplaced as missed:
        if missed.lines:
            return f"The text to replace stands in {name} on {name_lines(missed.lines)}, so the edit will fail."
        return f"The text to replace is not in {name}, so the edit will fail."
    return _described(name, decoded, replaced.text, [])


def _described(name: str, before: TextFile, after: str, notes: list[str]) -> str:
    old, new = before.text, after
    if max(old.count("\n"), new.count("\n")) > DIFFED_LINES:
        return f"No diff is shown: {name} has too many lines to compare, before or after the call."
    if _ends_in_crlf(old) and _ends_in_crlf(new):
        notes = ["The lines end in CRLF.", *notes]
        old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    diff = unified_diff(old, new, name)
    shown = " ".join((*notes, *(() if diff else (f"No line of {name} changes.",))))
    whole = "\n".join(part for part in (shown, diff) if part)
    # Bytes of another encoding and halves of characters would be an obstacle to whoever shows the text.
    return whole.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _ends_in_crlf(text: str) -> bool:
    """Whether every line end of a text is CRLF; a reader then need not see it at each line."""
    return "\r\n" in text and text.count("\n") == text.count("\r\n")


def _load(call: ToolCall, context: ToolContext) -> tuple[str, bytes | None]:
    """Return the file's name as it is shown, and its bytes; ``None`` when there is no file.

    :raises NoDiff: when it may not be read here, or cannot be compared.
    """
    fence = fence_of(context)
    text = str(call.arguments.get("path", ""))
    try:
        resolved = fence.resolve(text)
    except PathRefused:
        raise NoDiff(f"No diff is shown: {printable(text[:200])!r} is no path that can be used.") from None
    name = fence.show(resolved.real)
    if permit(resolved, frozenset(), writing=True) is not None:
        raise NoDiff(f"No diff is shown: {name} {_UNREAD[resolved.zone]}, and nothing is read there before the answer.")
    try:
        if not os.path.lexists(resolved.real):
            return name, None
        with open_regular(resolved.real, name) as opened:
            if opened.status.st_size > DIFFED_BYTES:
                raise NoDiff(f"No diff is shown: {name} has {opened.status.st_size} bytes, too many to compare.")
            data = read_bytes(opened, DIFFED_BYTES + 1)
    except FileMissing:
        return name, None
    except PathRefused:
        raise NoDiff(f"No diff is shown: {name} is not a regular file.") from None
    except OSError as error:
        raise NoDiff(f"No diff is shown: {name} cannot be read ({error.strerror or type(error).__name__}).") from None
    if len(data) > DIFFED_BYTES:
        raise NoDiff(f"No diff is shown: {name} grows while it is read.")
    return name, data


def _size(content: str) -> str:
    data = content.encode("utf-8", "surrogatepass")
    lines = data.count(b"\n") + (0 if not data or data.endswith(b"\n") else 1)
    return f"{counted(lines, 'line')}, {counted(len(data), 'byte')}"
