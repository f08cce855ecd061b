"""What a program is given of a call: its arguments and its standard input. Pure; no shell ever sees any of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crystal.workspace.fence import Fence


class ArgumentRefused(Exception):
    """An argument cannot be given to the program. The message is one sentence that names it and the rule."""


def fence_arguments(
    arguments: Mapping[str, Any], names: tuple[str, ...], fence: Fence, permitted: frozenset[str]
) -> dict[str, Any]:
    """Return the arguments with every path made absolute and real; a path may be a text or one of a list of texts.

    :raises PathRefused: for a path that this call may not use.
    """
    fenced = dict(arguments)
    for name in names:
        value = fenced.get(name)
        if isinstance(value, str):
            fenced[name] = fence.admit(value, permitted, writing=True).real
        elif isinstance(value, list):
            fenced[name] = [
                fence.admit(each, permitted, writing=True).real if isinstance(each, str) else each for each in value
            ]
    return fenced


def bind_arguments(flags: Mapping[str, str], arguments: Mapping[str, Any]) -> list[str]:
    """Return the flags and values of a call, each an argument of its own, in the order of ``flags``.

    A value stands behind its flag as it is, also when it begins with a dash. ``true`` and ``false`` are words, each
    text of a list repeats the flag, and what is null or absent is left out.

    :param flags: flag by property of the schema.
    :raises ArgumentRefused: for any other value.
    """
    return [
        part for name, flag in flags.items() for value in _values(name, arguments.get(name)) for part in (flag, value)
    ]


def _values(name: str, value: Any) -> Iterator[str]:
    match value:
        case None:
            return
        case bool():
            yield "true" if value else "false"
        case int() | float():
            yield json.dumps(value)
        case str():
            yield _usable(name, value)
        case list() if all(isinstance(text, str) for text in value):
            yield from (_usable(name, text) for text in value)
        case _:
            raise ArgumentRefused(
                f"The argument '{name}' is {_kind(value)}, which no program can be given as an argument; "
                "it must be a text, a number, true, false, or a list of texts."
            )


def _usable(name: str, text: str) -> str:
    if "\0" in text:
        raise ArgumentRefused(f"The argument '{name}' holds a NUL character, which no program can be given.")
    return text


def _kind(value: Any) -> str:
    return "a list with more than texts in it" if isinstance(value, Sequence) else "an object"


def encode_input(arguments: Mapping[str, Any]) -> bytes:
    """Return the argument object as it stands on standard input: JSON in UTF-8 without a byte order mark."""
    return json.dumps(arguments, ensure_ascii=False).encode()
