"""A transcript becomes messages that a provider takes, whatever happened in it (G24, G26, G52)."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.types.items import ModelItem, SystemItem
from plugins_builtin.protocols.chat_messages import (
    EMPTY_RESULT,
    MISSING_RESULT,
    MessageDialect,
    opens_round,
    round_messages,
    safe_call_id,
    safe_tool_name,
    sendable_arguments,
    split_rounds,
    system_message,
)
from tests.plugins_builtin.protocols.transcripts import (
    ITEMS,
    PNG,
    calls,
    load_image,
    result,
    says,
    system,
    thinks,
    user,
)

TEXT_ONLY = MessageDialect(state_tag="tag")
WITH_IMAGES = MessageDialect(state_tag="tag", accepts_images=True)
IMAGE_PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AQID"}}


def messages(*items: ModelItem, dialect: MessageDialect = TEXT_ONLY) -> list[dict[str, Any]]:
    first = system_message(items)
    rounds = split_rounds([item for item in items if not isinstance(item, SystemItem)])
    rest = [
        message
        for number, one in enumerate(rounds, 1)
        for message in round_messages(one, dialect, load_image, is_last=number == len(rounds))
    ]
    return [first, *rest] if first else rest


def entry(call_id: str, arguments: str = "{}", name: str = "read") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_the_parts_of_one_answer_are_one_message() -> None:
    assert messages(system(), user("go"), thinks("hm"), says("Looking."), calls("c1"), result("c1"), says("Done.")) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "Looking.", "tool_calls": [entry("c1")]},
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
        {"role": "assistant", "content": "Done."},
    ]


def test_system_texts_are_one_message_and_the_first() -> None:
    got = messages(user("a"), system("one"), system(" "), says("b"), system("two"))
    assert got == [
        {"role": "system", "content": "one\n\ntwo"},
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
    ]
    assert messages(system(""), user("a")) == [{"role": "user", "content": "a"}]


def test_results_follow_in_call_order_then_images_then_what_the_operator_said() -> None:
    got = messages(
        calls("c1"),
        calls("c2"),
        calls("c3"),
        result("c3", "three"),
        result("c1", "one", PNG),
        user("and hurry"),
        result("c2", "two"),
        dialect=WITH_IMAGES,
    )
    assert got == [
        {"role": "assistant", "content": None, "tool_calls": [entry("c1"), entry("c2"), entry("c3")]},
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
        {"role": "tool", "tool_call_id": "c2", "content": "two"},
        {"role": "tool", "tool_call_id": "c3", "content": "three"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Images from the result of read:"},
                IMAGE_PART,
                {"type": "text", "text": "and hurry"},
            ],
        },
    ]


def test_texts_of_the_operator_in_a_row_are_one_message() -> None:
    assert messages(user("a"), user("b"), says("c")) == [
        {"role": "user", "content": "a\n\nb"},
        {"role": "assistant", "content": "c"},
    ]


def test_a_missing_result_is_made_up_and_a_stray_one_is_left_out() -> None:
    assert messages(calls("c1"), result("c9"), says("x"), result("c1")) == [
        {"role": "assistant", "content": None, "tool_calls": [entry("c1")]},
        {"role": "tool", "tool_call_id": "c1", "content": MISSING_RESULT},
        {"role": "assistant", "content": "x"},
    ]


def test_images_are_sent_only_to_a_model_that_sees() -> None:
    assert messages(user("look", PNG), dialect=WITH_IMAGES) == [
        {"role": "user", "content": [{"type": "text", "text": "look"}, IMAGE_PART]}
    ]
    [message] = messages(user("look", PNG))
    assert message["content"] == "look\n\n[image shot.png, image/png, 3 bytes: not shown]"


@pytest.mark.parametrize(
    ("outcome", "content"),
    [
        (result("c1", ""), EMPTY_RESULT),
        (result("c1", " \n"), EMPTY_RESULT),
        (result("c1", "no such file", failed=True), "Error: no such file"),
        (result("c1", "Error: no such file", failed=True), "Error: no such file"),
        (result("c1", "", failed=True), f"Error: {EMPTY_RESULT}"),
        (result("c1", "text  \n"), "text  \n"),
    ],
)
def test_a_result_is_never_empty_and_says_when_it_failed(outcome: ModelItem, content: str) -> None:
    assert messages(calls("c1"), outcome)[1]["content"] == content


def test_blank_blocks_are_left_out() -> None:
    got = messages(
        user("  "),
        says(""),
        calls("c1"),
        result("c1", ""),
        says("\n"),
        user("\t"),
        user("next"),
        thinks("hm"),
    )
    assert got == [
        {"role": "assistant", "content": None, "tool_calls": [entry("c1")]},
        {"role": "tool", "tool_call_id": "c1", "content": EMPTY_RESULT},
        {"role": "user", "content": "next"},
    ]


def test_a_last_answer_loses_its_trailing_space_and_an_earlier_one_does_not() -> None:
    assert messages(user("a"), says("b \n"))[-1]["content"] == "b"
    assert messages(user("a"), says("b \n"), user("c"))[1]["content"] == "b \n"


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("", "{}"),
        ("  ", "{}"),
        ("{}", "{}"),
        (' {"path": "a"} ', ' {"path": "a"} '),
        ('{"path": "a', "{}"),
        ("[1]", "{}"),
        ('"str"', "{}"),
        ("null", "{}"),
        ("{}{}", "{}"),
        ('{"a": NaN}', "{}"),
        ('{"a": -Infinity}', "{}"),
        ("[" * 100_000, "{}"),
    ],
)
def test_arguments_that_go_back_are_an_object_always(text: str, sent: str) -> None:
    assert sendable_arguments(text) == sent


@pytest.mark.parametrize("call_id", ["x" * 41, "", "fc_1|rs_2", "a b", "é", "call\n", "\ud83d", "x" * 450])
def test_an_id_of_another_provider_is_mapped_the_same_way_for_call_and_result(call_id: str) -> None:
    assistant, tool = messages(calls(call_id), result(call_id))
    sent = assistant["tool_calls"][0]["id"]
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,40}", sent)
    assert tool == {"role": "tool", "tool_call_id": sent, "content": "ok"}
    assert safe_call_id(call_id) == sent != safe_call_id(call_id + "1")


def test_two_calls_with_one_id_are_told_apart_with_their_results_in_order() -> None:
    assistant, first, second = messages(calls("c1"), calls("c1"), result("c1", "one"), result("c1", "two"))
    ids = [one["id"] for one in assistant["tool_calls"]]
    assert ids[0] == "c1" != ids[1]
    assert [(tool["tool_call_id"], tool["content"]) for tool in (first, second)] == [(ids[0], "one"), (ids[1], "two")]


def test_a_usual_id_is_sent_as_it_is() -> None:
    assert safe_call_id("call_00_Ab-9") == "call_00_Ab-9"


@pytest.mark.parametrize(
    ("name", "sent"), [("read", "read"), ("", "unknown"), ("a b/é", "a_b__"), ("x" * 99, "x" * 64)]
)
def test_a_name_the_model_made_up_does_not_lock_the_session(name: str, sent: str) -> None:
    assert safe_tool_name(name) == sent


def test_replay_data_goes_back_to_the_endpoint_that_gave_it_only() -> None:
    signature = {"extra_content": {"google": {"thought_signature": "Ep0B"}}, "id": "not this", "function": {}}
    details = [{"type": "reasoning.encrypted", "data": "x"}]
    items = (thinks("", {"tag": {"reasoning_details": details}}), calls("c1", state={"tag": signature}))
    [own, _] = messages(*items)
    assert own["reasoning_details"] == details
    assert own["tool_calls"] == [entry("c1") | {"extra_content": signature["extra_content"]}]
    [other, _] = messages(*items, dialect=MessageDialect(state_tag="another"))
    assert other == {"role": "assistant", "content": None, "tool_calls": [entry("c1")]}


def test_reasoning_text_goes_back_only_where_it_is_wanted() -> None:
    items = (user("a"), thinks("h"), thinks("m"), calls("c1"), result("c1"), says("b"))
    wanted = MessageDialect(state_tag="tag", replays_reasoning=True)
    with_reasoning = [message for message in messages(*items, dialect=wanted) if message["role"] == "assistant"]
    assert [message["reasoning_content"] for message in with_reasoning] == ["hm", ""]
    assert not any("reasoning_content" in message for message in messages(*items))


@settings(max_examples=100, deadline=None)
@given(st.lists(ITEMS, max_size=14), st.booleans())
def test_any_transcript_makes_a_request_that_a_strict_provider_takes(items: list[ModelItem], sees: bool) -> None:
    got = messages(*items, dialect=WITH_IMAGES if sees else TEXT_ONLY)
    for position, message in enumerate(got):
        follower = got[position + 1]["role"] if position + 1 < len(got) else None
        assert message["role"] != "system" or position == 0
        assert message["role"] == "tool" or message["role"] != follower
        if message["content"] is None:
            assert message["tool_calls"]
        elif isinstance(message["content"], str):
            assert message["content"].strip()
        else:
            assert all(part["type"] != "text" or part["text"].strip() for part in message["content"])
        entries = message.get("tool_calls", [])
        answered = [other["tool_call_id"] for other in got[position + 1 : position + 1 + len(entries)] if entries]
        assert answered == [one["id"] for one in entries]
        assert len(set(answered)) == len(answered)
        assert all(isinstance(json.loads(one["function"]["arguments"]), dict) for one in entries)
        if message["role"] == "tool":
            assert got[position - 1]["role"] in ("assistant", "tool")
    if got and got[-1]["role"] == "assistant":
        assert got[-1]["content"] == got[-1]["content"].rstrip()


@settings(max_examples=100, deadline=None)
@given(st.lists(ITEMS.filter(lambda item: not isinstance(item, SystemItem)), max_size=14))
def test_rounds_are_the_whole_transcript_and_begin_where_it_is_said(items: list[ModelItem]) -> None:
    rounds = split_rounds(items)
    assert [item for one in rounds for item in one] == items
    position = 0
    for one in rounds:
        assert opens_round(items, position)
        position += len(one)
