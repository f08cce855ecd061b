"""The shape of ``tools.json``, for checking and for the JSON Schema. Imports pydantic: see ``toolset``.

``python -m crystal.host.manifests.toolset_schema`` prints the schema that ``crystal/schemas/tools.json`` holds.
"""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, WithJsonSchema

from crystal.host.manifests.plugin import PATH_CHARACTERS, module_fault, shared_fault, type_fault
from crystal.host.manifests.plugin_schema import Switch, Text, accepted
from crystal.host.manifests.toolset import (
    DEFAULT_TIMEOUT,
    EXEC_ONLY,
    LONGEST_TIMEOUT,
    PYTHON_ONLY,
    SHORTHAND,
    TOOL_NAME,
    TOOL_NAME_RULE,
    catalogs_fault,
)
from crystal.store.json_files import JsonFile
from crystal.store.validation import FileSchema, expect, validate_file


def _argument_fault(text: str) -> str | None:
    return "no program can be given a NUL character; write it without" if "\0" in text else None


def _flag_fault(text: str) -> str | None:
    return _argument_fault(text) if text else "the flag is empty; write one such as --env"


def _name_fault(text: str) -> str | None:
    return None if text else "the name is empty; name a property of the schema"


def _type_name_fault(text: str) -> str | None:
    return type_fault(text) if text else "the name is empty; name a class or tool of the module"


_NO_NUL = {"pattern": r"^[^\u0000]*$"}
_LISTED_CATALOGS = {"type": "array", "items": {"enum": ["plan", "work"]}, "minItems": 1}

Approval = Annotated[Literal["inherit", "always"], expect("inherit or always")]
Catalogs = Annotated[Any, accepted(catalogs_fault), WithJsonSchema(_LISTED_CATALOGS)]
OwnCatalogs = Annotated[Any, WithJsonSchema(_LISTED_CATALOGS)]
"""Not checked here: a fault leaves out the tool and not the set."""
Command = list[Annotated[Text, accepted(_argument_fault), Field(json_schema_extra=_NO_NUL)]]
Flags = dict[str, Annotated[Text, accepted(_flag_fault), Field(json_schema_extra={**_NO_NUL, "minLength": 1})]]
Properties = list[Annotated[Text, accepted(_name_fault), Field(json_schema_extra={"minLength": 1})]]
Output = Annotated[Literal["text", "content"], expect("text or content")]
ArgumentSchema = Annotated[
    dict[str, Any],
    Field(alias="schema", json_schema_extra={"required": ["type"], "properties": {"type": {"const": "object"}}}),
    expect("an object"),
]
ModulePath = Annotated[
    Text,
    accepted(lambda text: module_fault(text, "tool set")),
    Field(json_schema_extra={"minLength": 1, "maxLength": PATH_CHARACTERS}),
]
Timeout = Annotated[
    Annotated[int, Field(ge=1, le=LONGEST_TIMEOUT)] | Literal["unlimited"],
    expect(f'a number of seconds from 1 to {LONGEST_TIMEOUT}, or "unlimited"'),
]


def _without(*names: str) -> Any:
    """Say in the published schema that fields have no place in this form; the check itself words that better."""

    def add(schema: dict[str, Any]) -> None:
        schema["properties"].update(dict.fromkeys(names, False))

    return add


class _EntrySchema(FileSchema):
    model_config = ConfigDict(extra="ignore")  # the line of each unknown key is a search, and they are ignored anyway


class _ToolFields(_EntrySchema):
    description: Text
    """What the tool does, for the model."""
    schema_: ArgumentSchema
    """JSON Schema of the tool's arguments, an object."""
    argv: Flags = Field(default_factory=dict)
    """Flag by property: each call adds the flag and the property's value to the arguments of the program."""
    path_arguments: Properties = Field(default_factory=list)
    """Properties that are paths; they are held inside the workspace and made absolute."""
    output: Output = "text"
    """How the program's output is read; content is one JSON object with text and images."""


class ExecToolSchema(_ToolFields):
    """One tool of a program."""

    name: Annotated[str, Field(pattern=f"^{TOOL_NAME.pattern}$"), expect(TOOL_NAME_RULE)]
    """Name of the tool, for the model."""
    command: Command = Field(default_factory=list)
    """Arguments behind the set's command, such as a subcommand."""
    approval: Approval = "inherit"
    """Takes the place of the set's approval."""
    catalogs: OwnCatalogs = Field(default_factory=list)
    """Takes the place of the set's catalogs."""


