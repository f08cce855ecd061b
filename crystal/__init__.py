"""Crystal: a coding agent whose host is a pluggy hookspec framework. This is the public API, imported lazily."""

from __future__ import annotations

from crystal._version import VERSION as __version__

TYPE_CHECKING = False  # without importing typing: 'crystal --version' passes here

if TYPE_CHECKING:
    from crystal.hookspecs import hookimpl
    from crystal.tool_functions import tool
    from crystal.types.approval import (
        ApprovalAdvice,
        ApprovalFacts,
        ApprovalMode,
        Authority,
        Classification,
        Risk,
    )
    from crystal.types.commands import Command, Placeholder, StatusField, Table, View
    from crystal.types.items import Image
    from crystal.types.tools import (
        Catalog,
        Classifier,
        Tool,
        ToolCall,
        ToolContext,
        ToolContribution,
        ToolDefinition,
        ToolOutput,
    )

__all__ = [
    "ApprovalAdvice",
    "ApprovalFacts",
    "ApprovalMode",
    "Authority",
    "Catalog",
    "Classification",
    "Classifier",
    "Command",
    "Image",
    "Placeholder",
    "Risk",
    "StatusField",
    "Table",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolContribution",
    "ToolDefinition",
    "ToolOutput",
    "View",
    "__version__",
    "hookimpl",
    "tool",
]

_HOMES = {
    "crystal.hookspecs": ("hookimpl",),
    "crystal.tool_functions": ("tool",),
    "crystal.types.approval": (
        "ApprovalAdvice",
        "ApprovalFacts",
        "ApprovalMode",
        "Authority",
        "Classification",
        "Risk",
    ),
    "crystal.types.commands": ("Command", "Placeholder", "StatusField", "Table", "View"),
    "crystal.types.items": ("Image",),
    "crystal.types.tools": (
        "Catalog",
        "Classifier",
        "Tool",
        "ToolCall",
        "ToolContext",
        "ToolContribution",
        "ToolDefinition",
        "ToolOutput",
    ),
}


def __getattr__(name: str) -> object:
    import importlib

    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module 'crystal' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
