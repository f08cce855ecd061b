"""The tool list of a mode, frozen for a session so that the model sees the same bytes in every request."""

from __future__ import annotations

from collections.abc import Mapping

from crystal.host.admission import RegisteredTool
from crystal.types._frozen import Frozen
from crystal.types.tools import Catalog, ToolDefinition


class FrozenCatalog(Frozen):
    """What one mode offers.

    :param definitions: in registration order; the very same tuple in every request.
    """

    mode: Catalog
    tools: Mapping[str, RegisteredTool]
    definitions: tuple[ToolDefinition, ...]


def compose_catalog(registered: Mapping[str, RegisteredTool], mode: Catalog) -> FrozenCatalog:
    """Return the tools that are listed for ``mode``, in registration order."""
    tools = {name: tool for name, tool in registered.items() if mode in tool.contribution.catalogs}
    return FrozenCatalog(mode=mode, tools=tools, definitions=tuple(tool.definition for tool in tools.values()))
