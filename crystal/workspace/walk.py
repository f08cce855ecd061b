"""Walking a tree: every real folder once, no link followed, special files left out, in a fixed order."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from crystal.workspace.admission import Admission
from crystal.workspace.fence import PathRefused
from crystal.workspace.ignore import IgnoreRules
from crystal.workspace.open_files import open_folder

LONGEST_FOLDER = 3_800
"""Bytes of a folder's path up to which the files in it can be opened by name; systems allow 4,096 for a whole path."""

_HELD = 64
"""Folders on the way down that are kept open; deeper ones are reached from the root again."""

_SPARE = 1_000
"""Entries held beyond those that are wanted before the others are dropped."""

_VANISHED = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class WalkedEntry(NamedTuple):
    """One file or folder that a walk met.

    :param path: relative to the root of the walk, with ``/``.
    :param folder: whether it is a folder; a folder comes before what it holds.
    :param depth: 1 for the entries of the root.
    """

    path: str
    folder: bool
    depth: int


class FolderEntries(NamedTuple):
    """What a walk sees in one folder.

    :param entries: name and whether it is a folder, in the order of the names' bytes; the first ones, if not all
        were wanted.
    :param met: how many entries the walk sees, those that were not wanted included.
    :param left_out: how many others are there: ignored, special, or not to be touched.
    """

    entries: list[tuple[str, bool]]
    met: int
    left_out: int


def walk(
    root: str,
    rules: IgnoreRules,
    admits: Admission,
    *,
    max_depth: int | None = None,
    with_links: bool = False,
    folders: bool = False,
    files: bool = True,
    stopped: Callable[[], bool] = lambda: False,
    unreadable: list[str] | None = None,
) -> Iterator[WalkedEntry]:
    """Yield the files below a folder, each folder's entries in the order of their names' bytes.

    Links to folders are never entered, and none that is put in the place of a folder meanwhile is followed.

    :param root: real path of a folder.
    :param admits: says of a real path whether the caller may touch it.
    :param max_depth: how deep to go, 1 being the entries of ``root``.
    :param with_links: also yield links to regular files whose real path is admitted.
    :param folders: also yield folders.
    :param files: ``False`` to yield folders at most, which spares a look at every file.
    :param stopped: asked before each folder; once it says yes the walk ends early.
    :param unreadable: takes the real paths of the folders that are there and cannot be read.
    """

    def see(folder: str, descriptor: int) -> FolderEntries:
        return read_folder(folder, descriptor, rules, admits, with_links=with_links, files=files)

    refused: list[str] = [] if unreadable is None else unreadable
    pending = [_enter(root, "", None, 1, see, refused)]
    try:
        while pending:
            prefix, entries, descriptor = pending[-1]
            name, folder = next(entries, ("", False))
            if not name:
                pending.pop()
                if descriptor is not None:
                    os.close(descriptor)
                continue
            path = prefix + name
            if not folder:
                yield WalkedEntry(path, False, len(pending))
                continue
            if folders:
                yield WalkedEntry(path, True, len(pending))
            if stopped():
                return
            if max_depth is None or len(pending) < max_depth:
                pending.append(_enter(root, f"{path}/", descriptor, len(pending) + 1, see, refused))
    finally:
        for _, _, descriptor in pending:
            if descriptor is not None:
                os.close(descriptor)


def read_folder(
    folder: str,
    descriptor: int,
    rules: IgnoreRules,
    admits: Admission,
    *,
    with_links: bool = False,
    files: bool = True,
    most: int | None = None,
) -> FolderEntries:
    """Return what a walk sees in one folder; the arguments are those of :func:`walk`.

    :param folder: real path of the folder.
    :param descriptor: the folder, open for reading.
    :param most: how many entries are wanted; only a few more are held at once.
    :raises OSError: when the system does not allow it.
    """
    seen: list[tuple[str, bool]] = []
    total = count = 0
    with os.scandir(descriptor) as scanned:
        for entry in scanned:
            total += 1
            kind = _kind(entry, with_links, files)
            if kind is None or rules.ignores_entry(folder, entry.name, folder=kind):
                continue
            if entry.is_symlink():
                admitted = admits(os.path.realpath(f"{folder}/{entry.name}"))
            else:
                admitted = admits.entry(folder, entry.name)
            if not admitted:
                continue
            count += 1
            seen.append((entry.name, kind))
            if most is not None and len(seen) > 2 * most + _SPARE:
                seen.sort(key=_name_bytes)
                del seen[most:]
    seen.sort(key=_name_bytes)
    return FolderEntries(seen[:most], count, total - count)


def _enter(
    root: str,
    prefix: str,
    above: int | None,
    depth: int,
    see: Callable[[str, int], FolderEntries],
    unreadable: list[str],
) -> tuple[str, Iterator[tuple[str, bool]], int | None]:
    """Read one folder; a folder that has vanished, or that is a link by now, is an empty one.

    :param prefix: its path relative to the root, with a slash at its end; empty for the root.
    :param above: the folder that holds it, open, or ``None`` when it has to be reached from the root.
    :return: the prefix, the folder's entries, and the folder itself while it is worth keeping open.
    """
    real = f"{root.rstrip('/')}/{prefix}".rstrip("/") or "/"
    if len(os.fsencode(real)) > LONGEST_FOLDER:
        unreadable.append(real)
        return prefix, iter(()), None
    try:
        if above is None:
            with open_folder(real, real) as opened:
                descriptor = os.dup(opened)
        else:
            descriptor = os.open(real.rpartition("/")[2], _FLAGS, dir_fd=above)
    except (PathRefused, OSError) as error:
        if isinstance(error, OSError) and error.errno not in _VANISHED:
            unreadable.append(real)
        return prefix, iter(()), None
    try:
        entries = see(real, descriptor).entries
    except OSError:
        unreadable.append(real)
        entries = []
    if depth > _HELD:
        os.close(descriptor)
        return prefix, iter(entries), None
    return prefix, iter(entries), descriptor


def _kind(entry: os.DirEntry[str], with_links: bool, files: bool) -> bool | None:
    """Whether an entry is a folder; ``None`` for what a walk leaves out."""
    try:
        if entry.is_dir(follow_symlinks=False):
            return True
        return False if files and entry.is_file(follow_symlinks=with_links) else None
    except OSError:
        return None


def _name_bytes(entry: tuple[str, bool]) -> bytes:
    return os.fsencode(entry[0])
