"""The shape of ``plugin.json``, for checking and for the JSON Schema. Imports pydantic: see ``plugin``.

``python -m crystal.host.manifests.plugin_schema`` prints the schema that ``crystal/schemas/plugin.json`` holds.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter
from pydantic_core import PydanticCustomError

from crystal.host.manifests.plugin import PATH_CHARACTERS, module_fault, shared_fault, type_fault
from crystal.store.json_files import JsonFile
from crystal.store.validation import FileSchema, expect, validate_file

Value = TypeVar("Value")


def accepted(fault: Callable[[Value], str | None]) -> AfterValidator:
    """Annotate a field with a check that says in a sentence why a value is refused."""

    def check(value: Value) -> Value:
        message = fault(value)
        if message is not None:
            raise PydanticCustomError("refused", "{message}", {"message": message})
        return value

    return AfterValidator(check)


Switch = Annotated[bool, expect("true or false")]
Text = Annotated[str, expect("a text")]


class _ManifestSchema(FileSchema):
    model_config = ConfigDict(extra="ignore")  # the line of each unknown key is a search, and they are ignored anyway

    enabled: Switch = True
    """Whether the plugin is loaded."""


class ModulePluginSchema(_ManifestSchema):
    """A plugin made of Python code."""

    module: Annotated[
        Text, accepted(module_fault), Field(json_schema_extra={"minLength": 1, "maxLength": PATH_CHARACTERS})
    ]
    """Path of the plugin's .py file or package folder, inside the plugin's folder."""
    type: Annotated[Text, accepted(type_fault)] = ""
    """Class of the module to instantiate; without it the module itself is the plugin."""
    shared: Annotated[list[str], expect("a list of texts"), accepted(shared_fault)] = Field(default_factory=list)
    """Compiled distributions, such as numpy, that are loaded once under their own name."""


class CommandPluginSchema(_ManifestSchema):
    """A plugin made of one command line."""

    name: Annotated[
        str,
        Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$"),
        expect("a tool name: a letter, then letters, digits, _ or -, at most 64"),
    ]
    """Name of the tool."""
    description: Text
    """What the tool does, for the model."""
    schema_: Annotated[dict[str, Any], Field(alias="schema"), expect("an object")]
    """JSON Schema of the tool's arguments, an object."""
    command: Text
    """The command line, with {{slots}} for arguments and {{plugin_dir}} for the plugin's folder."""


def validate_plugin(file: JsonFile) -> None:
    """Check a ``plugin.json``; whether it has ``command`` says which form it is of.

    :raises HomeFileError: for the first fault.
    """
    validate_file(CommandPluginSchema if "command" in file.value else ModulePluginSchema, file)


def plugin_schema() -> dict[str, Any]:
    """Return the JSON Schema of ``plugin.json``."""
    generated = TypeAdapter(ModulePluginSchema | CommandPluginSchema).json_schema(by_alias=True)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "plugin.json of crystal",
        "description": "A plugin of Crystal: Python code (module), or one command line (command).",
        "type": "object",
        **generated,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(plugin_schema(), indent=2) + "\n")
