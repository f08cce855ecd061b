"""The published schema and the parser agree, so that an editor does not promise what the program refuses."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from plugins_builtin.protocols.script import ScriptError, check_script
from plugins_builtin.protocols.script_schema import SCRIPT_SCHEMA

GOOD: list[Any] = [
    {},
    {"for": "topic", "text": "a", "reasoning": "b", "chunk": 1, "delayMs": 0.5, "finish": "refusal"},
    {
        "toolCalls": [
            {"name": "a"},
            {"name": "b", "arguments": "{", "id": "c"},
            {"name": "c", "arguments": {}},
        ]
    },
    {"usage": {}, "expect": {}, "error": {}},
    {
        "usage": {"input": 1, "output": 0, "cached": 0},
        "expect": {"contains": "a", "tools": ["b"], "lastResult": []},
    },
    {"error": {"status": 503, "body": "x", "retryAfter": "soon", "after": 0}},
    {"error": {"body": {"error": {}}, "retryAfter": 3}},
]
BAD: list[Any] = [
    1,
    {"txet": 1},
    {"text": 1},
    {"for": "work"},
    {"chunk": 0},
    {"chunk": 1.5},
    {"delayMs": -1},
    {"finish": "done"},
    {"toolCalls": [{}]},
    {"toolCalls": [{"name": "a", "arguments": [1]}]},
    {"usage": {"input": -1}},
    {"usage": {"total": 1}},
    {"expect": {"contains": [1]}},
    {"expect": {"tool": "a"}},
    {"error": {"status": 200}},
    {"error": {"status": 600}},
    {"error": {"after": -1}},
    {"error": {"what": 1}},
]


def is_accepted(script: Any) -> bool:
    try:
        check_script(script, "x")
    except ScriptError:
        return False
    return True


def test_the_schema_is_a_schema() -> None:
    schema = json.loads(json.dumps(SCRIPT_SCHEMA))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"


@pytest.mark.parametrize(
    "script",
    [{"rounds": [entry]} for entry in GOOD] + [{"rounds": [entry]} for entry in BAD] + [{}, [], {"rounds": 1}],
)
def test_schema_and_parser_agree(script: Any) -> None:
    validator = jsonschema.Draft202012Validator(json.loads(json.dumps(SCRIPT_SCHEMA)))
    assert validator.is_valid(script) == is_accepted(script)


def test_the_good_ones_are_good() -> None:
    assert all(is_accepted({"rounds": [entry]}) for entry in GOOD)
    assert not any(is_accepted({"rounds": [entry]}) for entry in BAD)
