"""Arguments of a tool call: from the model's JSON text to a checked, read-only object, or a sentence for the model."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from crystal.types._readonly import EMPTY, ReadOnlyDict, read_only

_HALF_ESCAPED = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
"""Without one of these no half of a surrogate pair can be in the arguments, and most calls have none."""

DEEPEST = 100
"""Levels of objects and arrays; more is a runaway model, and deep values exhaust the interpreter's stack."""

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_UNDERSTOOD = frozenset(
    ("type", "properties", "required", "additionalProperties", "items", "enum", "description", "title", "default")
)


class ArgumentsFault(Exception):
    """The arguments cannot be used. The message is a sentence for the model."""


def parse_arguments(text: str) -> ReadOnlyDict:
    """Parse the JSON text of a call; blank text and ``null`` mean no arguments.

    :raises ArgumentsFault: for broken JSON or anything but an object; saying where.
    """
    if not text.strip():
        return EMPTY
    try:
        value = _loads(text)
        if isinstance(value, str):
            # Some servers encode the object twice.
            value = _loads(value)
    except (ValueError, RecursionError) as error:
        raise ArgumentsFault(f"The arguments are not valid JSON: {error}. The call was not run.") from error
    if value is None:
        return EMPTY
    if not _is_shallow(value, DEEPEST):
        raise ArgumentsFault(f"The arguments are nested more than {DEEPEST} deep. The call was not run.")
    if not isinstance(value, dict):
        raise ArgumentsFault(f"The arguments are {_kind(value)}, not a JSON object. The call was not run.")
    if _HALF_ESCAPED.search(text):
        require_text(value)
    parsed: ReadOnlyDict = read_only(value)
    return parsed


def require_text(arguments: Mapping[str, Any]) -> None:
    """Make sure that every text is one: half of a surrogate pair could reach a file, a program or a store as another.

    :raises ArgumentsFault: naming the argument.
    """
    for name, value in arguments.items():
        try:
            json.dumps({name: value}, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            shown = name.encode("utf-8", "replace").decode()
            raise ArgumentsFault(
                f"The argument {shown!r} holds half of a surrogate pair, which is no character; write the character "
                "whole or leave it out. The call was not run."
            ) from None


def _loads(text: str) -> Any:
    return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is not a JSON value")


def _finite(word: str) -> float:
    number = float(word)
    if math.isinf(number):
        raise ValueError(f"{word} is larger than any number")
    return number


def _is_shallow(value: Any, levels: int) -> bool:
    if isinstance(value, dict):
        return levels > 0 and all(_is_shallow(entry, levels - 1) for entry in value.values())
    if isinstance(value, list):
        return levels > 0 and all(_is_shallow(entry, levels - 1) for entry in value)
    return True


def _kind(value: object) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), type(value).__name__)


def is_plainly_valid(schema: Any, value: Any) -> bool:
    """Whether ``value`` certainly satisfies ``schema``, judged by the few words that tool schemas mostly use.

    ``False`` means "ask jsonschema", which takes 0.1 s to import and is not needed while every call is well-formed.
    """
    if not isinstance(schema, Mapping) or not _UNDERSTOOD.issuperset(schema):
        return False
    kind = schema.get("type")
    if kind is not None:
        allowed = _TYPES.get(kind) if isinstance(kind, str) else None
        if allowed is None or not isinstance(value, allowed):
            return False
        if isinstance(value, bool) and kind != "boolean":
            return False
    if "enum" in schema:
        options = schema["enum"]
        if not isinstance(options, list) or not any(type(value) is type(one) and value == one for one in options):
            return False
    if isinstance(value, dict):
        return _is_plain_object(schema, value)
    if isinstance(value, list):
        items = schema.get("items")
        return items is None or all(is_plainly_valid(items, entry) for entry in value)
    return True


def _is_plain_object(schema: Mapping[str, Any], value: dict[str, Any]) -> bool:
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, Mapping) or not isinstance(required, (list, tuple)):
        return False
    if any(name not in value for name in required):
        return False
    others = schema.get("additionalProperties", True)
    if not isinstance(others, bool):
        return False
    return all(
        is_plainly_valid(properties[name], entry) if name in properties else others for name, entry in value.items()
    )


class ArgumentChecker:
    """Checks arguments against tool schemas; one full validator is built for a tool, when it is first needed."""

    def __init__(self) -> None:
        self._validators: dict[str, Callable[[Any], str | None]] = {}

    def fault(self, name: str, schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str | None:
        """Return a sentence on the first rule that ``arguments`` break, with its path, or ``None``.

        :raises SchemaUnusable: when the schema itself is broken.
        """
        if is_plainly_valid(schema, arguments):
            return None
        if name not in self._validators:
            self._validators[name] = _make_validator(name, schema)
        return self._validators[name](arguments)


class SchemaUnusable(Exception):
    """The schema of a tool is not a JSON Schema; its calls cannot be checked and are refused."""


def _make_validator(name: str, schema: Mapping[str, Any]) -> Callable[[Any], str | None]:
    import jsonschema
    from referencing import Registry

    from crystal.types._readonly import thaw

    plain = thaw(schema)
    validator_class = jsonschema.validators.validator_for(plain, default=jsonschema.Draft202012Validator)
    try:
        validator_class.check_schema(plain)
    except jsonschema.SchemaError as error:
        raise SchemaUnusable(f"The schema of the tool '{name}' is broken: {error.message}") from error
    # An empty registry: a reference to elsewhere is a fault of the schema, never a request of ours.
    validator = validator_class(plain, registry=Registry())

    def fault(arguments: Any) -> str | None:
        try:
            error = jsonschema.exceptions.best_match(validator.iter_errors(arguments))
        except Exception as failure:
            raise SchemaUnusable(
                f"The schema of the tool '{name}' cannot be applied: {type(failure).__name__}"
            ) from failure
        if error is None:
            return None
        return (
            f"The arguments of '{name}' break its schema at {error.json_path}: {error.message} "
            f"(rule: {error.validator}). The call was not run."
        )

    return fault
