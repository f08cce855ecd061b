"""The JSON Schema of script files, for editors; :mod:`plugins_builtin.protocols.script` checks the same itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crystal.types._readonly import read_only
from crystal.types.model import FinishReason
from plugins_builtin.protocols.script import PURPOSES

_TEXTS = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
_COUNT = {"type": "integer", "minimum": 0}

SCRIPT_SCHEMA: Mapping[str, Any] = read_only(
    {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Crystal script",
        "description": "What the scripted protocol says instead of a model.",
        "type": "object",
        "required": ["rounds"],
        "properties": {
            "rounds": {
                "type": "array",
                "items": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {
                        "for": {"enum": list(PURPOSES), "default": "turn"},
                        "text": {"type": "string"},
                        "reasoning": {"type": "string"},
                        "toolCalls": {
                            "type": "array",
                            "items": {
                                "type": "object",
                                "additionalProperties": False,
                                "required": ["name"],
                                "properties": {
                                    "name": {"type": "string"},
                                    "arguments": {
                                        "anyOf": [{"type": "object"}, {"type": "string"}],
                                        "description": "An object, or raw text for a malformed call.",
                                    },
                                    "id": {"type": "string"},
                                },
                            },
                        },
                        "usage": {
                            "type": "object",
                            "additionalProperties": False,
                            "properties": {"input": _COUNT, "output": _COUNT, "cached": _COUNT},
                        },
                        "finish": {"enum": [reason.value for reason in FinishReason]},
                        "chunk": {"type": "integer", "minimum": 1, "description": "Characters a delta."},
                        "delayMs": {
                            "type": "number",
                            "minimum": 0,
                            "description": "Wait before every delta.",
                        },
                        "expect": {
                            "type": "object",
                            "additionalProperties": False,
                            "properties": {"contains": _TEXTS, "tools": _TEXTS, "lastResult": _TEXTS},
                        },
                        "error": {
                            "type": "object",
                            "additionalProperties": False,
                            "properties": {
                                "status": {"type": "integer", "minimum": 300, "maximum": 599},
                                "body": {"anyOf": [{"type": "string"}, {"type": "object"}]},
                                "retryAfter": {"anyOf": [{"type": "number"}, {"type": "string"}]},
                                "after": {
                                    "type": "integer",
                                    "minimum": 0,
                                    "description": "Deltas before it.",
                                },
                            },
                        },
                    },
                },
            }
        },
    }
)
