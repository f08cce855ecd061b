"""The folder or file a search begins at, and what lies in its reach."""

from __future__ import annotations

import os
import stat

from crystal.types.tools import ToolCall, ToolContext
from crystal.workspace.admission import Admission
from crystal.workspace.fence import Fence
from crystal.workspace.ignore import IgnoreRules
from crystal.workspace.open_files import FileMissing
from plugins_builtin.files.outcome import CallRefused, fence_of

_FOLDERS_NAMED = 5


class SearchRoot:
    """The folder or file that a call names, admitted by the fence, with the rules for what lies below it.

    :param call: its ``path`` argument; the workspace when it has none.
    :raises PathRefused: when the call may not search there.
    """

    def __init__(self, call: ToolCall, context: ToolContext) -> None:
        self.fence: Fence = fence_of(context)
        self.real = self.fence.admit(call.arguments.get("path", "."), context.permitted_paths).real
        self.admits = Admission(self.fence, self.real, context.permitted_paths)
        self.unreadable: list[str] = []

    def rules(self) -> IgnoreRules:
        """Return the ignore rules for a search below it; reads files."""
        return IgnoreRules.for_search(str(self.fence.workspace), self.real)

    def path(self, relative: str) -> str:
        """Return the real path of what lies below it."""
        return f"{self.real.rstrip('/')}/{relative}"

    def require_folder(self) -> None:
        """Refuse a search that begins at something else than a folder.

        :raises PathRefused: when there is nothing, or no folder.
        """
        try:
            mode = os.stat(self.real).st_mode
        except (FileNotFoundError, NotADirectoryError):
            shown = self.fence.show(self.real)
            raise FileMissing(f"There is no folder {shown}; list its parent to see what is there.") from None
        if not stat.S_ISDIR(mode):
            raise CallRefused(f"{self.fence.show(self.real)} is not a folder; name the folder to search.")

    def show(self, real: str) -> str:
        """Return the name an output gives a file or folder."""
        return self.fence.show(real)

    def unread(self) -> list[str]:
        """Say which folders could not be read; nothing when all could."""
        if not self.unreadable:
            return []
        named = ", ".join(self.show(real) for real in sorted(self.unreadable)[:_FOLDERS_NAMED])
        more = len(self.unreadable) - _FOLDERS_NAMED
        return [f"Not readable and left out: {named}{f' and {more} more folders' if more > 0 else ''}."]
