"""The work of the ``glob`` tool: files by the pattern of their path, newest first. Runs in a thread."""

from __future__ import annotations

import os
from collections.abc import Iterable

from crystal.types.tools import ToolCall, ToolContext, ToolOutput
from crystal.workspace.fence import permit, printable
from crystal.workspace.globs import GlobError, GlobPattern, compile_glob, literal_prefix
from crystal.workspace.ignore import IgnoreRules
from crystal.workspace.limits import ENTRY_LIMIT, OUTPUT_CHARACTERS
from crystal.workspace.walk import walk
from plugins_builtin.files.outcome import CallRefused
from plugins_builtin.search.background import Clock
from plugins_builtin.search.roots import SearchRoot

_HELD = 4 * ENTRY_LIMIT
"""Matches held before those that are too old to be shown are dropped."""

_ASKED = 64
"""Files of one folder after which the clock is looked at again."""

_NOTES_CHARACTERS = 25_000
"""Room kept for what is said about the matches; paths in it have 4,096 bytes at most."""


class Newest:
    """The newest of many files, equally new ones by name; holds only a few more than it gives back."""

    def __init__(self) -> None:
        self.count = 0
        self._held: list[tuple[int, str]] = []

    def add(self, real: str) -> None:
        """Take a file; one that was removed since its folder was read does not count."""
        try:
            self._held.append((-os.stat(real).st_mtime_ns, real))
        except OSError:
            return
        self.count += 1
        if len(self._held) >= _HELD:
            self._trim()

    def files(self) -> list[str]:
        """The real paths, the newest first."""
        self._trim()
        return [real for _, real in self._held]

    def _trim(self) -> None:
        self._held.sort()
        del self._held[ENTRY_LIMIT:]


def glob_files(call: ToolCall, context: ToolContext, clock: Clock) -> ToolOutput:
    """Answer a ``glob`` call.

    :param clock: says when to stop.
    :raises PathRefused: when the call cannot be done as it was made.
    :raises OSError: when the system does not allow it.
    """
    root = SearchRoot(call, context)
    root.require_folder()
    pattern = call.arguments["pattern"]
    prefix, rest = literal_prefix(pattern)
    try:
        wanted = compile_glob(rest)
    except GlobError as error:
        raise CallRefused(str(error)) from None
    base = root.fence.resolve(prefix if prefix.startswith(("/", "~/")) else f"{root.real}/{prefix}")
    if not root.admits(base.real):
        raise CallRefused(permit(base, context.permitted_paths, writing=False) or f"{prefix} is not searched.")
    found = _find(root, base.real, wanted, clock)
    lines = _within_output(map(root.show, found.files()))
    notes = root.unread()
    if len(lines) < found.count:
        notes.insert(0, f"{len(lines)} of {found.count} matches; narrow the pattern to see the others.")
    if clock.expired:
        notes.insert(0, f"Stopped after {clock.seconds:g} seconds; narrow path or pattern.")
    if not lines:
        lines = [f"No file in {root.show(root.real)} matches {printable(pattern)}."]
    return ToolOutput(text="\n".join([*lines, f"({' '.join(notes)})"] if notes else lines))


def _find(root: SearchRoot, base: str, wanted: GlobPattern, clock: Clock) -> Newest:
    found = Newest()
    rules = IgnoreRules.for_search(str(root.fence.workspace), base)
    walked = walk(
        base,
        rules,
        root.admits,
        max_depth=wanted.depth(),
        with_links=True,
        stopped=clock.stopped,
        unreadable=root.unreadable,
    )
    below = base.rstrip("/") + "/"
    for number, entry in enumerate(walked):
        if number % _ASKED == 0 and clock.stopped():
            break
        if wanted.matches(entry.path):
            found.add(below + entry.path)
    return found


def _within_output(lines: Iterable[str]) -> list[str]:
    """Return as many lines as one output holds beside its notes."""
    taken: list[str] = []
    room = OUTPUT_CHARACTERS - _NOTES_CHARACTERS
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        taken.append(line)
    return taken
