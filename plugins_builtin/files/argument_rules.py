"""Checks the arguments of a call against a tool's own schema, for calls that no host has checked before.

Understands the few words that the schemas of the built-in tools use; it is no JSON Schema validator.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crystal.types.tools import ToolCall, ToolDefinition
from plugins_builtin.files.outcome import CallRefused

_TYPES: dict[str, tuple[type, str]] = {
    "string": (str, "a string"),
    "integer": (int, "a whole number"),
    "boolean": (bool, "true or false"),
}


def require_arguments(call: ToolCall, definition: ToolDefinition) -> None:
    """Refuse a call whose arguments break the tool's schema.

    :raises CallRefused: naming the argument and the rule it breaks.
    """
    properties: Mapping[str, Any] = definition.schema["properties"]
    for name in definition.schema.get("required", ()):
        if name not in call.arguments:
            raise CallRefused(f"{definition.name} needs the argument {name}; give it.")
    for name, value in call.arguments.items():
        if name not in properties:
            known = ", ".join(properties)
            raise CallRefused(f"{definition.name} has no argument {name[:100]!r}; it takes {known}.")
        _require(name, value, properties[name])


def _require(name: str, value: object, rule: Mapping[str, Any]) -> None:
    expected, words = _TYPES[rule["type"]]
    if not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool):
        raise CallRefused(f"The argument {name} must be {words}, not {_kind(value)}.")
    if isinstance(value, int) and not isinstance(value, bool):
        least, most = rule.get("minimum"), rule.get("maximum")
        if least is not None and value < least:
            raise CallRefused(f"The argument {name} is {_number(value)}, but it must be {least} or more.")
        if most is not None and value > most:
            raise CallRefused(f"The argument {name} is {_number(value)}, but it must be {most} or less.")


def _number(value: int) -> str:
    """Return a number as a sentence holds it; the interpreter refuses to write out one of thousands of digits."""
    return str(value) if value.bit_length() < 200 else "a number of many digits"


def _kind(value: object) -> str:
    names = {bool: "true or false", int: "a number", float: "a number with a fraction", str: "a string"}
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return "an object"
    return names.get(type(value), "a list" if isinstance(value, (list, tuple)) else type(value).__name__)
