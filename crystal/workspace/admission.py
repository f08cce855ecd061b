"""What a walk or search below an admitted root may touch of what it meets. Decides by paths alone, opens nothing."""

from __future__ import annotations

from crystal.types.paths import PathZone
from crystal.workspace.credentials import (
    FOLDERS_ANYWHERE,
    HOME_PATHS,
    PROCESS_FILES,
    SYSTEM_PATHS,
    folded,
    is_key_name,
)
from crystal.workspace.fence import Fence

_PLACES = frozenset(folded(place).rpartition("/")[2] for place in (*HOME_PATHS, *SYSTEM_PATHS))
_TELLING_NAMES = _PLACES | FOLDERS_ANYWHERE | PROCESS_FILES
"""Last names of credential locations: an entry with another name is none, unless its folder is one."""

_PLAIN_ZONES = frozenset({PathZone.WORKSPACE, PathZone.GUARDED, PathZone.OUTSIDE})


class Admission:
    """The rule by which a search touches what it meets.

    What lies in the workspace is admitted. So is what is of the root's own kind and lies below it, since the root was
    approved as a whole, but not its neighbours. Everything else, such as credentials and Crystal's own files, is passed
    over unless it was approved by name.

    :param root: real path that the call was allowed to search.
    :param permitted_paths: real paths that were approved for this very call.
    """

    def __init__(self, fence: Fence, root: str, permitted_paths: frozenset[str]) -> None:
        self._fence = fence
        self._root = root
        self._below = root.rstrip("/") + "/"
        self._permitted = permitted_paths
        self._zones = {PathZone.WORKSPACE, PathZone.GUARDED, fence.zone(root)}
        self._telling = _TELLING_NAMES | {folded(fence.home.name)}
        self._folder = ("", False)

    def __call__(self, real: str) -> bool:
        """Whether a real path, such as the one a link leads to, may be touched."""
        if real in self._permitted:
            return True
        reached = real == self._root or real.startswith(self._below) or self._fence.contains(real)
        return reached and self._fence.zone(real) in self._zones

    def names_file(self, real: str) -> bool:
        """Whether a regular file of several hard links may be touched under this name, given what its others are."""
        return real in self._permitted or self._fence.resolve(real).zone in self._zones

    def entry(self, folder: str, name: str) -> bool:
        """Whether an entry of an admitted folder, which is no link, may be touched.

        Asked about a folder's entries one after the other, it looks at whole paths only where a name tells something.
        """
        if self._folder[0] != folder:
            self._folder = (folder, self._is_plain(folder))
        if self._folder[1] and name.isascii():
            lowered = name.lower()
            if lowered not in self._telling and not is_key_name(lowered):
                return True
        return self(f"{folder.rstrip('/')}/{name}")

    def _is_plain(self, folder: str) -> bool:
        """Whether the entries of a folder are of its own kind, unless their names tell otherwise."""
        zone = self._fence.zone(folder)
        return zone in self._zones & _PLAIN_ZONES and folded(folder) != folded(str(self._fence.home))
