"""The search tools as the model sees them; the code that does their work is imported at the first call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from crystal.types.tools import ToolCall, ToolContext, ToolDefinition, ToolOutput
from crystal.workspace.fence import PathRefused
from plugins_builtin.files.argument_rules import require_arguments
from plugins_builtin.files.outcome import failure
from plugins_builtin.search.background import Clock, in_thread

SECONDS = 30.0
"""How long one search may take. Past it ``grep`` has failed; the others answer with what they found and say so."""


def _find_ripgrep(workspace: Path) -> str | None:
    from plugins_builtin.search.ripgrep import find_ripgrep

    return find_ripgrep(workspace)


class GlobTool:
    """Finds files by pattern. Hidden files match like others; ignored ones do not, unless their folder is named.

    :param seconds: the most one call may take.
    """

    definition = ToolDefinition(
        name="glob",
        description="Find files by path pattern, newest first: * ? [..] {a,b} and ** for any folders. "
        "Ignored files are left out.",
        schema={
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "relative to path, e.g. src/**/*.{ts,tsx}"},
                "path": {"type": "string", "description": "folder; default: the workspace"},
            },
            "required": ["pattern"],
            "additionalProperties": False,
        },
    )

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds

    async def invoke(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Find files."""
        from plugins_builtin.search.globbing import glob_files

        try:
            require_arguments(call, self.definition)
            clock = Clock(self._seconds)
            return await in_thread(lambda: glob_files(call, context, clock), clock)
        except (PathRefused, OSError) as error:
            return failure(error, call)


class TreeTool:
    """Shows a folder as a tree; ignored entries are counted, not shown.

    :param seconds: the most one call may take.
    """

    definition = ToolDefinition(
        name="tree",
        description="Show a folder as an indented tree without ignored entries.",
        schema={
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "default: the workspace"},
                "depth": {"type": "integer", "minimum": 1, "description": "levels, default 3"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "entries, default 300"},
            },
            "additionalProperties": False,
        },
    )

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds

    async def invoke(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Show a tree."""
        from plugins_builtin.search.outline import show_tree

        try:
            require_arguments(call, self.definition)
            clock = Clock(self._seconds)
            return await in_thread(lambda: show_tree(call, context, clock), clock)
        except (PathRefused, OSError) as error:
            return failure(error, call)


class SearchTool:
    """Ranks files by plain words. Large, binary and ignored files are known by their names at most.

    :param seconds: the most one call may take.
    """

    definition = ToolDefinition(
        name="search",
        description="Rank files by plain words in their names and contents, with their best lines. No regex.",
        schema={
            "type": "object",
            "properties": {
                "query": {"type": "string"},
                "path": {"type": "string", "description": "folder; default: the workspace"},
                "limit": {"type": "integer", "minimum": 1, "description": "files, default 10"},
            },
            "required": ["query"],
            "additionalProperties": False,
        },
    )

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds

    async def invoke(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Rank files."""
        from plugins_builtin.search.ranking import search_files

        try:
            require_arguments(call, self.definition)
            clock = Clock(self._seconds)
            return await in_thread(lambda: search_files(call, context, clock), clock)
        except (PathRefused, OSError) as error:
            return failure(error, call)


class GrepTool:
    """Searches file contents. Files larger than 8 MiB, binary and ignored ones are passed over.

    :param find: finds the ripgrep program for a workspace; ``None`` from it means the Python backend.
    :param seconds: the most one search may take.
    """

    definition = ToolDefinition(
        name="grep",
        description="Search file contents by regular expression, a line at a time. Ignored, binary and huge files "
        "are left out.",
        schema={
            "type": "object",
            "properties": {
                "pattern": {"type": "string"},
                "path": {"type": "string", "description": "file or folder; default: the workspace"},
                "glob": {"type": "string", "description": "which files, e.g. *.{c,h} or !*.md"},
                "context": {"type": "integer", "minimum": 0, "description": "lines around a match"},
                "ignore_case": {"type": "boolean"},
                "files_only": {"type": "boolean"},
            },
            "required": ["pattern"],
            "additionalProperties": False,
        },
    )

    def __init__(self, find: Callable[[Path], str | None] = _find_ripgrep, seconds: float = SECONDS) -> None:
        self._find = find
        self._seconds = seconds

    async def invoke(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Search."""
        import asyncio

        from plugins_builtin.search.grep import grep_files

        try:
            require_arguments(call, self.definition)
            async with asyncio.timeout(self._seconds):
                return await grep_files(call, context, self._find(context.workspace), Clock(self._seconds))
        except TimeoutError:
            text = f"grep took longer than {self._seconds:g} seconds and was ended; narrow pattern, path or glob."
            return ToolOutput(text=text, failed=True)
        except (PathRefused, OSError) as error:
            return failure(error, call)
