"""The schemas that ``crystal schema`` prints hold for what Crystal really writes."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from crystal.cli.app import run_command_line
from crystal.cli.schema import SCHEMAS
from crystal.testing.crystaler import Crystaler


def printed(name: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert run_command_line(["schema", name]) == 0
    schema: dict[str, Any] = json.loads(capsys.readouterr().out)
    return schema


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_every_schema_is_one(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    schema = printed(name, capsys)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_every_line_of_a_run_holds_to_the_published_schema(
    crystaler: Crystaler, capsys: pytest.CaptureFixture[str]
) -> None:
    crystaler.makefile("a.txt", "hello\n")
    crystaler.makeplugin(
        "noisy", "from crystal import hookimpl\n\n@hookimpl\ndef on_turn_started():\n    raise ValueError\n"
    )
    script = crystaler.script(
        [
            {"error": {"status": 503}},
            {
                "reasoning": "Hm.",
                "text": "a\u2028b",
                "toolCalls": [
                    {"name": "read", "arguments": {"path": "a.txt"}},
                    {"name": "write", "arguments": {"path": "b.txt", "content": "x"}},
                    {"name": "read", "arguments": "{"},
                ],
            },
            {"error": {"status": 401, "body": "no"}},
        ]
    )

    async def no_wait(seconds: float) -> None:
        pass

    result = crystaler.run("do", "--format", "json", "--show-thinking", sleep=no_wait)
    assert result.exit_code == 2
    lines = jsonschema.Draft202012Validator(printed("run-events", capsys))
    notes = jsonschema.Draft202012Validator(printed("notes", capsys))
    for line in result.lines:
        assert [error.message for error in lines.iter_errors(line)] == []
        if line["type"] == "note":
            notes.validate({name: line[name] for name in ("code", "severity", "source", "text")})
    assert {line["type"] for line in result.lines} == {
        "session",
        "note",
        "step_start",
        "retry",
        "reasoning",
        "text",
        "tool_use",
        "step_finish",
        "error",
        "stopped",
    }
    jsonschema.validate(json.loads(script.read_text()), printed("script", capsys))
