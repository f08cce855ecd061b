"""The search tools: ``glob`` and ``grep``. Ignore rules and the fence decide which files they see."""

from __future__ import annotations

from crystal import hookimpl
from crystal.types.tools import ToolContribution
from plugins_builtin.search.tools import GlobTool, GrepTool

name = "search"


@hookimpl
def contribute_tools() -> list[ToolContribution]:
    """Bring the search tools; without a path they search the workspace."""
    default = {"path": "."}
    return [
        ToolContribution(name="glob", tool=GlobTool(), path_arguments=("path",), default_paths=default),
        ToolContribution(name="grep", tool=GrepTool(), path_arguments=("path",), default_paths=default),
    ]
