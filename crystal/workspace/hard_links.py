"""Whether a file that has several names is a credential or a file of the Crystal home under another one.

A path does not tell; only files with more than one hard link are looked into. Decides nothing, opens nothing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from crystal.workspace.credentials import FOLDERS_ANYWHERE, HOME_PATHS

_ENTRIES_COMPARED = 10_000
"""Entries of credential folders that are looked at for one file."""


def has_other_names(real: str) -> os.stat_result | None:
    """Return the status of a regular file that has several hard links, ``None`` for everything else."""
    try:
        status = os.lstat(real)
    except OSError:
        return None
    return status if status.st_nlink > 1 and stat.S_ISREG(status.st_mode) else None


def is_linked_credential(status: os.stat_result, user_home: str) -> bool:
    """Say whether a file is one of the credential files of a home folder.

    :param user_home: real path of the user's home folder.
    """
    left = _ENTRIES_COMPARED
    for place in (*FOLDERS_ANYWHERE, *HOME_PATHS):
        for inode, path in _files_at(f"{user_home}/{place}"):
            left -= 1
            if inode == status.st_ino and _is_same(path, status):
                return True
            if left == 0:
                return False
    return False


def is_linked_entry(status: os.stat_result, folder: str, names: frozenset[str]) -> bool:
    """Say whether a file is one of the named entries of a folder."""
    return any(_is_same(f"{folder}/{name}", status) for name in names)


def _files_at(place: str) -> Iterator[tuple[int, str]]:
    """Yield inode and path of a file, or of every entry below a folder."""
    try:
        status = os.lstat(place)
        if not stat.S_ISDIR(status.st_mode):
            yield status.st_ino, place
            return
        with os.scandir(place) as scanned:
            for entry in scanned:
                if entry.is_dir(follow_symlinks=False):
                    yield from _files_at(entry.path)
                else:
                    yield entry.inode(), entry.path
    except OSError:
        # What cannot be looked at is not the file that was asked about either: nothing there is known.
        return


def _is_same(path: str, status: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.lstat(path), status)
    except OSError:
        return False
