"""The runtime directories of a tool set: made when one of its tools is first called."""

from __future__ import annotations

import contextlib
from pathlib import Path

from crystal.types.tools import ToolContext
from crystal.workspace.data_directories import LinkInPath, ignore_in_git, make_data_directory

DATA = "data"


class DirectoriesRefused(Exception):
    """A link stands in the way. The message is one sentence that names it and the mend."""


class SetDirectories:
    """The two directories of one set, below ``data/tools`` of the home and of the workspace's ``.crystal``.

    :param directory: the set's name.
    """

    def __init__(self, directory: str) -> None:
        self._names = (DATA, "tools", directory)
        self._made: Path | None = None

    def make(self, context: ToolContext) -> None:
        """Make both, once for each workspace; one that cannot be made is left to the tool that wants to use it.

        :raises DirectoriesRefused: when a part of a path is a link.
        """
        if self._made == context.workspace:
            return
        try:
            with contextlib.suppress(OSError):
                make_data_directory(context.home, self._names, private=True)
            with contextlib.suppress(OSError):
                make_data_directory(context.workspace, (".crystal", *self._names))
                ignore_in_git(context.workspace / ".crystal" / DATA)
        except LinkInPath as link:
            raise DirectoriesRefused(
                f"its data directories cannot be made, for {link} is a link; put a folder in its place."
            ) from link
        self._made = context.workspace
