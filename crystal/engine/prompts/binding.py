"""Bind the ``{{name}}`` tokens of a template, each text once. Knows neither whose values they are nor what they say."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import CoroutineType
from typing import TypeAlias

from crystal.host.isolation import name_fault
from crystal.types._frozen import Frozen

Value: TypeAlias = str | Callable[[], object]
"""A text, or what gives one; the latter may be the code of a plugin."""

_TOKEN = re.compile(r"\{\{([A-Za-z][A-Za-z0-9_]{0,63})\}\}")


class Bound(Frozen):
    """A bound template.

    :param faults: what is wrong with the values that could not be had, by lower-case name.
    """

    text: str
    faults: Mapping[str, str]


def bind(template: str, values: Mapping[str, Value]) -> Bound:
    """Put values in the place of the tokens of ``template``; what was put in is not looked through for tokens again.

    A token of another name stays as it is, and so does one whose value raises or is no text. A value is asked for once,
    however often its token stands there, and not at all when it stands nowhere.

    :param values: by lower-case name; tokens match them in any case.
    :raises KeyboardInterrupt: when a value raises it; everything else becomes a fault.
    """
    texts: dict[str, str] = {}
    faults: dict[str, str] = {}

    def insert(token: re.Match[str]) -> str:
        name = token[1].lower()
        if name not in texts and name not in faults and name in values:
            try:
                texts[name] = _text_of(values[name])
            except KeyboardInterrupt:
                raise
            except _NoText as fault:
                faults[name] = str(fault)
            except BaseException as error:
                # A plugin may raise anything, SystemExit included; its token must not end the turn.
                faults[name] = name_fault(error)
        return texts.get(name, token[0])

    return Bound(text=_TOKEN.sub(insert, template), faults=faults)


class _NoText(Exception):
    """What was returned is no text."""


def _text_of(value: Value) -> str:
    if isinstance(value, str):
        return value
    found = value()
    if isinstance(found, str):
        # A subclass may have methods of its own, which are not to run later.
        return str.__str__(found)
    if isinstance(found, CoroutineType):
        found.close()
    raise _NoText("returned nothing" if found is None else f"returned {type(found).__name__}, which is not a text")
