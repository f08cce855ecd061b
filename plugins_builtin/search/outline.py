"""The work of the ``tree`` tool: a folder as an indented tree, opened level by level so that a limit cuts evenly."""

from __future__ import annotations

import os
from collections.abc import Callable

from crystal.types.tools import ToolCall, ToolContext, ToolOutput
from crystal.workspace.fence import printable
from crystal.workspace.ignore import IgnoreRules
from crystal.workspace.limits import ENTRY_LIMIT
from crystal.workspace.walk import WalkedEntry, folder_entries
from plugins_builtin.files.outcome import counted, fence_of, positive
from plugins_builtin.search.roots import admission_below, require_folder

DEPTH = 3
LIMIT = 300


class Outline:
    """A part of a tree: the entries of the folders that were opened.

    :param root: real path of the folder at the top.
    """

    def __init__(self, root: str, rules: IgnoreRules, admits: Callable[[str], bool]) -> None:
        self._root = root
        self._rules = rules
        self._admits = admits
        self._opened: dict[str, list[WalkedEntry]] = {}
        self._cut: dict[str, int] = {}
        self.passed_over = 0
        self.closed = 0

    def open(self, depth: int, limit: int, stopped: Callable[[], bool]) -> None:
        """Open folders level by level.

        :param depth: levels at most.
        :param limit: entries at most.
        """
        pending = [("", 1)]
        while pending and not stopped():
            folder, level = pending.pop(0)
            if level > depth or limit <= 0:
                self.closed += 1
                continue
            entries = list(folder_entries(self._root, folder, level, self._rules, self._admits, with_links=True))
            self.passed_over += self._count(folder) - len(entries)
            if len(entries) > limit:
                self._cut[folder] = len(entries) - limit
            self._opened[folder] = entries[:limit]
            limit -= len(self._opened[folder])
            pending += [(entry.path, level + 1) for entry in self._opened[folder] if entry.folder]

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
                lines.append(f"{name}/ ({counted(self._count(entry.path), 'entry', 'entries')})")
        return lines

    def _rest(self, folder: str, depth: int) -> list[str]:
        count = self._cut.get(folder)
        return [f"{'  ' * (depth - 1)}… {count} more"] if count else []

    def _count(self, folder: str) -> int:
        try:
            return len(os.listdir(f"{self._root}/{folder}"))
        except OSError:
            return 0


def show_tree(call: ToolCall, context: ToolContext, stopped: Callable[[], bool]) -> ToolOutput:
    """Answer a ``tree`` call.

    :param stopped: whether nobody waits for the answer any more.
    :raises PathRefused: when the call cannot be done as it was made.
    :raises OSError: when the system does not allow it.
    """
    fence = fence_of(context)
    root = fence.admit(call.arguments.get("path", "."), context.permitted_paths).real
    require_folder(root, fence.show(root))
    rules = IgnoreRules.for_search(str(fence.workspace), root)
    outline = Outline(root, rules, admission_below(fence, root, context.permitted_paths))
    outline.open(positive(call, "depth", DEPTH), min(positive(call, "limit", LIMIT), ENTRY_LIMIT), stopped)
    lines = [f"{fence.show(root)}/", *(f"  {line}" for line in outline.lines())]
    notes = []
    if outline.closed:
        notes.append(f"{counted(outline.closed, 'folder')} not opened; give a deeper depth, a higher limit or a path.")
    if outline.passed_over:
        notes.append(f"{counted(outline.passed_over, 'entry', 'entries')} ignored, special or not to be shown.")
    return ToolOutput(text="\n".join([*lines, f"({' '.join(notes)})"] if notes else lines))
