"""Walking a tree: every real folder once, no link followed, special files left out, in a fixed order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from crystal.types._frozen import Frozen
from crystal.types.paths import PathZone
from crystal.workspace.fence import Fence
from crystal.workspace.ignore import IgnoreRules


class WalkedEntry(Frozen):
    """One file or folder that a walk met.

    :param path: relative to the root of the walk, with ``/``.
    :param folder: whether it is a folder; a folder comes before what it holds.
    :param depth: 1 for the entries of the root.
    """

    path: str
    folder: bool
    depth: int


def walk(
    root: str,
    rules: IgnoreRules,
    admits: Callable[[str], bool],
    *,
    max_depth: int | None = None,
    with_links: bool = False,
    folders: bool = False,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[WalkedEntry]:
    """Yield the files below a folder, each folder's entries in the order of their names' bytes.

    Folders that cannot be read are passed over. Links to folders are never entered.

    :param root: real path of a folder.
    :param admits: says of a real path whether the caller may touch it; see :func:`admission`.
    :param max_depth: how deep to go, 1 being the entries of ``root``.
    :param with_links: also yield links to regular files whose real path is admitted.
    :param folders: also yield folders.
    :param stopped: asked before each folder; once it says yes the walk ends early.
    """
    pending: list[Iterator[WalkedEntry]] = [folder_entries(root, "", 1, rules, admits, with_links=with_links)]
    while pending:
        entry = next(pending[-1], None)
        if entry is None:
            pending.pop()
            continue
        if not entry.folder:
            yield entry
            continue
        if folders:
            yield entry
        if stopped():
            return
        if max_depth is None or entry.depth < max_depth:
            below = folder_entries(root, entry.path, entry.depth + 1, rules, admits, with_links=with_links)
            pending.append(below)


def admission(fence: Fence, root: str, permitted_paths: frozenset[str]) -> Callable[[str], bool]:
    """Return the rule by which a walk or search below an admitted root touches what it meets.

    What lies in the workspace is admitted. So is what is of the root's own kind, since the root was approved
    as a whole. Everything else that a search meets, such as credentials and Crystal's own files, is passed
    over unless it was approved by name.

    :param root: real path that the call was allowed to search.
    """
    admitted_zones = {PathZone.WORKSPACE, PathZone.GUARDED, fence.zone(root)}

    def admits(real: str) -> bool:
        return fence.zone(real) in admitted_zones or real in permitted_paths

    return admits


def folder_entries(
    root: str, folder: str, depth: int, rules: IgnoreRules, admits: Callable[[str], bool], *, with_links: bool = False
) -> Iterator[WalkedEntry]:
    """Yield what a walk meets in one folder; the arguments are those of :func:`walk`.

    :param folder: relative to ``root``; empty for the root itself.
    :param depth: depth of the folder's entries.
    """
    parent = f"{root.rstrip('/')}/{folder}".rstrip("/") or "/"
    try:
        with os.scandir(parent) as scanned:
            entries = sorted(scanned, key=lambda entry: os.fsencode(entry.name))
    except OSError:
        return
    for entry in entries:
        kind = _kind(entry, with_links)
        if kind is None or rules.ignores_entry(parent, entry.name, folder=kind == "folder"):
            continue
        real = os.path.realpath(entry.path) if entry.is_symlink() else entry.path
        if admits(real):
            path = f"{folder}/{entry.name}" if folder else entry.name
            yield WalkedEntry(path=path, folder=kind == "folder", depth=depth)


def _kind(entry: os.DirEntry[str], with_links: bool) -> str | None:
    """``folder``, ``file``, or ``None`` for what a walk leaves out."""
    try:
        if entry.is_dir(follow_symlinks=False):
            return "folder"
        return "file" if entry.is_file(follow_symlinks=with_links) else None
    except OSError:
        return None
