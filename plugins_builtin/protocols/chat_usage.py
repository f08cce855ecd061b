"""Reads token figures of the chat dialect, wherever a server puts them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crystal.types.model import Usage


class UsageTally:
    """The figures of one answer: for each field the last value that was not null. Figures are never
    summed.
    """

    def __init__(self) -> None:
        self._fields: dict[str, Any] = {}

    def feed(self, chunk: Mapping[str, Any]) -> Usage | None:
        """Take one chunk; return the figures when it brought any that are not all zero."""
        found = False
        for figures in _places(chunk):
            for name, value in figures.items():
                if value is not None:
                    self._fields[name] = value
                    found = True
        usage = _usage(self._fields) if found else None
        return usage if usage is not None and usage.total else None


def _places(chunk: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the objects of a chunk that hold figures, the most trusted last."""
    groq = chunk.get("x_groq")
    choices = chunk.get("choices")
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    candidates = [
        _from_timings(chunk.get("timings")),
        groq.get("usage") if isinstance(groq, dict) else None,
        first.get("usage"),
        chunk.get("usage"),
    ]
    return [figures for figures in candidates if isinstance(figures, dict)]


def _from_timings(timings: Any) -> dict[str, Any] | None:
    """Read llama.cpp's own counters, for servers that give nothing else."""
    if not isinstance(timings, dict) or "predicted_n" not in timings:
        return None
    cached = _count(timings.get("cache_n"))
    return {
        "prompt_tokens": cached + _count(timings.get("prompt_n")),
        "prompt_cache_hit_tokens": cached,
        "completion_tokens": _count(timings.get("predicted_n")),
    }


def _usage(fields: Mapping[str, Any]) -> Usage:
    prompt = _object(fields.get("prompt_tokens_details"))
    completion = _object(fields.get("completion_tokens_details"))
    total_input = _count(fields.get("prompt_tokens", fields.get("input_tokens")))
    output = _count(fields.get("completion_tokens", fields.get("output_tokens")))
    cached = _count(prompt.get("cached_tokens")) or _count(fields.get("prompt_cache_hit_tokens"))
    return Usage(
        input=total_input,
        output=output,
        cached=min(cached, total_input),
        cache_write=min(_count(prompt.get("cache_write_tokens")), max(0, total_input - cached)),
        reasoning=min(_count(completion.get("reasoning_tokens")), output),
    )


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int:
    return max(0, int(value)) if isinstance(value, (int, float)) and value == value and abs(value) < 1e15 else 0
