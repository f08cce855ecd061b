"""``on_tool_call``: the same call id, a name of the current catalog, and arguments that JSON can hold.

The rule is stated here anew, from the words of the hook's documentation.
"""

from __future__ import annotations

import json
import math
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.hookspecs.tool import accept_tool_call
from crystal.types._readonly import ReadOnlyDict, ReadOnlyError, read_only
from crystal.types.notes import NoteCode
from crystal.types.tools import ToolCall
from tests.hookspecs.replies import REFUSED, REPLYING, ReplyingHost, judge

CATALOG = frozenset(("read", "bash", "grep"))
JUNK = (7, "text", ["read"], {"id": "c1", "name": "read"}, object(), ("c1", "read", {}))

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
json_objects = st.dictionaries(st.text(max_size=3), json_values, max_size=3)
strangers = st.sampled_from((math.nan, math.inf, -math.inf, b"bytes", {1, 2}, object(), 1j, {1: "one"}, {None: 1}))


@st.composite
def arguments_of_a_plugin(draw: st.DrawFn) -> Any:
    """What a plugin might give as arguments: JSON objects mostly, some with a stranger somewhere inside."""
    value: Any = draw(json_objects)
    match draw(st.integers(0, 9)):
        case 0:
            return draw(st.sampled_from((None, 7, "{}", [], [("a", 1)])))
        case 1:
            return {**value, "spoilt": draw(strangers)}
        case 2:
            return {**value, "deep": [{"down": [draw(strangers)]}]}
        case 3:
            return MappingProxyType(value)
        case 4:
            return read_only(value)
    return value


@st.composite
def replies(draw: st.DrawFn, call: ToolCall) -> Any:
    """What a hook might return for ``call``."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from(JUNK))
    return ToolCall(
        id=draw(st.sampled_from((call.id, call.id, call.id, "another", "", 7))),
        name=draw(st.sampled_from((call.name, call.name, "bash", "grep", "removed", "READ", "", 7))),
        arguments=call.arguments if draw(st.integers(0, 4)) == 0 else draw(arguments_of_a_plugin()),
    )


calls = st.builds(
    ToolCall,
    id=st.sampled_from(("c1", "c2")),
    name=st.sampled_from(("read", "bash", "removed")),
    arguments=json_objects.map(read_only),
)


def is_json_object(arguments: Any) -> bool:
    """Say whether a round trip through JSON text gives the same object back."""
    if not isinstance(arguments, (dict, MappingProxyType)):
        return False
    try:
        return bool(json.loads(json.dumps(dict(arguments), allow_nan=False)) == dict(arguments))
    except (TypeError, ValueError):
        return False


def is_allowed(call: ToolCall, replacement: Any) -> bool:
    """The rule: a ToolCall of the same id, whose name is the old one or in the catalog, with JSON arguments."""
    return (
        isinstance(replacement, ToolCall)
        and replacement.id == call.id
        and (replacement.name == call.name or replacement.name in CATALOG)
        and is_json_object(replacement.arguments)
    )


def as_plain(call: ToolCall) -> tuple[str, str, dict[str, Any]]:
    """The call with arguments that compare as plain values."""
    return call.id, call.name, dict(call.arguments)


def containers(value: Any) -> list[Any]:
    """Every object and array inside a JSON value, itself included."""
    if isinstance(value, dict):
        return [value, *(found for entry in value.values() for found in containers(entry))]
    if isinstance(value, (list, tuple)):
        return [value, *(found for entry in value for found in containers(entry))]
    return []


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_replacement_is_accepted_exactly_when_the_rule_allows_it(data: st.DataObject) -> None:
    call = data.draw(calls)
    replacement = data.draw(replies(call))
    outcome = judge(accept_tool_call, call, replacement, CATALOG)
    if is_allowed(call, replacement):
        assert as_plain(outcome) == as_plain(replacement)
    else:
        assert outcome == REFUSED


@settings(max_examples=100, deadline=None)
@given(json_objects)
def test_accepted_arguments_are_read_only_all_the_way_down(arguments: dict[str, Any]) -> None:
    call = ToolCall(id="c1", name="read")
    accepted = accept_tool_call(call, ToolCall(id="c1", name="read", arguments=arguments), CATALOG)
    for container in containers(accepted.arguments):
        with pytest.raises(ReadOnlyError):
            container.clear()


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_the_host_runs_what_was_accepted_and_otherwise_what_stood(replying: ReplyingHost, data: st.DataObject) -> None:
    call = data.draw(calls)
    replacement = data.draw(replies(call))
    outcome, notes = replying.run({"on_tool_call": replacement}, lambda host: host.hooks.on_tool_call(call, CATALOG))
    allowed = is_allowed(call, replacement)
    assert as_plain(outcome) == as_plain(replacement if allowed else call)
    assert replying.witness.shown["on_tool_call"] == outcome
    assert [(note.code, note.source) for note in notes] == ([] if allowed else [(NoteCode.CONTRACT_REFUSED, REPLYING)])


def test_a_list_that_the_hook_kept_hold_of_does_not_change_an_accepted_call() -> None:
    kept = ["one"]
    own = ReadOnlyDict({"paths": kept})
    for arguments in ({"paths": kept}, own, MappingProxyType({"paths": kept})):
        accepted = accept_tool_call(
            ToolCall(id="c1", name="read"), ToolCall(id="c1", name="read", arguments=arguments), CATALOG
        )
        kept.append("two")
        assert accepted.arguments == {"paths": ["one"]}
        kept.remove("two")


def test_arguments_that_hold_themselves_are_skipped_with_a_note(replying: ReplyingHost) -> None:
    endless: dict[str, Any] = {}
    endless["again"] = endless
    call = ToolCall(id="c1", name="read")
    outcome, notes = replying.run(
        {"on_tool_call": ToolCall(id="c1", name="read", arguments=endless)},
        lambda host: host.hooks.on_tool_call(call, CATALOG),
    )
    assert outcome == call
    assert [note.source for note in notes] == [REPLYING]


def test_a_call_that_another_hook_took_from_the_catalog_keeps_its_name() -> None:
    call = ToolCall(id="c1", name="no-longer-there")
    changed = ToolCall(id="c1", name="no-longer-there", arguments=read_only({"a": 1}))
    assert accept_tool_call(call, changed, CATALOG) == changed
