"""The JSON Schema of one line of ``--format json``."""

from __future__ import annotations

from typing import Any

from crystal.cli.printers.json_lines import VERSION

_TEXT: dict[str, Any] = {"type": "string"}
_WHOLE: dict[str, Any] = {"type": "integer"}
_USAGE: dict[str, Any] = {
    "type": "object",
    "required": ["input", "output", "cached", "reasoning", "estimated"],
    "properties": {
        **dict.fromkeys(("input", "output", "cached", "reasoning"), _WHOLE),
        "estimated": {"type": "boolean"},
    },
}
_CLASS: dict[str, Any] = {
    "type": "object",
    "required": ["risk", "authority", "summary"],
    "properties": {"risk": _TEXT, "authority": _TEXT, "summary": _TEXT},
}
_APPROVAL: dict[str, Any] = {
    "type": ["object", "null"],
    "required": ["rule", "reason", "class", "hostClass", "approved", "answeredBy", "scope", "changes"],
    "properties": {
        "rule": _WHOLE,
        "reason": _TEXT,
        "class": _CLASS,
        "hostClass": _CLASS,
        "approved": {"type": "boolean"},
        "answeredBy": {"enum": ["policy", "operator", "nobody", "reviewer"]},
        "scope": {"enum": ["once", "session", "persistent", None]},
        "changes": {"type": "array", "items": _TEXT},
    },
}


def _line(kind: str, /, **fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["type", "timestamp", "sessionID", *fields],
        "properties": {
            "type": {"const": kind},
            "timestamp": {"type": "string", "format": "date-time"},
            "sessionID": _TEXT,
            **fields,
        },
    }


RUN_EVENTS: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": f"One line of crystal run --format json, version {VERSION}",
    "oneOf": [
        _line(
            "session",
            version={"const": VERSION},
            state={"const": "opened"},
            workspace=_TEXT,
            provider=_TEXT,
            model=_TEXT,
            approval=_TEXT,
            resumed={"type": "boolean"},
            plugins={"type": "array"},
            toolSets={"type": "array"},
            skills={"type": "array"},
            mcpServers={"type": "array"},
            skipped={"type": "array"},
        ),
        _line(
            "session",
            version={"const": VERSION},
            state={"const": "closed"},
            exitCode=_WHOLE,
            resume={"type": ["string", "null"]},
            usage={"anyOf": [_USAGE, {"type": "null"}]},
        ),
        _line("step_start", step=_WHOLE),
        _line("text", text=_TEXT),
        _line("reasoning", text=_TEXT),
        _line(
            "tool_use",
            name=_TEXT,
            callId=_TEXT,
            parentCallId={"type": ["string", "null"]},
            arguments={"type": "object"},
            status={"enum": ["success", "failure"]},
            output=_TEXT,
            images=_WHOLE,
            approval=_APPROVAL,
        ),
        _line("error", kind=_TEXT, message=_TEXT, partial=_TEXT),
        _line("note", code=_TEXT, severity=_TEXT, source=_TEXT, text=_TEXT),
        _line("retry", attempt=_WHOLE, wait={"type": "number"}, kind=_TEXT, message=_TEXT),
        _line("step_finish", step=_WHOLE, reason=_TEXT, modelCalls=_WHOLE, toolCalls=_WHOLE, usage=_USAGE),
        _line("stopped", reason=_TEXT, detail=_TEXT, exitCode=_WHOLE),
    ],
}
