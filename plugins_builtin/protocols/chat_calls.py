"""Puts the tool calls of one chat answer together from their pieces. Pure.

Servers leave out ids, indexes or both, repeat them, send names whole, in pieces or in every piece, and arguments as
text, as an object or encoded twice. Nothing is lost and nothing is merged that the pieces tell apart.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from crystal.types.model import CallDelta
from crystal.wire.json_text import encode_json

_KNOWN_KEYS = frozenset({"index", "id", "type", "function"})


class _Call:
    """One call that is still growing."""

    __slots__ = ("arguments", "extras", "held_back", "id", "index", "key", "name")

    def __init__(self, key: str, call_id: str, index: int | None) -> None:
        self.key = key
        self.id = call_id
        self.index = index
        self.name = ""
        self.arguments = ""
        self.held_back = False
        self.extras: dict[str, Any] = {}

    def has_whole_arguments(self) -> bool:
        return self.arguments.rstrip().endswith("}") and _is_object(self.arguments)


class CallAssembly:
    """The calls of one answer, in the order in which they were opened.

    :param state_tag: wraps the unknown keys of a call into the state that a replay sends back.
    """

    def __init__(self, state_tag: str) -> None:
        self._state_tag = state_tag
        self._calls: list[_Call] = []

    def __bool__(self) -> bool:
        return bool(self._calls)

    def feed(self, pieces: Any) -> list[CallDelta]:
        """Take the ``tool_calls`` list of one chunk; what is no list of objects is ignored."""
        deltas = []
        touched: set[str] = set()
        for piece in pieces if isinstance(pieces, list) else ():
            if isinstance(piece, dict):
                function = piece.get("function")
                delta = self._take(piece, function if isinstance(function, dict) else {}, touched)
                if delta is not None:
                    deltas.append(delta)
        return deltas

    def close(self) -> list[CallDelta]:
        """Return what could only be decided at the end: arguments encoded twice, unknown keys to keep."""
        deltas = []
        for call in self._calls:
            arguments = _decoded_once(call.arguments) if call.held_back else ""
            state = {self._state_tag: call.extras} if call.extras else None
            if arguments or state:
                deltas.append(CallDelta(key=call.key, arguments=arguments, state=state))
        return deltas

    def are_complete(self) -> bool:
        """Whether the arguments of every call are empty or one whole JSON object."""
        return all(not call.arguments.strip() or _is_object(_decoded_once(call.arguments)) for call in self._calls)

    def _take(self, piece: Mapping[str, Any], function: Mapping[str, Any], touched: set[str]) -> CallDelta | None:
        call_id = piece["id"] if isinstance(piece.get("id"), str) else ""
        index = piece["index"] if isinstance(piece.get("index"), int) else None
        name = function["name"] if isinstance(function.get("name"), str) else ""
        arguments = _argument_text(function.get("arguments"))
        call = self._find(call_id, index, name, arguments, touched)
        is_new = call is None
        if call is None:
            call = _Call(str(len(self._calls)), call_id, index)
            self._calls.append(call)
        touched.add(call.key)
        told_id, told_name = call.id, call.name
        call.id = call.id or call_id
        call.name = _grown_name(call.name, name)
        call.extras.update({key: value for key, value in piece.items() if key not in _KNOWN_KEYS and value is not None})
        if not call.arguments and arguments.lstrip().startswith('"'):
            call.held_back = True
        call.arguments += arguments
        shown = "" if call.held_back else arguments
        if not (is_new or shown or call.id != told_id or call.name != told_name):
            return None
        return CallDelta(
            key=call.key,
            call_id=call.id if is_new or call.id != told_id else "",
            name=call.name if call.name != told_name else "",
            arguments=shown,
        )

    def _find(self, call_id: str, index: int | None, name: str, arguments: str, touched: set[str]) -> _Call | None:
        """Return the open call that a piece continues, or ``None`` when it opens one."""
        if call_id:
            return self._by_id(call_id, index, name)
        if index is not None:
            candidates = [call for call in self._calls if call.index == index] or [
                call for call in self._calls[-1:] if call.index is None and not name
            ]
            call = candidates[-1] if candidates else None
        else:
            call = self._calls[-1] if self._calls else None
            if call is not None and name and call.key in touched:
                return None
        if call is None or _starts_over(call, name, arguments):
            return None
        return call

    def _by_id(self, call_id: str, index: int | None, name: str) -> _Call | None:
        for call in reversed(self._calls):
            if call.id == call_id and (index is None or call.index is None or call.index == index):
                return call
        for call in reversed(self._calls):
            # An id that comes late belongs to the call that was opened without one.
            if not call.id and call.index == index:
                return call if not name or (not call.arguments and call.name in ("", name)) else None
        return None


def _starts_over(call: _Call, name: str, arguments: str) -> bool:
    """Whether a piece without an id of its own begins another call instead of continuing ``call``."""
    if not name or not call.arguments:
        return False
    if call.name and name != call.name:
        return True
    return arguments.lstrip().startswith("{") and call.has_whole_arguments()


def _grown_name(name: str, piece: str) -> str:
    """Join a name that comes whole, repeated, growing or in pieces."""
    if not piece or piece == name:
        return name
    return piece if piece.startswith(name) else name + piece


def _argument_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else encode_json(value).decode()


def _decoded_once(text: str) -> str:
    """Return the object text inside a JSON string that holds one, else ``text``."""
    try:
        inner = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return inner if isinstance(inner, str) and _is_object(inner) else text


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
