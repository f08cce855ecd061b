"""The folder a search begins at, and what lies in its reach."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

from crystal.workspace.fence import Fence
from crystal.workspace.open_files import FileMissing
from crystal.workspace.walk import admission
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


def admission_below(fence: Fence, root: str, permitted_paths: frozenset[str]) -> Callable[[str], bool]:
    """Return the rule by which a search touches what it meets: approval of a folder outside is none for its neighbours.

    :param root: real path that the call was allowed to search.
    """
    admits = admission(fence, root, permitted_paths)
    below = root.rstrip("/") + "/"

    def admits_below(real: str) -> bool:
        reached = real == root or real.startswith(below) or fence.contains(real) or real in permitted_paths
        return reached and admits(real)

    return admits_below
