"""Admission of tools."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType
from typing import Any

from crystal.host.admission.entries import NAME, Omitted, check_each
from crystal.host.dispatch import Collected
from crystal.host.reserved import RESERVED_TOOLS
from crystal.host.tool_sets.contribution import ToolSetContribution
from crystal.types._frozen import Frozen
from crystal.types._readonly import read_only, thaw
from crystal.types.approval import Authority, Risk
from crystal.types.notes import Note, NoteCode
from crystal.types.tools import Catalog, ToolContribution, ToolDefinition

SCHEMA_TYPES = frozenset(("object", "array", "string", "integer", "number", "boolean", "null"))


class RegisteredTool(Frozen):
    """An admitted tool.

    :param plugin: full name of the plugin it comes from; also the origin that grants are keyed by.
    :param definition: read once and copied, so that nothing can change what the model was told.
    :param author_always: whether the author of its tool set asks for calls without a question, and that counts.
    """

    plugin: str
    contribution: ToolContribution
    definition: ToolDefinition
    author_always: bool = False

    @property
    def is_builtin(self) -> bool:
        """Whether it ships with the host."""
        return self.plugin.startswith("builtin:")


def admit_tools(
    entries: tuple[Collected, ...], disabled: frozenset[str] = frozenset()
) -> tuple[dict[str, RegisteredTool], tuple[Note, ...]]:
    """Return the admitted tools by name, in order, and a note for each omitted entry.

    :param disabled: names of built-in tools that are left out of this process; they stay reserved.
    """
    admitted: dict[str, RegisteredTool] = {}

    def check(collected: Collected) -> None:
        tool = _read_tool(collected.entry, collected.plugin)
        name = tool.definition.name
        if name in RESERVED_TOOLS and not tool.is_builtin:
            raise Omitted(NoteCode.TOOL_RESERVED, f"is named '{name}', which is reserved for a built-in tool")
        if name in admitted:
            raise Omitted(NoteCode.TOOL_DUPLICATE, f"is named '{name}', and {admitted[name].plugin} has that tool")
        if name not in disabled or not tool.is_builtin:
            admitted[name] = tool

    return admitted, check_each(entries, "tool", check)


def _read_tool(entry: Any, plugin: str) -> RegisteredTool:
    if isinstance(entry, FunctionType):
        raise Omitted(
            NoteCode.CONTRIBUTION_INVALID, f"is the function '{entry.__name__}' as it is; write @tool above it"
        )
    if not isinstance(entry, ToolContribution):
        raise Omitted(NoteCode.CONTRIBUTION_INVALID, f"is {type(entry).__name__}, not a ToolContribution")
    definition = entry.tool.definition
    if not isinstance(definition, ToolDefinition):
        raise Omitted(
            NoteCode.CONTRIBUTION_INVALID, f"defines itself by {type(definition).__name__}, not a ToolDefinition"
        )
    if not isinstance(entry.name, str) or not NAME.fullmatch(entry.name):
        raise Omitted(
            NoteCode.TOOL_NAME, "has a name that is not a letter followed by letters, digits, _ or - (64 at most)"
        )
    if definition.name != entry.name:
        raise Omitted(NoteCode.TOOL_NAME, f"is contributed as '{entry.name}' but defined as '{definition.name}'")
    if not isinstance(definition.description, str):
        raise Omitted(NoteCode.CONTRIBUTION_INVALID, "has a description that is not a text")
    if not isinstance(entry.catalogs, Catalog) or not entry.catalogs:
        raise Omitted(NoteCode.TOOL_CATALOG, f"'{entry.name}' names no catalog; give Catalog.PLAN, WORK or BOTH")
    if (fault := schema_fault(definition.schema)) is not None:
        raise Omitted(NoteCode.TOOL_SCHEMA, f"'{entry.name}' has a schema that {fault}")
    if (fault := _field_fault(entry)) is not None:
        raise Omitted(NoteCode.CONTRIBUTION_INVALID, f"'{entry.name}' has {fault}")
    if entry.capabilities and not plugin.startswith("builtin:"):
        raise Omitted(NoteCode.CONTRIBUTION_INVALID, f"'{entry.name}' asks for capabilities of built-in tools")
    told = ToolDefinition(
        name=definition.name, description=definition.description, schema=read_only(thaw(definition.schema))
    )
    always = isinstance(entry, ToolSetContribution) and entry.author_always and plugin.startswith("toolset:")
    return RegisteredTool(plugin=plugin, contribution=entry, definition=told, author_always=always)


def _field_fault(entry: ToolContribution) -> str | None:
    """Say which field is not what the host relies on when it fences, classifies and runs the tool."""
    if not callable(getattr(entry.tool, "invoke", None)):
        return "a tool without 'invoke'"
    if not _are_names(entry.path_arguments, tuple):
        return "path_arguments that are not a tuple of names"
    if not isinstance(entry.default_paths, Mapping):
        return "default_paths that are not a mapping"
    if entry.risk is not None and not isinstance(entry.risk, Risk):
        return "a risk that is not a Risk"
    if not isinstance(entry.authority, Authority) or not entry.authority:
        return "an authority that is not an Authority"
    for name in ("pre_classifier", "grant_parts", "preview"):
        function = getattr(entry, name)
        if function is not None and not callable(function):
            return f"a {name} that cannot be called"
    if not _are_names(entry.capabilities, (frozenset, set, tuple)):
        return "capabilities that are not a set of names"
    return None if type(entry.parallel) is bool else "something else than a bool as parallel"


def _are_names(value: object, kinds: type | tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and all(isinstance(name, str) for name in value)  # type: ignore[attr-defined]


def schema_fault(schema: Any) -> str | None:
    """Say what is wrong with the shape of a tool's schema; ``None`` when it is an object schema of known types."""
    if not isinstance(schema, Mapping):
        return f"is {type(schema).__name__}, not an object"
    if schema.get("type") != "object":
        return "does not say type 'object' at its root"
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping):
        return "has 'properties' that are not an object"
    for name, part in properties.items():
        if not isinstance(part, (Mapping, bool)):
            return f"describes the property '{name}' by {type(part).__name__}, not an object"
        kinds = part.get("type", ()) if isinstance(part, Mapping) else ()
        for kind in kinds if isinstance(kinds, (list, tuple)) else (kinds,):
            if not isinstance(kind, str) or kind not in SCHEMA_TYPES:
                return f"gives the property '{name}' the unknown type {kind!r}"
    required = schema.get("required", [])
    if not isinstance(required, (list, tuple)) or not all(isinstance(name, str) for name in required):
        return "has 'required' that is not a list of names"
    return None
