"""Switch an extension on or off in its manifest: the value of ``enabled`` changes and no other byte does."""

from __future__ import annotations

import json
import os
import re

from crystal.host.manifests.reading import ManifestFile, ManifestRefused
from crystal.store.home import describe
from crystal.workspace.atomic_write import FileChanged, replace_in_folder
from crystal.workspace.fence import PathRefused
from crystal.workspace.open_files import enter_folder

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SPACE = re.compile(r"[ \t\n\r]*")


def switched(file: ManifestFile, enabled: bool) -> bytes:
    """Return the bytes of a manifest with ``enabled`` set; its other text, order and line ends stay.

    Nothing changes when it says so already, by the field or by leaving it out.

    :param file: a manifest that was parsed without a fault.
    """
    mark = _BYTE_ORDER_MARK if file.data.startswith(_BYTE_ORDER_MARK) else b""
    return mark + with_enabled(file.data.removeprefix(mark).decode(), enabled).encode()


def with_enabled(text: str, enabled: bool) -> str:
    """Return the text of a JSON object with the member ``enabled`` set; ``True`` is not written where it is absent."""
    word = json.dumps(enabled)
    begin = _skip_space(text, 0) + 1
    first = _skip_space(text, begin)
    decoder = json.JSONDecoder()
    at = first
    while text[at] != "}":
        key, end = decoder.raw_decode(text, at)
        start = _skip_space(text, _skip_space(text, end) + 1)
        _, end = decoder.raw_decode(text, start)
        if key == "enabled":
            return text[:start] + word + text[end:]
        at = _skip_space(text, end)
        if text[at] == ",":
            at = _skip_space(text, at + 1)
    if enabled:
        return text
    # The new member comes first and takes the white space that stands before the one that was first.
    comma = "" if text[first] == "}" else ("," + (text[begin:first] or " "))
    return f'{text[:first]}"enabled": {word}{comma}{text[first:]}'


def write_manifest(file: ManifestFile, data: bytes) -> None:
    """Replace a manifest where it lies, unless it changed since it was read; its permissions stay.

    :raises ManifestRefused: when it changed in the meantime or cannot be written; it is then untouched.
    """
    folder, _, name = file.real.rpartition(os.sep)
    try:
        with enter_folder(folder, file.path.name, create=False) as opened:
            replace_in_folder(opened, name, data, file.status)
    except (FileChanged, PathRefused):
        raise ManifestRefused(file.path, "it changed while it was being written; try again") from None
    except OSError as error:
        raise ManifestRefused(file.path, f"cannot be written: {describe(error)}; mend its permissions") from error


def _skip_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()
