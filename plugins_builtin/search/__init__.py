"""The search tools: ``tree``, ``glob``, ``grep`` and ``search``.

Ignore rules and the fence decide which files they see.
"""

from __future__ import annotations

from crystal import hookimpl
from crystal.types.tools import ToolContribution
from plugins_builtin.search.tools import GlobTool, GrepTool, SearchTool, TreeTool

name = "search"


@hookimpl
def contribute_tools() -> list[ToolContribution]:
    """Bring the search tools; without a path they search the workspace."""
    return [
        ToolContribution(name=tool.definition.name, tool=tool, path_arguments=("path",), default_paths={"path": "."})
        for tool in (TreeTool(), GlobTool(), GrepTool(), SearchTool())
    ]
