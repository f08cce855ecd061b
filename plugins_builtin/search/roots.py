"""The folder a search begins at."""

from __future__ import annotations

import os
import stat

from crystal.workspace.open_files import FileMissing
from plugins_builtin.files.outcome import CallRefused


def require_folder(real: str, shown: str) -> None:
    """Refuse a search that begins at something else than a folder.

    :raises PathRefused: when there is nothing, or no folder.
    """
    try:
        mode = os.stat(real).st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise FileMissing(f"There is no folder {shown}; list its parent to see what is there.") from None
    if not stat.S_ISDIR(mode):
        raise CallRefused(f"{shown} is not a folder; name the folder to search.")