class OverlaySchema(_EntrySchema):
    """What holds for one tool of a Python module."""

    model_config = ConfigDict(json_schema_extra=_without(*EXEC_ONLY))

    path_arguments: Properties = Field(default_factory=list)
    """Arguments that are paths; they are held inside the workspace and made absolute."""
    approval: Approval = "inherit"
    """Takes the place of the set's approval."""
    catalogs: OwnCatalogs = Field(default_factory=list)
    """Takes the place of the set's catalogs."""


class _SetFields(_EntrySchema):
    enabled: Switch = True
    """Whether the set is loaded."""
    approval: Approval = "inherit"
    """always asks that calls run without asking; whether that counts is the operator's to say."""
    catalogs: Catalogs = Field(default_factory=lambda: ["plan", "work"])
    """Where the tools are offered."""
    timeout_seconds: Timeout = DEFAULT_TIMEOUT
    """Seconds that one call may take."""


class _ExecFields(_SetFields):
    stdin: Switch = True
    """Whether the arguments of a call are written to the program's input, as one JSON object."""


class ExecSetSchema(_ToolFields, _ExecFields):
    """A program that is one tool, named like the set's folder."""

    model_config = ConfigDict(json_schema_extra=_without("tools", *PYTHON_ONLY))

    runner: Literal["exec"]
    """What runs the tool."""
    command: Annotated[Command, Field(json_schema_extra={"minItems": 1, "prefixItems": [{"minLength": 1}]})]
    """The program and its first arguments; nothing is replaced in them."""


class ExecToolsSchema(_ExecFields):
    """A program that is several tools."""

    model_config = ConfigDict(json_schema_extra=_without(*SHORTHAND, *PYTHON_ONLY))

    runner: Literal["exec"]
    """What runs the tools."""
    command: Command = Field(default_factory=list)
    """The program and its first arguments, shared by every tool."""
    tools: Annotated[list[ExecToolSchema], Field(json_schema_extra={"minItems": 1})]
    """The tools."""


class PythonSetSchema(_SetFields):
    """A Python module whose public tools are the set."""

    model_config = ConfigDict(json_schema_extra=_without("pathArguments", *EXEC_ONLY))

    runner: Literal["python"]
    """What runs the tools."""
    module: ModulePath
    """Path of the set's .py file or package folder, inside the set's folder."""
    types: Annotated[
        list[Annotated[Text, accepted(_type_name_fault), Field(json_schema_extra={"minLength": 1})]],
        accepted(lambda names: None if names else "the list is empty; name a class or tool, or remove the field"),
        Field(json_schema_extra={"minItems": 1}),
    ] = Field(default_factory=list)
    """The only classes and tools of the module that count; without it, every public one."""
    shared: Annotated[list[Text], accepted(shared_fault)] = Field(default_factory=list)
    """Compiled distributions, such as numpy, that are loaded once under their own name."""
    tools: Annotated[
        dict[str, OverlaySchema], Field(json_schema_extra={"propertyNames": {"pattern": f"^{TOOL_NAME.pattern}$"}})
    ] = Field(default_factory=dict)
    """What holds for single tools, by tool name."""


def validate_tool_set(file: JsonFile) -> None:
    """Check the fields of a ``tools.json`` one by one; its runner and whether it has ``tools`` say of which form it is.

    :raises HomeFileError: for the first fault.
    """
    if file.value.get("runner") == "python":
        validate_file(PythonSetSchema, file)
    elif "tools" in file.value:
        validate_file(ExecToolsSchema, file)
        if not file.value["tools"]:
            file.refuse(("tools",), "the list is empty; name a tool in it")
    else:
        validate_file(ExecSetSchema, file)


def tool_set_schema() -> dict[str, Any]:
    """Return the JSON Schema of ``tools.json``."""
    generated = TypeAdapter(ExecSetSchema | ExecToolsSchema | PythonSetSchema).json_schema(by_alias=True)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tools.json of crystal",
        "description": "A tool set of Crystal: a program (exec) or a Python module (python).",
        "type": "object",
        **generated,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(tool_set_schema(), indent=2) + "\n")
