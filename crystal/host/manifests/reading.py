"""Read a manifest that a stranger may have written: bounded, strict, never blocking, never outside its own folder.

Knows no field of any manifest.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from crystal.store.home import HomeFileError, describe
from crystal.store.json_files import JsonFile, parse_json_object
from crystal.types._frozen import Frozen
from crystal.workspace.open_files import FileMissing, FileRefused, open_regular, read_bytes

MANIFEST_BYTES = 64 * 1024
"""A manifest is a page of text at most; what is longer is no manifest, and reading it would delay every start."""

MANIFEST_DEPTH = 64
"""Objects and lists inside one another. Finding a line takes memory by depth, so it is bounded before parsing."""

# A string that never ends is taken to the end of the text, so that no part of it is looked at twice.
_BRACKETS = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[{]|[\]}]', re.DOTALL)


class ManifestRefused(Exception):
    """A manifest that cannot be used; the text names file, place and field and says what helps.

    :param path: the manifest.
    :param line: 1-based, like ``column``, when the fault has a place in the text.
    :param field: dotted path of the field, empty when the file as a whole is at fault.
    :param enabled: what the manifest says about being enabled, ``None`` when it could not say.
    """

    exit_code = 1

    def __init__(
        self,
        path: Path,
        message: str,
        *,
        line: int | None = None,
        column: int | None = None,
        field: str = "",
        enabled: bool | None = None,
    ) -> None:
        self.path = path
        self.message = message
        self.line = line
        self.column = column
        self.field = field
        self.enabled = enabled
        super().__init__(f"{path}{self.place}: {message}")

    @property
    def place(self) -> str:
        """Where in the file, beginning with a comma; empty when the fault has no place."""
        place = "" if self.line is None else f", line {self.line}"
        place += "" if self.column is None else f", column {self.column}"
        return f"{place}, field {self.field}" if self.field else place


class ManifestFile(Frozen):
    """The bytes of one manifest.

    :param path: the manifest by the folder it belongs to.
    :param real: where the file really lies.
    :param status: what the system said of it while it was read.
    """

    path: Path
    real: str
    data: bytes
    status: os.stat_result


def read_manifest(folder: Path, name: str) -> ManifestFile:
    """Read the manifest of an extension.

    :param folder: real path of the extension's folder.
    :param name: of the manifest, such as ``plugin.json``.
    :raises ManifestRefused: when it is missing, too large, no regular file, not readable, or a link that leaves the
        folder.
    """
    path = folder / name
    real = os.path.realpath(path)
    if not real.startswith(f"{folder}{os.sep}"):
        raise ManifestRefused(path, "this is a link that leaves the folder; put the file itself in its place")
    try:
        with open_regular(real, name) as opened:
            data = read_bytes(opened, MANIFEST_BYTES + 1)
            status = opened.status
    except FileMissing:
        raise manifest_missing(path) from None
    except FileRefused:
        raise ManifestRefused(
            path, f"a regular file is needed here, and it is something else; put a {name} in its place"
        ) from None
    except OSError as error:
        raise ManifestRefused(path, f"cannot be read: {describe(error)}; mend its permissions") from error
    return ManifestFile(path=path, real=real, data=data, status=status)


def parse_known_manifest(path: Path, data: bytes) -> JsonFile:
    """Parse the bytes of a manifest that :func:`parse_manifest` is known to accept, in a fraction of the time."""
    text = data.decode("utf-8-sig")
    return JsonFile(path=path, data=data, text=text, value=json.loads(text))


def field_refused(file: JsonFile, error: HomeFileError) -> ManifestRefused:
    """Return the refusal of a manifest for the fault of one field."""
    says = file.value.get("enabled", True)
    return ManifestRefused(
        file.path,
        error.message,
        line=error.line,
        field=error.field,
        enabled=says if isinstance(says, bool) else None,
    )


def manifest_missing(path: Path) -> ManifestRefused:
    """Return the refusal of a folder without a manifest."""
    return ManifestRefused(path, f"there is no such file; write a {path.name} or remove the folder")


def parse_manifest(path: Path, data: bytes) -> JsonFile:
    """Parse the bytes of a manifest.

    :raises ManifestRefused: when they are too many, too deeply nested, not UTF-8, not strict JSON or not an object.
    """
    if len(data) > MANIFEST_BYTES:
        raise ManifestRefused(path, f"the file is larger than {MANIFEST_BYTES // 1024} KiB; make it smaller")
    if not data.strip():
        raise ManifestRefused(path, "the file is empty; write a manifest into it or remove the folder")
    if _depth(data) > MANIFEST_DEPTH:
        raise ManifestRefused(path, f"objects and lists are nested deeper than {MANIFEST_DEPTH}; make it flatter")
    try:
        return parse_json_object(path, data)
    except HomeFileError as error:
        column = None
        if isinstance(error.__cause__, json.JSONDecodeError):
            column = _column(error.__cause__, error.line)
        raise ManifestRefused(path, error.message, line=error.line, column=column, field=error.field) from error


def _depth(data: bytes) -> int:
    depth = deepest = 0
    for found in _BRACKETS.finditer(data):
        sign = data[found.start()]
        if sign in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif sign in b"]}":
            depth -= 1
    return deepest


def _column(error: json.JSONDecodeError, line: int | None) -> int:
    """Return the column of the fault that the store's sentence is about: a comma may lie before the parser's place."""
    offset = error.pos
    before = error.doc[:offset].rstrip()
    if error.doc[offset : offset + 1] in ("}", "]") and before.endswith(","):
        offset = len(before) - 1
    return offset - error.doc.rfind("\n", 0, offset)
