"""The work of the ``tree`` tool: a folder as an indented tree, opened level by level so that a limit cuts evenly."""

from __future__ import annotations

import os
from collections import deque

from crystal.types.tools import ToolCall, ToolContext, ToolOutput
from crystal.workspace.fence import PathRefused, printable
from crystal.workspace.limits import ENTRY_LIMIT
from crystal.workspace.open_files import open_folder
from crystal.workspace.walk import FolderEntries, WalkedEntry, read_folder
from plugins_builtin.files.outcome import counted, positive
from plugins_builtin.search.background import Clock
from plugins_builtin.search.roots import SearchRoot

DEPTH = 3
LIMIT = 300


class Outline:
    """A part of a tree: the entries of the folders that were opened.

    :param root: the folder at the top.
    :param clock: says when to stop.
    """

    def __init__(self, root: SearchRoot, clock: Clock) -> None:
        self._root = root
        self._clock = clock
        self._rules = root.rules()
        self._opened: dict[str, list[WalkedEntry]] = {}
        self._cut: dict[str, int] = {}
        self.passed_over = 0
        self.closed = 0

    def open(self, depth: int, limit: int) -> None:
        """Open folders level by level.

        :param depth: levels at most.
        :param limit: entries at most.
        """
        pending = deque([("", 1)])
        while pending and not self._clock.stopped():
            folder, level = pending.popleft()
            if level > depth or limit <= 0:
                self.closed += 1
                continue
            seen = self._read(folder, limit)
            self.passed_over += seen.left_out
            if seen.met > limit:
                self._cut[folder] = seen.met - limit
            above = f"{folder}/" if folder else ""
            entries = [WalkedEntry(above + name, is_folder, level) for name, is_folder in seen.entries]
            self._opened[folder] = entries
            limit -= len(entries)
            pending.extend((entry.path, level + 1) for entry in entries if entry.folder)
        self.closed += len(pending)

    def lines(self) -> list[str]:
        """The tree, two spaces a level; a folder that was not opened says how much is in it."""
        lines: list[str] = []
        pending: list[WalkedEntry | str] = [*self._rest("", 1), *reversed(self._opened.get("", []))]
        while pending:
            entry = pending.pop()
            if isinstance(entry, str):
                lines.append(entry)
                continue
            name = "  " * (entry.depth - 1) + printable(entry.path.rpartition("/")[2])
            if not entry.folder:
                lines.append(name)
            elif entry.path in self._opened:
                lines.append(f"{name}/")
                pending += [*self._rest(entry.path, entry.depth + 1), *reversed(self._opened[entry.path])]
            else:
                lines.append(f"{name}/{self._count(entry.path)}")
        return lines

    def _rest(self, folder: str, depth: int) -> list[str]:
        count = self._cut.get(folder)
        return [f"{'  ' * (depth - 1)}… {count} more"] if count else []

    def _read(self, folder: str, limit: int) -> FolderEntries:
        real = self._root.path(folder).rstrip("/") or "/"
        try:
            with open_folder(real, real) as descriptor:
                return read_folder(real, descriptor, self._rules, self._root.admits, with_links=True, most=limit)
        except PathRefused:
            # Removed since the folder above it was read.
            return FolderEntries([], 0, 0)
        except OSError:
            self._root.unreadable.append(real)
            return FolderEntries([], 0, 0)

    def _count(self, folder: str) -> str:
        """Say how much a folder holds that was not opened."""
        if self._clock.stopped():
            return ""
        real = self._root.path(folder)
        try:
            with open_folder(real, real) as descriptor, os.scandir(descriptor) as scanned:
                return f" ({counted(sum(1 for _ in scanned), 'entry', 'entries')})"
        except PathRefused:
            return ""
        except OSError:
            return " (not readable)"


def show_tree(call: ToolCall, context: ToolContext, clock: Clock) -> ToolOutput:
    """Answer a ``tree`` call.

    :param clock: says when to stop.
    :raises PathRefused: when the call cannot be done as it was made.
    :raises OSError: when the system does not allow it.
    """
    root = SearchRoot(call, context)
    root.require_folder()
    outline = Outline(root, clock)
    outline.open(positive(call, "depth", DEPTH), min(positive(call, "limit", LIMIT), ENTRY_LIMIT))
    lines = [f"{root.show(root.real)}/", *(f"  {line}" for line in outline.lines())]
    notes = []
    if clock.expired:
        notes.append(f"Stopped after {clock.seconds:g} seconds.")
    if outline.closed:
        notes.append(f"{counted(outline.closed, 'folder')} not opened; give a deeper depth, a higher limit or a path.")
    if outline.passed_over:
        notes.append(f"{counted(outline.passed_over, 'entry', 'entries')} ignored, special or not to be shown.")
    notes += root.unread()
    return ToolOutput(text="\n".join([*lines, f"({' '.join(notes)})"] if notes else lines))
