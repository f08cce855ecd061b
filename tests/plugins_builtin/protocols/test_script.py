"""A script is checked before anything starts, and a fault names the file, the place and the field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from crystal.types.model import FinishReason, Usage
from plugins_builtin.protocols.script import (
    Script,
    ScriptCall,
    ScriptError,
    ScriptExpect,
    ScriptFault,
    ScriptRound,
    parse_script,
)


def parse(*rounds: Any) -> Script:
    return parse_script(json.dumps({"rounds": list(rounds)}), "demo.json")


def test_every_field_of_a_round_is_read() -> None:
    script = parse(
        {
            "for": "review",
            "text": "t",
            "reasoning": "r",
            "toolCalls": [
                {"name": "read", "arguments": {"path": "é"}, "id": "c1"},
                {"name": "x", "arguments": "{"},
            ],
            "usage": {"input": 3, "output": 2, "cached": 1},
            "finish": "length",
            "chunk": 2,
            "delayMs": 50,
            "expect": {"contains": ["a", "b"], "tools": "read", "lastResult": "ok"},
            "error": {"status": 429, "body": {"error": "no"}, "retryAfter": 1.5, "after": 2},
        }
    )
    assert script.rounds == (
        ScriptRound(
            number=1,
            purpose="review",
            text="t",
            reasoning="r",
            calls=(
                ScriptCall(name="read", arguments='{"path": "é"}', call_id="c1"),
                ScriptCall(name="x", arguments="{"),
            ),
            usage=Usage(input=3, output=2, cached=1),
            finish=FinishReason.LENGTH,
            chunk=2,
            delay=0.05,
            expect=ScriptExpect(contains=("a", "b"), tools=("read",), last_result=("ok",)),
            fault=ScriptFault(status=429, body='{"error": "no"}', retry_after="1.5", after=2),
        ),
    )


def test_an_empty_round_is_an_empty_answer() -> None:
    assert parse({}).rounds == (ScriptRound(number=1),)
    assert parse().rounds == ()


def test_a_byte_order_mark_and_other_top_level_keys_are_accepted() -> None:
    script = parse_script('\ufeff{"$schema": "x", "description": "d", "rounds": []}', "demo.json")
    assert script.source == "demo.json"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"rounds": [\n  {"text": "a",}\n]}', "demo.json, line 2, column 1"),
        ("", "demo.json, line 1"),
        ("[" * 100_000, "demo.json"),
        ("[]", 'demo.json: a script is an object with a list named "rounds"'),
        ('{"round": []}', '"rounds"'),
        ('{"rounds": {}}', '"rounds"'),
    ],
)
def test_a_file_that_is_no_script_is_named_with_the_place(text: str, message: str) -> None:
    with pytest.raises(ScriptError) as caught:
        parse_script(text, "demo.json")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("text", "demo.json, round 2 must be an object"),
        ({"txet": "a"}, 'demo.json, round 2 has an unknown field "txet"; did you mean "text"'),
        ({"zzz": 1}, "known are for, text"),
        ({"text": 1}, 'demo.json, round 2: "text" must be a string, not 1'),
        ({"text": None}, '"text" must be a string, not null'),
        (
            {"for": "work"},
            'round 2: "for" must be one of turn, review, compaction, side, topic, plugin, not "work"',
        ),
        ({"finish": "done"}, '"finish" must be one of stop'),
        ({"finish": ["stop"]}, '"finish" must be one of stop'),
        ({"chunk": 0}, '"chunk" must be a number of at least 1, not 0'),
        ({"chunk": "2"}, '"chunk" must be a whole number of at least 1'),
        ({"chunk": True}, '"chunk" must be a whole number'),
        ({"delayMs": -1}, '"delayMs" must be a number of at least 0'),
        ({"delayMs": float("nan")}, '"delayMs" must be a number of at least 0'),
        ({"toolCalls": {}}, '"toolCalls" must be a list'),
        ({"toolCalls": [{"name": "a"}, {}]}, 'round 2, tool call 2 has no "name"'),
        ({"toolCalls": [{"name": "a", "arguments": []}]}, '"arguments" must be an object or raw text'),
        ({"toolCalls": [{"nam": "a"}]}, 'tool call 1 has an unknown field "nam"; did you mean "name"'),
        ({"usage": {"input": -1}}, 'round 2: "usage": "input" must be a number of at least 0, not -1'),
        ({"usage": {"total": 1}}, 'unknown field "total"'),
        ({"expect": "x"}, 'round 2: "expect" must be an object'),
        ({"expect": {"contains": [1]}}, '"contains" must be a string or a list of strings'),
        ({"error": {"status": 200}}, '"status" must be a number of at least 300'),
        ({"error": {"status": "500"}}, '"status" must be a whole number'),
        ({"error": {"retryAfter": []}}, '"retryAfter" must be seconds or a date'),
    ],
)
def test_a_faulty_round_is_named_with_its_field(entry: Any, message: str) -> None:
    with pytest.raises(ScriptError) as caught:
        parse({"text": "fine"}, entry)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
