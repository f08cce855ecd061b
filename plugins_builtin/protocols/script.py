"""The script of the ``scripted`` protocol: its shape, and the checks that name file, round and field of a fault.

Checked by plain code: the demo starts faster than a schema library is imported.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import inf
from typing import Any

from crystal.types._frozen import Frozen
from crystal.types._readonly import EMPTY, read_only
from crystal.types.model import FinishReason, Usage

LONGEST_DELAY_MS = 3_600_000.0
"""An hour; a longer wait before a delta is a mistake in the unit."""

PURPOSES = ("turn", "review", "compaction", "side", "topic", "plugin")


class ScriptError(ValueError):
    """A script cannot be read; the message is one sentence that names the file, the line or round, and the
    field.
    """


class ScriptCall(Frozen):
    """A tool call to make.

    :param arguments: the JSON text as the model would send it.
    :param call_id: empty when the script leaves it to the player.
    """

    name: str
    arguments: str
    call_id: str = ""


class ScriptExpect(Frozen):
    """What the request must hold.

    :param contains: texts that must occur somewhere in its items.
    :param tools: names that must be offered.
    :param last_result: texts that the last tool result must contain.
    """

    contains: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    last_result: tuple[str, ...] = ()


class ScriptFault(Frozen):
    """A failure to play.

    :param status: HTTP status; ``None`` breaks a stream that began well.
    :param retry_after: value of the header, empty for none.
    :param after: deltas of the round that are sent first.
    """

    status: int | None = None
    body: str = ""
    retry_after: str = ""
    after: int = 0


class ScriptRound(Frozen):
    """One answer.

    :param number: its place in the file, from 1.
    :param chunk: characters a delta; 0 sends each text whole.
    :param delay: seconds before every delta.
    """

    number: int
    purpose: str = "turn"
    text: str = ""
    reasoning: str = ""
    calls: tuple[ScriptCall, ...] = ()
    usage: Usage | None = None
    finish: FinishReason | None = None
    chunk: int = 0
    delay: float = 0.0
    expect: ScriptExpect | None = None
    fault: ScriptFault | None = None


class Script(Frozen):
    """A checked script.

    :param source: where it came from, for messages.
    :param value: the JSON it was read from.
    """

    source: str
    rounds: tuple[ScriptRound, ...]
    value: Mapping[str, Any] = EMPTY


def parse_script(text: str, source: str) -> Script:
    """Read the text of a script file.

    :param source: the file's name, for messages.
    :raises ScriptError: when it is not JSON or not a script.
    """
    try:
        value = json.loads(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        raise ScriptError(f"{source}, line {error.lineno}, column {error.colno}: {error.msg}.") from None
    except ValueError:
        raise ScriptError(f"{source}: it holds a number with more digits than can be read.") from None
    except RecursionError:
        raise ScriptError(f"{source}: the JSON is nested too deeply to be read.") from None
    return check_script(value, source)


def check_script(value: Any, source: str) -> Script:
    """Turn the JSON of a script into rounds.

    :raises ScriptError: when it is not a script.
    """
    if not isinstance(value, Mapping) or not isinstance(value.get("rounds"), (list, tuple)):
        raise ScriptError(f'{source}: a script is an object with a list named "rounds".')
    rounds = tuple(_round(entry, number, source) for number, entry in enumerate(value["rounds"], 1))
    return Script(source=source, rounds=rounds, value=read_only(value))


class _Fields:
    """The fields of one object of a script; taking one checks its type."""

    def __init__(self, value: Any, place: str, known: tuple[str, ...]) -> None:
        if not isinstance(value, Mapping):
            raise ScriptError(f"{place} must be an object.")
        for name in value:
            if name not in known:
                # Only a faulty script pays for this import.
                from difflib import get_close_matches

                near = get_close_matches(str(name), known, 1)
                hint = f'did you mean "{near[0]}"' if near else f"known are {', '.join(known)}"
                raise ScriptError(f'{place} has an unknown field "{name}"; {hint}.')
        self._value = value
        self.place = place

    def text(self, name: str) -> str:
        return str(self._take(name, (str,), "a string", ""))

    def whole(self, name: str, least: int = 0, most: float = inf) -> int:
        number = self._take(name, (int,), f"a whole number of at least {least}", 0)
        return int(self._between(name, number, least, most))

    def number(self, name: str, most: float) -> float:
        number = self._take(name, (int, float), "a number of at least 0", 0)
        return float(self._between(name, number, 0, most))

    def choice(self, name: str, allowed: tuple[str, ...], default: str) -> str:
        value = self._value.get(name, default)
        if self.has(name) and value not in allowed:
            raise ScriptError(f'{self.place}: "{name}" must be one of {", ".join(allowed)}, not {_shown(value)}.')
        return str(value)

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._value.get(name, ())
        texts = (value,) if isinstance(value, str) else value
        if not isinstance(texts, (list, tuple)) or not all(isinstance(text, str) for text in texts):
            raise self._wrong(name, "a string or a list of strings", value)
        return tuple(texts)

    def entries(self, name: str) -> list[Any]:
        return list(self._take(name, (list, tuple), "a list", ()))

    def raw(self, name: str, kinds: tuple[type, ...], wanted: str, default: Any) -> Any:
        return self._take(name, kinds, wanted, default)

    def has(self, name: str) -> bool:
        return name in self._value

    def inner(self, name: str, known: tuple[str, ...]) -> _Fields:
        return _Fields(self._value[name], f'{self.place}: "{name}"', known)

    def _take(self, name: str, kinds: tuple[type, ...], wanted: str, default: Any) -> Any:
        if name not in self._value:
            return default
        value = self._value[name]
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise self._wrong(name, wanted, value)
        return value

    def _between(self, name: str, number: Any, least: int, most: float) -> Any:
        if self.has(name) and not least <= number <= most:
            wanted = f"a number of at least {least}" + (f" and at most {most}" if most < inf else "")
            raise self._wrong(name, wanted, number)
        return number

    def _wrong(self, name: str, wanted: str, value: Any) -> ScriptError:
        return ScriptError(f'{self.place}: "{name}" must be {wanted}, not {_shown(value)}.')


_ROUND_FIELDS = (
    "for",
    "text",
    "reasoning",
    "toolCalls",
    "usage",
    "finish",
    "chunk",
    "delayMs",
    "expect",
    "error",
)


def _round(value: Any, number: int, source: str) -> ScriptRound:
    fields = _Fields(value, f"{source}, round {number}", _ROUND_FIELDS)
    finish = fields.choice("finish", tuple(reason.value for reason in FinishReason), "")
    return ScriptRound(
        number=number,
        purpose=fields.choice("for", PURPOSES, "turn"),
        text=fields.text("text"),
        reasoning=fields.text("reasoning"),
        calls=tuple(_call(entry, fields.place, at) for at, entry in enumerate(fields.entries("toolCalls"), 1)),
        usage=_usage(fields) if fields.has("usage") else None,
        finish=FinishReason(finish) if finish else None,
        chunk=fields.whole("chunk", least=1),
        delay=fields.number("delayMs", LONGEST_DELAY_MS) / 1000,
        expect=_expect(fields) if fields.has("expect") else None,
        fault=_fault(fields) if fields.has("error") else None,
    )


def _call(value: Any, place: str, number: int) -> ScriptCall:
    fields = _Fields(value, f"{place}, tool call {number}", ("name", "arguments", "id"))
    if not fields.text("name"):
        raise ScriptError(f'{fields.place} has no "name".')
    arguments = fields.raw("arguments", (Mapping, str), "an object or raw text", {})
    return ScriptCall(
        name=fields.text("name"),
        arguments=arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False),
        call_id=fields.text("id"),
    )


def _usage(round_fields: _Fields) -> Usage:
    fields = round_fields.inner("usage", ("input", "output", "cached"))
    return Usage(input=fields.whole("input"), output=fields.whole("output"), cached=fields.whole("cached"))


def _expect(round_fields: _Fields) -> ScriptExpect:
    fields = round_fields.inner("expect", ("contains", "tools", "lastResult"))
    return ScriptExpect(
        contains=fields.texts("contains"), tools=fields.texts("tools"), last_result=fields.texts("lastResult")
    )


def _fault(round_fields: _Fields) -> ScriptFault:
    fields = round_fields.inner("error", ("status", "body", "retryAfter", "after"))
    body = fields.raw("body", (Mapping, str), "an object or raw text", "")
    status = fields.whole("status", least=300, most=599) if fields.has("status") else None
    return ScriptFault(
        status=status,
        body=body if isinstance(body, str) else json.dumps(body, ensure_ascii=False),
        retry_after=str(fields.raw("retryAfter", (int, float, str), "seconds or a date", "")),
        after=fields.whole("after"),
    )


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."
