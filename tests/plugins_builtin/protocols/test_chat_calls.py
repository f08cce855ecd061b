"""Calls are put together from whatever pieces a server sends (G23, G24, G51)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.types.model import CallDelta
from plugins_builtin.protocols.chat_calls import CallAssembly


def piece(arguments: Any = "", **keys: Any) -> dict[str, Any]:
    name = keys.pop("name", None)
    return {**keys, "function": {"arguments": arguments} | ({} if name is None else {"name": name})}


def assemble(*chunks: Any) -> list[tuple[str, str, str]]:
    """Return id, name and arguments of every call, put together by the rules of :class:`CallDelta` alone."""
    assembly = CallAssembly("tag")
    calls: dict[str, list[str]] = {}
    deltas: list[CallDelta] = []
    for chunk in chunks:
        deltas += assembly.feed(chunk)
    for delta in [*deltas, *assembly.close()]:
        call = calls.setdefault(delta.key, ["", "", ""])
        call[0] = call[0] or delta.call_id
        call[1] = delta.name or call[1]
        call[2] += delta.arguments
    return [(call_id, name, arguments) for call_id, name, arguments in calls.values()]


A, B = '{"path":"a"}', '{"path":"b"}'
TWO = [("a", "read", A), ("b", "grep", B)]
NAMELESS_TWO = [("", "read", A), ("", "grep", B)]


@pytest.mark.parametrize(
    ("chunks", "calls"),
    [
        pytest.param([[piece(A, id="a", name="read"), piece(B, id="b", name="grep")]], TWO, id="one delta, no index"),
        pytest.param(
            [[piece('{"pa', id="a", name="read")], [piece("th")], [piece('":"a"}')]],
            TWO[:1],
            id="no index, id only first",
        ),
        pytest.param(
            [
                [piece("", id="a", index=0, name="read"), piece("", id="b", index=1, name="grep")],
                [piece('{"path":', index=1)],
                [piece('{"path":', index=0)],
                [piece('"b"}', index=1), piece('"a"}', index=0)],
            ],
            TWO,
            id="interleaved",
        ),
        pytest.param(
            [[piece(A, id="a", index=0, name="read")], [piece(B, id="b", index=0, name="grep")]],
            TWO,
            id="same index, other ids",
        ),
        pytest.param(
            [
                [piece('{"path', id="a", index=0, name="read")],
                [piece('":"a"}', id="a", index=0, name="read")],
            ],
            TWO[:1],
            id="id in every piece",
        ),
        pytest.param(
            [[piece(A, id="x", index=0, name="read")], [piece(B, id="x", index=1, name="grep")]],
            [("x", "read", A), ("x", "grep", B)],
            id="one id, other indexes",
        ),
        pytest.param(
            [[piece('{"path', index=0, name="read", id="")], [piece('":"a"}', index=0, id="a")]],
            TWO[:1],
            id="id comes late",
        ),
        pytest.param(
            [[piece('{"path', id="a", index=0)], [piece('":"a"}', index=0, name="read", id=None, type="")]],
            TWO[:1],
            id="name comes late",
        ),
        pytest.param([[piece(A, name="read"), piece(B, name="grep")]], NAMELESS_TWO, id="no id, no index, one delta"),
        pytest.param([[piece(A, name="read")], [piece(B, name="grep")]], NAMELESS_TWO, id="no id, no index"),
        pytest.param(
            [[piece(A, name="read")], [piece(B, name="read")]],
            [("", "read", A), ("", "read", B)],
            id="no id, no index, same tool",
        ),
        pytest.param(
            [[piece(A, index=0, name="read")], [piece(B, index=0, name="grep")]],
            NAMELESS_TWO,
            id="index always 0, no id",
        ),
        pytest.param(
            [[piece(None, name="read"), piece(None, name="read")]],
            [("", "read", ""), ("", "read", "")],
            id="two calls without arguments in one delta",
        ),
        pytest.param(
            [[piece('{"a":', index=0, name="read")], [piece('{"b":1}}', index=0, name="read")]],
            [("", "read", '{"a":{"b":1}}')],
            id="name in every piece, object inside",
        ),
        pytest.param(
            [[piece('{"path', id="a", name="read")], [piece('":"a"}', index=0)]],
            TWO[:1],
            id="index comes late",
        ),
    ],
)
def test_nothing_is_lost_and_nothing_is_merged(chunks: list[Any], calls: list[tuple[str, str, str]]) -> None:
    assert assemble(*chunks) == calls


@pytest.mark.parametrize(
    "names",
    [["read", "read", "read"], ["re", "ad"], ["read", ""], ["read", None], ["r", "re", "read"], ["", "read"]],
)
@pytest.mark.parametrize("keys", [{"index": 0}, {"id": "a"}, {"id": "a", "index": 0}, {}])
def test_a_name_may_come_whole_repeated_or_in_pieces(names: list[str | None], keys: dict[str, Any]) -> None:
    [(_, name, _)] = assemble(*[[{**keys, "function": {"name": name}}] for name in names])
    assert name == "read"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("", ""),
        (None, ""),
        ({}, "{}"),
        ({"path": "é"}, '{"path":"é"}'),
        ([1], "[1]"),
        ('{"path": "a', '{"path": "a'),
        ("{}{}", "{}{}"),
        ('"str"', '"str"'),
        ('"{\\"path\\": \\"a\\"}"', '{"path": "a"}'),
        ('"{\\"path', '"{\\"path'),
        ("  ", "  "),
    ],
)
def test_arguments_reach_the_engine_as_they_came(arguments: Any, text: str) -> None:
    assert assemble([piece(arguments, id="a", name="read")]) == [("a", "read", text)]


def test_arguments_encoded_twice_are_decoded_once_when_they_come_in_pieces() -> None:
    text = json.dumps(A)
    chunks = [[piece(letter, index=0, name="read" if at == 0 else None)] for at, letter in enumerate(text)]
    assert assemble(*chunks) == [("", "read", A)]


@pytest.mark.parametrize("pieces", [None, {}, "x", [None], [1], ["x"], []])
def test_what_is_no_list_of_calls_is_ignored(pieces: Any) -> None:
    assert assemble(pieces) == []


@pytest.mark.parametrize("function", [None, "read", [], {}])
def test_a_call_without_a_function_is_still_a_call_to_answer(function: Any) -> None:
    assert assemble([{"id": "a", "function": function}]) == [("a", "", "")]


def test_unknown_keys_are_kept_for_the_replay() -> None:
    assembly = CallAssembly("tag")
    extra = {"google": {"thought_signature": "Ep0B"}}
    assembly.feed([piece(A, id="a", name="read", type="function", extra_content=extra)])
    assert assembly.close() == [CallDelta(key="0", state={"tag": {"extra_content": extra}})]


@pytest.mark.parametrize(("text", "complete"), [(A, True), ("", True), ("{}{}", False), ('{"a', False)])
def test_completeness_is_seen_from_the_arguments(text: str, complete: bool) -> None:
    assembly = CallAssembly("tag")
    assembly.feed([piece(text, id="a", name="read")])
    assert assembly.are_complete() is complete


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["read", "grep"]), st.dictionaries(st.text(max_size=4), st.text(max_size=9)))),
    st.randoms(use_true_random=False),
    st.booleans(),
)
def test_calls_with_ids_or_indexes_survive_any_interleaving(
    calls: list[tuple[str, dict[str, str]]], random: Any, has_ids: bool
) -> None:
    expected, queues = [], []
    for index, (name, arguments) in enumerate(calls):
        text = json.dumps(arguments)
        keys: dict[str, Any] = {"index": index} | ({"id": f"id{index}"} if has_ids else {})
        cut = random.randint(0, len(text))
        queues.append(
            [
                [piece("", name=name, **keys)],
                [piece(text[:cut], index=index)],
                [piece(text[cut:], index=index)],
            ]
        )
        expected.append((keys.get("id", ""), name, text))
    chunks = [queue.pop(0) for queue in queues]
    while any(queues):
        chunks.append(random.choice([queue for queue in queues if queue]).pop(0))
    assert assemble(*chunks) == expected
