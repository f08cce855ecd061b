"""The ``read`` tool: a window of numbered lines of one file, or an image. Small files are read without a thread."""

from __future__ import annotations

from crystal.types.items import Image
from crystal.types.tools import ToolCall, ToolContext, ToolDefinition, ToolOutput
from crystal.workspace.fence import printable
from crystal.workspace.limits import GREP_FILE_BYTES, IMAGE_BYTES, OUTPUT_CHARACTERS, SCAN_CHARACTERS, SCAN_LINES
from crystal.workspace.open_files import FileMissing, FileRefused, OpenFile, open_folder, open_regular, read_bytes
from crystal.workspace.text_files import NotText, TextFile, decode_text
from plugins_builtin.files.outcome import CallRefused, answer, counted, fence_of, parent_of, positive, unspellable
from plugins_builtin.files.stamps import stamp_of, states_of

_SCAN_BYTES = 4 * SCAN_CHARACTERS
"""As many bytes as the scanned characters can have."""

_NOTES_CHARACTERS = 500
"""Room kept in the output for what is said about the file."""

_LONG_LINE_SHOWN = 2_000
"""Characters shown of a line that no output could hold whole."""

_NAMES_COMPARED = 2_000


class ReadTool:
    """Shows a file to the model and remembers that the session has seen it."""

    definition = ToolDefinition(
        name="read",
        description="Read a text file as numbered lines, or an image. Long files come in parts: "
        "go on with the offset the answer names.",
        schema={
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "offset": {"type": "integer", "minimum": 1, "description": "first line, from 1"},
                "limit": {"type": "integer", "minimum": 1, "description": "number of lines"},
            },
            "required": ["path"],
            "additionalProperties": False,
        },
    )

    async def invoke(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Read one file."""
        return answer(_read, call, context)


def _read(call: ToolCall, context: ToolContext) -> ToolOutput:
    fence = fence_of(context)
    resolved = fence.admit(call.arguments["path"], context.permitted_paths)
    real = resolved.real
    shown = fence.show(real)
    offset = positive(call, "offset", 1)
    limit = positive(call, "limit", SCAN_LINES)
    try:
        with open_regular(real, shown) as opened:
            data = read_bytes(opened, _SCAN_BYTES + 1)
            media_type = image_type(data)
            if media_type:
                return _image(opened, data, real, shown, media_type, context)
    except FileMissing as missing:
        # What else lies in a folder outside was not approved with the file.
        hint = _similar_names(real) if resolved.inside else ""
        raise CallRefused(f"{missing}{hint}{unspellable(resolved.text)}") from None
    whole = len(data) <= _SCAN_BYTES
    try:
        decoded = decode_text(data, whole=whole, limit=SCAN_CHARACTERS + 1)
    except NotText:
        raise CallRefused(
            f"{shown} is a binary file of {counted(opened.status.st_size, 'byte')}; read shows only text and images."
        ) from None
    searched = opened.status.st_size <= GREP_FILE_BYTES
    text = show_lines(decoded, shown, offset, limit, whole=whole, searched=searched)
    _remember(context, real, data if whole else None, opened)
    return ToolOutput(text=text)


def _remember(context: ToolContext, real: str, data: bytes | None, opened: OpenFile) -> None:
    states = states_of(context)
    if states is not None:
        states.remember(real, stamp_of(data, opened.status))


def show_lines(
    decoded: TextFile, shown: str, offset: int, limit: int, *, whole: bool = True, searched: bool = True
) -> str:
    """Return the numbered lines of a window, with notes about what is not shown.

    :param offset: the first line, from 1.
    :param limit: lines at most.
    :param whole: whether ``decoded`` is the whole file.
    :param searched: whether ``grep`` takes a file of this size.
    :raises CallRefused: when the window begins past the end or past what one call scans.
    """
    lines, whole, cut = _scanned_lines(decoded.shown(SCAN_CHARACTERS + 1), whole)
    tool = "grep" if searched else "bash"
    if not lines:
        return f"{shown} is empty." if not decoded.mark else f"{shown} is empty but for its byte order mark."
    if offset > len(lines):
        if whole:
            raise CallRefused(f"{shown} has {counted(len(lines), 'line')}; offset {offset} is past its end.")
        raise CallRefused(
            f"Offset {offset} of {shown} lies beyond the {counted(len(lines), 'line')} that one call scans; "
            f"find the place with {tool}{' and its context' if searched else ', such as sed -n'}."
        )
    numbered: list[str] = []
    room = OUTPUT_CHARACTERS - _NOTES_CHARACTERS
    for number in range(offset, min(offset + limit - 1, len(lines)) + 1):
        line = lines[number - 1].removesuffix("\r")
        if len(line) > OUTPUT_CHARACTERS - 2 * _NOTES_CHARACTERS:
            line = f"{line[:_LONG_LINE_SHOWN]}<… {len(line) - _LONG_LINE_SHOWN} characters left out …>"
        entry = f"{number:6}\t{line}"
        room -= len(entry) + 1
        if room < 0:
            break
        numbered.append(entry)
    last = offset + len(numbered) - 1
    notes = []
    if last < len(lines):
        notes.append(f"Lines {offset}-{last}{f' of {len(lines)}' if whole else ''}; go on with offset {last + 1}.")
    elif cut:
        notes.append(f"Line {last} goes on beyond what one call scans; find later parts with {tool}.")
    elif not whole:
        notes.append(
            f"The file goes on after line {last}, where one call stops scanning; find later lines with {tool}."
        )
    notes += _encoding_notes(decoded)
    return "\n".join([*numbered, f"({' '.join(notes)})"] if notes else numbered)


def image_type(data: bytes) -> str | None:
    """Return the media type of an image by its first bytes, or ``None`` when they are not those of one."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return None


def _scanned_lines(text: str, whole: bool) -> tuple[list[str], bool, bool]:
    """Return the lines that one call looks at, whether they are all of the file, and whether the last one goes on."""
    if len(text) > SCAN_CHARACTERS:
        text, whole = text[:SCAN_CHARACTERS], False
    lines = text.split("\n", SCAN_LINES)
    # What follows the last break is no line when it is empty, and no whole line when the file goes on.
    rest = lines[-1]
    if len(lines) > SCAN_LINES:
        lines.pop()
        whole = whole and not rest
    elif not rest or (not whole and len(lines) > 1):
        lines.pop()
    return lines, whole, not whole and len(lines) == 1 and lines[0] is rest


def _encoding_notes(decoded: TextFile) -> list[str]:
    notes = []
    if decoded.mark:
        notes.append(f"Encoding: {decoded.encoding}.")
    if not decoded.exact:
        name = decoded.encoding.partition(" with ")[0]
        notes.append(f"Bytes that are not {name} are shown as U+FFFD.")
    return notes


def _image(opened: OpenFile, data: bytes, real: str, shown: str, media_type: str, context: ToolContext) -> ToolOutput:
    facts = f"{shown}: {media_type}, {counted(opened.status.st_size, 'byte')}"
    if not context.accepts_images:
        raise CallRefused(f"{facts}; the model in use takes no images, so it was not read.")
    if opened.status.st_size <= IMAGE_BYTES:
        data += read_bytes(opened, IMAGE_BYTES + 1 - len(data))
    if max(len(data), opened.status.st_size) > IMAGE_BYTES:
        raise CallRefused(f"{facts}; an image may have at most {IMAGE_BYTES} bytes, so make a smaller copy.")
    _remember(context, real, data, opened)
    image = Image(media_type=media_type, data=data, name=shown.rpartition("/")[2])
    return ToolOutput(text=facts, images=(image,))


def _similar_names(real: str) -> str:
    """Say which names in the folder of a missing file are like its own; nothing when none is."""
    import difflib
    import itertools
    import os

    folder, name = parent_of(real)
    try:
        with open_folder(folder, folder) as opened, os.scandir(opened) as scanned:
            names = [entry.name for entry in itertools.islice(scanned, _NAMES_COMPARED)]
    except (FileRefused, OSError):
        return ""
    similar = difflib.get_close_matches(name, names, n=3)
    return f" Similar names there: {', '.join(printable(found) for found in similar)}." if similar else ""
