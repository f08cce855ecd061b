"""Turns pydantic's findings about a home file into our sentences. Imported by the ``*_schema`` modules only.

Values are quoted in a sentence only where they cannot be a key.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, WrapValidator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from crystal.store.json_files import JsonFile, JsonPath, dotted, kind

_SECRET_FIELDS = {"apiKey", "apiKeyEnvironment", "headers"}
_LONGEST_QUOTE = 60
_EXPECTED = {
    "string_type": "a text",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}


class FileSchema(BaseModel):
    """Base of the models of home files: camelCase names, no coercion, unknown keys kept for the notes."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="allow",
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )


def expect(words: str) -> WrapValidator:
    """Annotate a field with what its error says was expected, such as ``a positive integer``."""

    def check(value: Any, handler: Any) -> Any:
        try:
            return handler(value)
        except ValidationError as error:
            raise PydanticCustomError("expected", "{words}", {"words": words}) from error

    return WrapValidator(check)


def validate_file(model: type[BaseModel], file: JsonFile, tags: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Check a file against a model and return one text for each unknown key.

    :param tags: words that the model's unions put into a place and the file does not have.
    :raises HomeFileError: for the first fault.
    """
    try:
        checked = model.model_validate(file.value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=True)[0]
        place = tuple(part for part in first["loc"] if part not in tags)
        file.refuse(place, _sentence(first, place))
    found = [(file.line(place) or 0, place, known) for place, known in _unknown_keys(checked, ())]
    found.sort(key=lambda one: one[0])
    return tuple(_unknown(file, line, place, known) for line, place, known in found)


def _sentence(fault: Any, place: JsonPath) -> str:
    if fault["type"] == "missing":
        return "this field is required"
    if fault["type"] == "refused":
        return str(fault["msg"])
    own_words = fault["ctx"]["words"] if fault["type"] == "expected" else ""
    expected = own_words or _EXPECTED.get(fault["type"], "another value")
    return f"expected {expected}, found {_quote(fault['input'], place)}"


def _quote(value: Any, place: JsonPath) -> str:
    if not isinstance(value, str | int | float) or not _SECRET_FIELDS.isdisjoint(place):
        return kind(value)
    quoted = json.dumps(value, ensure_ascii=False)
    return kind(value) if len(quoted) > _LONGEST_QUOTE or "@" in quoted else quoted


def _unknown_keys(value: Any, place: JsonPath) -> Iterator[tuple[JsonPath, list[str]]]:
    if isinstance(value, BaseModel):
        fields = type(value).model_fields
        for key in value.model_extra or ():
            yield (*place, key), [field.alias or name for name, field in fields.items()]
        for name, field in fields.items():
            inner = place if name == "root" else (*place, field.alias or name)
            yield from _unknown_keys(getattr(value, name), inner)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _unknown_keys(item, (*place, key))
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from _unknown_keys(item, (*place, position))


def _unknown(file: JsonFile, line: int, place: JsonPath, known: list[str]) -> str:
    import difflib

    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(str(place[-1]).lower(), by_lower, n=1)
    hint = f"; did you mean {by_lower[near[0]]}?" if near else ""
    return f"{file.path.name}, line {line}: unknown field {dotted(place)}; it is kept and ignored{hint}"
