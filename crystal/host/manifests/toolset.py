"""``tools.json`` as a value: a set of tools that one program or one Python module brings.

Every default of the set is applied here, so that whoever runs a tool looks at the tool alone. Whether the program or
the module is there, and whether a name is free, is not decided here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, TypeAlias

from crystal.host.manifests.plugin import clean_path
from crystal.host.manifests.reading import field_refused, parse_known_manifest, parse_manifest
from crystal.host.manifests.remembered import RememberedManifests
from crystal.store.home import HomeFileError
from crystal.store.json_files import JsonFile, JsonPath, dotted, kind
from crystal.types._frozen import Frozen
from crystal.types._readonly import EMPTY, read_only
from crystal.types.tools import Catalog

TOOLS_MANIFEST = "tools.json"

TOOL_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
TOOL_NAME_RULE = "a tool name: a letter, then letters, digits, _ or -, at most 64"

LONGEST_TIMEOUT = 4_294_967
"""Seconds; the most that 32 bits of milliseconds hold."""

DEFAULT_TIMEOUT = 120

SHORTHAND = ("description", "schema", "argv", "pathArguments", "output")
"""Fields of a tool that stand at the root when the set is one tool."""

EXEC_ONLY = ("command", "stdin", "argv", "output")
PYTHON_ONLY = ("module", "types")

_CATALOGS = {"plan": Catalog.PLAN, "work": Catalog.WORK}
_COMPOSED = frozenset(
    ("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas", "patternProperties")
)


class AuthorApproval(Enum):
    """What the author says about asking the operator; whether it counts is the operator's to say."""

    INHERIT = "inherit"
    ALWAYS = "always"


class OutputForm(Enum):
    """How the standard output of a program is read."""

    TEXT = "text"
    CONTENT = "content"
    """One JSON object with a text and images."""


