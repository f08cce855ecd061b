"""Which distributions lie in a folder, by the names of their metadata folders. Reads no more than it has to."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

_INFO = re.compile(r"(?P<name>.+?)-(?P<version>[^-]+)(?:-[^-]+)*\.(?:dist-info|egg-info)")


def metadata_folders(root: str) -> list[tuple[str, str, str]]:
    """Return path, normalised name and version of each distribution in a folder, sorted by path."""
    try:
        names = sorted(os.listdir(root or os.curdir))
    except OSError:
        return []
    parsed = ((name, _INFO.fullmatch(name)) for name in names)
    return [
        (os.path.join(root, name), normalised(match["name"]), match["version"])
        for name, match in parsed
        if match is not None
    ]


def normalised(name: str) -> str:
    """Return a distribution's name as two spellings of it are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def brings(info: str, module: str) -> bool:
    """Whether a distribution, by its metadata folder, holds a top-level module."""
    name = os.path.basename(info).partition("-")[0]
    return module == name or any(module in _first_parts(info, file) for file in ("top_level.txt", "RECORD"))


def _first_parts(info: str, file: str) -> Iterable[str]:
    try:
        with open(os.path.join(info, file), encoding="utf-8", errors="replace") as lines:
            return {line.strip().partition(",")[0].partition("/")[0].partition(".")[0] for line in lines} - {""}
    except OSError:
        return ()
