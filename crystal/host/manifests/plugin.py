"""``plugin.json`` as a value: the form that names a Python module, and the form that names a command.

A manifest that is plainly in order is accepted here; every other one is judged, and worded, by pydantic in
``plugin_schema``, which costs a tenth of a second to import.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from crystal.host.manifests.reading import field_refused, parse_manifest
from crystal.store.home import HomeFileError
from crystal.store.json_files import JsonFile
from crystal.types._frozen import Frozen
from crystal.types._readonly import read_only

PLUGIN_MANIFEST = "plugin.json"

PATH_CHARACTERS = 200
"""The whole of it is shown to the operator before it is trusted."""

_SHARED = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")
_NO_ASSEMBLY = (
    "this host runs Python and loads no assembly; name the plugin's .py file or package folder in the field module"
)
_NO_FORM = (
    "a plugin needs the field module (its .py file or package folder), "
    "or name, description, schema and command for a command"
)
_TWO_FORMS = "a manifest has module or command, never both; remove one of them"


class ModuleManifest(Frozen):
    """A plugin made of Python code.

    :param module: path of a ``.py`` file or a package folder, relative to the plugin's folder, without ``.`` parts.
    :param type: class to instantiate, empty when the module itself is the plugin.
    :param shared: compiled distributions that are loaded once for the process.
    """

    enabled: bool
    module: str
    type: str = ""
    shared: tuple[str, ...] = ()


class CommandManifest(Frozen):
    """A plugin made of one command line.

    :param name: model-facing name of its tool.
    :param schema: JSON Schema of the arguments.
    :param command: template of the command line.
    """

    enabled: bool
    name: str
    description: str
    schema: Mapping[str, Any]
    command: str


PluginManifest: TypeAlias = ModuleManifest | CommandManifest


def parse_plugin_manifest(path: Path, data: bytes) -> PluginManifest:
    """Check the bytes of a ``plugin.json``. Fields that are not known are ignored.

    :param path: the manifest, for messages.
    :raises ManifestRefused: naming place, field and mend.
    """
    file = parse_manifest(path, data)
    value = file.value
    try:
        _check(file)
    except HomeFileError as error:
        raise field_refused(file, error) from error
    enabled = value.get("enabled", True)
    if "command" in value:
        return CommandManifest(
            enabled=enabled,
            name=value["name"],
            description=value["description"],
            schema=read_only(value["schema"]),
            command=value["command"],
        )
    return ModuleManifest(
        enabled=enabled,
        module=clean_path(value["module"]),
        type=value.get("type", ""),
        shared=tuple(value.get("shared", ())),
    )


def _check(file: JsonFile) -> None:
    value = file.value
    if "module" in value and "command" in value:
        file.refuse(("command",), _TWO_FORMS)
    if "module" not in value and "command" not in value:
        if "assembly" in value:
            file.refuse(("assembly",), _NO_ASSEMBLY)
        file.refuse((), _NO_FORM)
    if not is_plainly_valid(value):
        from crystal.host.manifests.plugin_schema import validate_plugin  # pydantic: only for the wording of a fault

        validate_plugin(file)


def is_plainly_valid(value: Mapping[str, Any]) -> bool:
    """Whether a manifest with a module is certainly in order; ``False`` only says that it must be looked at."""
    kind = value.get("type")
    shared = value.get("shared", [])
    return (
        isinstance(value.get("enabled", True), bool)
        and isinstance(value.get("module"), str)
        and module_fault(value["module"]) is None
        and ("type" not in value or (isinstance(kind, str) and type_fault(kind) is None))
        and isinstance(shared, list)
        and all(isinstance(name, str) and _SHARED.fullmatch(name) for name in shared)
    )


def module_fault(text: str, owner: str = "plugin") -> str | None:
    """Say why a text cannot be the path of an extension's module, or ``None`` when it can.

    :param owner: whose module it is, such as ``tool set``.
    """
    parts = text.split("/")
    if len(text) > PATH_CHARACTERS:
        return f"the path is longer than {PATH_CHARACTERS} characters; name a shorter one"
    if not text or not clean_path(text):
        return f"the path is empty; name the {owner}'s .py file or package folder"
    if any(not character.isprintable() for character in text):
        return "the path holds a control character; write it without"
    if text.startswith(("/", "~")):
        return f"the path must be relative to the {owner}'s folder"
    if "\\" in text:
        return "folders are separated by / in this file"
    if ".." in parts:
        return f"the path must stay inside the {owner}'s folder; write it without .."
    if "__pycache__" in parts:
        return "nothing is loaded from __pycache__; name the source"
    last = clean_path(text).rpartition("/")[2]
    if "." in last and not last.endswith(".py"):
        return "a .py file or a package folder is needed"
    return "the path has no file name before .py" if last == ".py" else None


def type_fault(text: str) -> str | None:
    """Say why a text cannot be the name of a plugin's class, or ``None`` when it can; empty means no class."""
    if not text or (text.isidentifier() and not keyword.iskeyword(text)):
        return None
    return "a class of the module is named by its Python name alone, such as AcmePlugin"


def shared_fault(names: list[str]) -> str | None:
    """Say why a list cannot name shared distributions, or ``None`` when it can."""
    for name in names:
        if not _SHARED.fullmatch(name):
            return "each entry is the import name of a distribution, such as numpy"
    return None


def clean_path(text: str) -> str:
    """Return a relative path without empty and ``.`` parts."""
    return "/".join(part for part in text.split("/") if part not in ("", "."))