class DeclaredTool(Frozen):
    """One tool of a program, as a manifest declares it.

    :param schema: JSON Schema of the arguments.
    :param command: the whole argument list, the set's part first; never empty, and nothing is replaced in it.
    :param argv: flag by property, in the order of the file.
    :param path_arguments: the properties that are paths.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    command: tuple[str, ...]
    argv: Mapping[str, str] = EMPTY
    path_arguments: tuple[str, ...] = ()
    output: OutputForm = OutputForm.TEXT
    approval: AuthorApproval = AuthorApproval.INHERIT
    catalogs: Catalog = Catalog.BOTH


class ExecRunner(Frozen):
    """A set made of programs.

    :param stdin: whether a call's arguments are written to the program; its input is closed either way.
    :param tools: in the order of the file.
    """

    stdin: bool
    tools: tuple[DeclaredTool, ...]


class ToolOverlay(Frozen):
    """What the manifest says about one tool of a Python module, the defaults of the set applied."""

    path_arguments: tuple[str, ...] = ()
    approval: AuthorApproval = AuthorApproval.INHERIT
    catalogs: Catalog = Catalog.BOTH


class PythonRunner(Frozen):
    """A set made of Python code.

    :param module: path of a ``.py`` file or a package folder, relative to the set's folder, without ``.`` parts.
    :param types: the only names of the module that count, or ``None`` for every public tool.
    :param shared: compiled distributions that are loaded once for the process.
    :param overlays: by tool name; each has to name a tool.
    """

    module: str
    types: tuple[str, ...] | None = None
    shared: tuple[str, ...] = ()
    overlays: Mapping[str, ToolOverlay] = EMPTY


class OmittedTool(Frozen):
    """A tool that is left out while its set stays.

    :param line: of the fault in the manifest.
    :param field: dotted path of the fault.
    """

    name: str
    line: int | None
    field: str
    message: str


class ToolSetManifest(Frozen):
    """One ``tools.json``.

    :param approval: default of the set, like ``catalogs``; the tools of a program have it applied.
    :param timeout: seconds that one call may take, ``None`` for no limit.
    :param omitted: tools whose own entry is refused; the runner does not have them, and an overlay's tool is left out.
    """

    enabled: bool
    approval: AuthorApproval
    catalogs: Catalog
    timeout: int | None
    runner: ExecRunner | PythonRunner
    omitted: tuple[OmittedTool, ...] = ()

    def overlay(self, name: str) -> ToolOverlay | None:
        """Return what holds for a tool of a Python module, ``None`` when it is left out."""
        if any(tool.name == name for tool in self.omitted):
            return None
        overlays = self.runner.overlays if isinstance(self.runner, PythonRunner) else EMPTY
        known: ToolOverlay | None = overlays.get(name)
        return known or ToolOverlay(approval=self.approval, catalogs=self.catalogs)


_Entry: TypeAlias = tuple[JsonPath, str, dict[str, Any]]
"""Place, name and fields of one tool."""


def parse_tool_set(
    path: Path, data: bytes, directory: str, remembered: RememberedManifests | None = None
) -> ToolSetManifest:
    """Check the bytes of a ``tools.json``. Fields that are not known are ignored.

    :param path: the manifest, for messages.
    :param directory: name of the set, which the only tool of the short form has too.
    :param remembered: what needs no check; a manifest that is in order is added.
    :raises ManifestRefused: naming place, field and mend.
    """
    known = remembered is not None and remembered.knows(TOOLS_MANIFEST, data)
    file = parse_known_manifest(path, data) if known else parse_manifest(path, data)
    try:
        if not known:
            _check(file)
        _check_directory(file, directory)
    except HomeFileError as error:
        raise field_refused(file, error) from error
    if remembered is not None and not known:
        remembered.learn(TOOLS_MANIFEST, data)
    return _build(file, directory)


def catalogs_fault(value: Any) -> str | None:
    """Say why a value cannot be ``catalogs``, or ``None`` when it can."""
    if not isinstance(value, list):
        return f"expected a list of plan and work, found {kind(value)}"
    if not value:
        return "the list is empty, and a tool in neither catalog is never used; name plan, work or both"
    for name in value:
        if not isinstance(name, str) or name not in _CATALOGS:
            return f"expected plan or work, found {_quoted(name)}; approval modes are no catalogs"
    return None


def _check(file: JsonFile) -> None:
    from crystal.host.manifests.toolset_schema import validate_tool_set  # pydantic: only for what is not remembered

    value = file.value
    runner = value.get("runner")
    if "runner" not in value:
        file.refuse(("runner",), "this field is required; write exec or python")
    if runner == "dotnet":
        module = "name the set's .py file or package folder in the field module"
        file.refuse(("runner",), f"this host runs Python and loads no assembly; write python here and {module}")
    if runner not in ("exec", "python"):
        file.refuse(("runner",), f"expected exec or python, found {_quoted(runner)}")
    if runner == "exec":
        _refuse_fields(file, (), PYTHON_ONLY, "only a set with the runner python has it")
        if "tools" in value:
            mixed = "a set has a tools list, or the fields of its only tool at the root, never both"
            _refuse_fields(file, (), SHORTHAND, mixed)
    if runner == "python":
        _check_python(file)
    validate_tool_set(file)
    if runner == "exec":
        _check_exec(file)


def _check_python(file: JsonFile) -> None:
    value = file.value
    reason = "only a set with the runner exec has it"
    _refuse_fields(file, (), EXEC_ONLY, reason)
    _refuse_fields(file, (), ("pathArguments",), "a python set has it for each tool, in the field tools")
    if "module" not in value and "assembly" in value:
        file.refuse(("assembly",), "name the set's .py file or package folder in the field module instead")
    tools = value.get("tools")
    for name, overlay in tools.items() if isinstance(tools, dict) else ():
        if not TOOL_NAME.fullmatch(name):
            file.refuse(("tools", name), f"the key is expected to be {TOOL_NAME_RULE}")
        if isinstance(overlay, dict):
            _refuse_fields(file, ("tools", name), EXEC_ONLY, reason, overlay)


def _refuse_fields(
    file: JsonFile, place: JsonPath, names: tuple[str, ...], reason: str, value: Mapping[str, Any] | None = None
) -> None:
    for name in names:
        if name in (file.value if value is None else value):
            file.refuse((*place, name), f"this field does not belong here: {reason}; remove it")


def _check_exec(file: JsonFile) -> None:
    """Check what fields of tools that are well formed one by one mean together."""
    prefix = file.value.get("command", [])
    names: set[str] = set()
    for place, name, tool in _entries(file.value, ""):
        if name in names:
            file.refuse((*place, "name"), f"two tools of this set are named '{name}'; give one of them another name")
        names.add(name)
        command = [*prefix, *tool.get("command", ())] if place else prefix
        if not command:
            file.refuse((*place, "command"), "a program is needed, in the command of the set or of the tool")
        if not command[0]:
            at = (*place, "command") if not prefix else ("command",)
            file.refuse(at, "the first text is empty; name the program")
        _check_schema(file, place, tool)


def _check_schema(file: JsonFile, place: JsonPath, tool: Mapping[str, Any]) -> None:
    from crystal.host.admission.tools import schema_fault  # not for what is remembered

    schema = tool["schema"]
    fault = _type_fault(schema) or schema_fault(schema)
    if fault is not None:
        file.refuse((*place, "schema"), f"the schema {fault}")
    properties = schema.get("properties")
    if properties is None or not _COMPOSED.isdisjoint(schema):
        return
    missing = "is no property of the schema; name one that is, or add it there"
    for name in tool.get("argv", ()):
        if name not in properties:
            file.refuse((*place, "argv", name), f"{_quoted(name)} {missing}")
    for position, name in enumerate(tool.get("pathArguments", ())):
        if name not in properties:
            file.refuse((*place, "pathArguments", position), f"{_quoted(name)} {missing}")


def _type_fault(schema: Mapping[str, Any]) -> str | None:
    properties = schema.get("properties")
    for name, part in properties.items() if isinstance(properties, dict) else ():
        kinds = part.get("type", "object") if isinstance(part, dict) else "object"
        if not isinstance(kinds, str) and not (isinstance(kinds, list) and all(isinstance(one, str) for one in kinds)):
            return f"gives the property '{name}' a type that is neither a text nor a list of texts"
    return None


def _check_directory(file: JsonFile, directory: str) -> None:
    value = file.value
    if value["runner"] == "exec" and "tools" not in value and not TOOL_NAME.fullmatch(directory):
        file.refuse(
            (),
            f"the only tool of this set would be named like its folder, and {_quoted(directory)} is no tool name "
            "(it has a dot); write a tools list with one tool and its name",
        )


def _entries(value: Mapping[str, Any], directory: str) -> Iterator[_Entry]:
    if "tools" in value:
        for position, tool in enumerate(value["tools"]):
            yield ("tools", position), tool["name"], tool
    else:
        yield (), directory, dict(value)


def _build(file: JsonFile, directory: str) -> ToolSetManifest:
    value = file.value
    timeout = value.get("timeoutSeconds", DEFAULT_TIMEOUT)
    approval, catalogs = _approval(value, AuthorApproval.INHERIT), _catalogs(value, Catalog.BOTH)
    omitted: list[OmittedTool] = []
    runner: ExecRunner | PythonRunner
    if value["runner"] == "exec":
        tools = []
        for place, name, tool in _entries(value, directory):
            if not _omits(file, omitted, place, name, tool):
                suffix = tool.get("command", ()) if place else ()
                tools.append(_exec_tool(name, tool, (*value.get("command", ()), *suffix), approval, catalogs))
        runner = ExecRunner(stdin=value.get("stdin", True), tools=tuple(tools))
    else:
        overlays = {
            name: ToolOverlay(
                path_arguments=_names(tool.get("pathArguments", ())),
                approval=_approval(tool, approval),
                catalogs=_catalogs(tool, catalogs),
            )
            for name, tool in value.get("tools", EMPTY).items()
            if not _omits(file, omitted, ("tools", name), name, tool)
        }
        runner = PythonRunner(
            module=clean_path(value["module"]),
            types=_names(value["types"]) if "types" in value else None,
            shared=_names(value.get("shared", ())),
            overlays=read_only(overlays),
        )
    return ToolSetManifest(
        enabled=value.get("enabled", True),
        approval=approval,
        catalogs=catalogs,
        timeout=None if timeout == "unlimited" else timeout,
        runner=runner,
        omitted=tuple(omitted),
    )


def _exec_tool(
    name: str, tool: Mapping[str, Any], command: tuple[str, ...], approval: AuthorApproval, catalogs: Catalog
) -> DeclaredTool:
    return DeclaredTool(
        name=name,
        description=tool["description"],
        schema=read_only(tool["schema"]),
        command=command,
        argv=read_only(tool.get("argv", EMPTY)),
        path_arguments=_names(tool.get("pathArguments", ())),
        output=OutputForm(tool.get("output", "text")),
        approval=_approval(tool, approval),
        catalogs=_catalogs(tool, catalogs),
    )


def _omits(file: JsonFile, omitted: list[OmittedTool], place: JsonPath, name: str, tool: Mapping[str, Any]) -> bool:
    """Put a tool with ill-formed ``catalogs`` among the omitted; those of the whole set were checked."""
    fault = catalogs_fault(tool["catalogs"]) if place and "catalogs" in tool else None
    if fault is not None:
        at = (*place, "catalogs")
        omitted.append(OmittedTool(name=name, line=file.line(at), field=dotted(at), message=fault))
    return fault is not None


def _approval(value: Mapping[str, Any], default: AuthorApproval) -> AuthorApproval:
    return AuthorApproval(value["approval"]) if "approval" in value else default


def _catalogs(value: Mapping[str, Any], default: Catalog) -> Catalog:
    if "catalogs" not in value:
        return default
    catalogs = Catalog(0)
    for name in value["catalogs"]:
        catalogs |= _CATALOGS[name]
    return catalogs


def _names(names: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _quoted(value: Any) -> str:
    return repr(value) if isinstance(value, str) and len(value) <= 64 else kind(value)
