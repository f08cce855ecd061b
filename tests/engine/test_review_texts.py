"""What a reviewer is shown and which of its answers count."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.engine.approval.evidence import LONGEST_CALL, CallTooLong, Evidence, compose_review, select_evidence
from crystal.engine.approval.policy import Verdict
from crystal.engine.approval.verdict import parse_verdict
from crystal.types._readonly import read_only
from crystal.types.approval import Authority, Classification, Risk
from crystal.types.items import (
    AssistantItem,
    ModelItem,
    ReasoningItem,
    SystemItem,
    ToolCallItem,
    ToolResultItem,
    UserItem,
)
from crystal.types.tools import ToolCall

HOST = Classification(risk=Risk.WRITE)
FINAL = Classification(risk=Risk.PRIVILEGED, authority=Authority.NETWORK, summary="fetch", require_prompt=True)


def user(text: str) -> UserItem:
    return UserItem(id="u", text=text)


def result(text: str) -> ToolResultItem:
    return ToolResultItem(id="r", call_id="c", name="read", text=text)


def texts(items: list[ModelItem], room: int) -> list[str]:
    return [piece.text for piece in select_evidence(items, room)]


def verdict(**changed: Any) -> str:
    fields = {"outcome": "allow", "risk_level": "low", "user_authorization": "explicit", "rationale": "asked for"}
    return json.dumps({name: value for name, value in (fields | changed).items() if value is not None})


def test_everything_is_shown_in_order_with_who_it_is_from_when_there_is_room() -> None:
    items = [
        SystemItem(id="s", text="system"),
        user("first"),
        ReasoningItem(id="t", text="thoughts"),
        AssistantItem(id="a", text="words"),
        ToolCallItem(id="k", call_id="c", name="read", arguments='{"path": "a"}'),
        result("content"),
        user("last"),
    ]
    assert select_evidence(items, 1_000) == (
        Evidence(source="operator", text="first"),
        Evidence(source="agent", text="words"),
        Evidence(source="agent's call", text='read {"path": "a"}'),
        Evidence(source="tool result", text="read: content"),
        Evidence(source="operator", text="last"),
    )


def test_user_turns_come_before_everything_else_and_recent_before_old() -> None:
    items: list[ModelItem] = [user("A" * 300), result("r" * 294), user("B" * 300), user("C" * 300), user("D" * 300)]
    assert texts(items, 600) == ["A" * 300, "D" * 300]
    assert texts(items, 900) == ["A" * 300, "C" * 300, "D" * 300]
    assert texts(items, 1_200) == ["A" * 300, "B" * 300, "C" * 300, "D" * 300]
    assert len(texts(items, 1_500)) == 5
    evidence: list[ModelItem] = [user("A"), *(result(letter * 294) for letter in "abc")]
    assert texts(evidence, 650) == ["A", "read: " + "b" * 294, "read: " + "c" * 294]


def test_a_long_first_turn_leaves_room_for_the_latest_and_what_is_left_out_is_counted() -> None:
    first, last = select_evidence([user("A" * 10_000), result("r" * 5_000), user("B" * 10_000)], 1_000)
    assert (first.text, first.left_out) == ("A" * 500, 9_500)
    assert (last.text, last.left_out) == ("B" * 500, 9_500)


kinds = st.sampled_from([user, result])
conversations = st.lists(st.builds(lambda make, length: make("x" * length), kinds, st.integers(0, 900)), max_size=12)


@given(conversations, st.integers(0, 3_000))
@settings(max_examples=100, deadline=None)
def test_evidence_never_outgrows_its_room(items: list[ModelItem], room: int) -> None:
    assert sum(len(text) for text in texts(items, room)) <= room


hostile = st.text(st.sampled_from('"\\\n\r,:{}[]\u2028\u202e\x9b\x00a'), max_size=40)


@given(hostile, hostile, hostile)
@settings(max_examples=100, deadline=None)
def test_no_text_can_end_its_quotation(said: str, argument: str, summary: str) -> None:
    call = ToolCall(id="c", name="bash", arguments=read_only({"command": argument}))
    final = Classification(risk=Risk.WRITE, summary=summary)
    text = compose_review([Evidence(source="tool result", text=said, left_out=7)], call, HOST, final, "/w")
    assert json.loads(text) == {
        "workspace": "/w",
        "conversation": [{"from": "tool result", "text": said, "charactersLeftOut": 7}],
        "call": {"tool": "bash", "arguments": {"command": argument}},
        "class": {
            "hostClass": "Write + Workspace",
            "finalClass": "Write + Workspace",
            "promptRequired": False,
            "summary": summary,
        },
    }
    # What is quoted begins no line of its own.
    assert len(text.splitlines()) == 6
    assert not {"\u202e", "\x9b", "\x00"} & set(text)


def test_a_reviewer_is_told_both_classes_and_that_a_prompt_is_required() -> None:
    found = json.loads(compose_review([], ToolCall(id="c", name="fetch"), HOST, FINAL, "/w"))["class"]
    assert (found["hostClass"], found["finalClass"]) == ("Write + Workspace", "Privileged + Network")
    assert found["promptRequired"] is True


def test_a_call_that_could_only_be_shown_in_part_is_not_reviewed() -> None:
    call = ToolCall(id="c", name="write", arguments=read_only({"content": "x" * LONGEST_CALL}))
    with pytest.raises(CallTooLong, match="too long"):
        compose_review([], call, HOST, FINAL, "/w")


@pytest.mark.parametrize(
    ("outcome", "expected"), [("allow", Verdict.ALLOW), ("deny", Verdict.DENY), ("ask", Verdict.UNSURE)]
)
def test_the_three_outcomes_count_with_their_rationale(outcome: str, expected: Verdict) -> None:
    review = parse_verdict(f" {verdict(outcome=outcome, rationale='as asked')}\n")
    assert review.verdict is expected
    assert review.reason.endswith("as asked")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "allow",
        '"allow"',
        "[]",
        "null",
        "{}",
        f"```json\n{verdict()}\n```",
        f"Sure. {verdict()}",
        f"{verdict()} {verdict()}",
        verdict(rationale=None),
        verdict(more="x"),
        verdict(outcome="ALLOW"),
        verdict(outcome="allow "),
        verdict(outcome="yes"),
        verdict(outcome=True),
        verdict(outcome=["allow"]),
        verdict(risk_level=1),
        verdict(user_authorization=None),
        verdict(user_authorization=" "),
        verdict(rationale=""),
        verdict()[:-1] + ', "outcome": "deny"}',
        verdict(outcome="deny")[:-1] + ', "outcome": "allow"}',
        "[" * 100_000,
        '{"outcome": ' + "9" * 5_000 + "}",
    ],
)
def test_anything_else_is_no_verdict(text: str) -> None:
    assert parse_verdict(text).verdict is Verdict.UNSURE


def test_a_rationale_becomes_one_bounded_paragraph() -> None:
    reason = parse_verdict(verdict(outcome="deny", rationale="a\n\n[approval] \x1b[2J fine\u2028" + "b" * 5_000)).reason
    assert reason.isprintable()
    assert len(reason) < 1_200
