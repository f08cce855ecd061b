"""What to do when an endpoint refuses a request field: leave it out, rename it or change it, each once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from crystal.types.model import ModelError, ModelErrorKind

DROPPABLE = (
    "stream_options",
    "max_completion_tokens",
    "max_tokens",
    "parallel_tool_calls",
    "prompt_cache_key",
    "reasoning_effort",
    "temperature",
    "top_p",
)
_LIMIT_NAMES = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_REFUSAL = re.compile(
    r"unsupported|not supported|n't support|not support|unrecogni[sz]ed|unknown|unexpected"
    r"|extra (?:inputs|fields|keys)|extra_forbidden|not (?:permitted|allowed)|removed|deprecated",
    re.IGNORECASE,
)
_WANTS_NO_EFFORT = re.compile(r"set reasoning_effort to ['\"`]?none")


class ParameterChanges:
    """What one endpoint has taught us; kept for the life of a client.

    :param limit_is_fixed: the operator named the output limit, so it is not renamed and a refusal is shown.
    """

    def __init__(self, *, limit_is_fixed: bool = False) -> None:
        self._limit_is_fixed = limit_is_fixed
        self._changes: dict[str, Any] = {}

    @property
    def described(self) -> tuple[str, ...]:
        """Return one phrase for each change, for a note to the operator."""
        return tuple(
            f"{name} sent as {_LIMIT_NAMES[name]}"
            if name in _LIMIT_NAMES
            else f"{name} left out"
            if value is None
            else f"{name} set to {value}"
            for name, value in self._changes.items()
        )

    def apply(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields that are sent: no ``None``, and every change made."""
        sent = {name: value for name, value in fields.items() if value is not None}
        for name, value in self._changes.items():
            old = sent.pop(name, None)
            if name in _LIMIT_NAMES and old is not None:
                sent[_LIMIT_NAMES[name]] = old
            elif value is not None:
                sent[name] = value
        return sent

    def learn(self, error: ModelError, body: str, fields: Mapping[str, Any]) -> bool:
        """Take a refusal; return whether the request is worth sending once more.

        :param body: the text of the error response.
        :param fields: the unchanged fields of the request.
        """
        if error.status not in (400, 422) or error.kind is not ModelErrorKind.INVALID or not _REFUSAL.search(body):
            return False
        sent = self.apply(fields)
        if _WANTS_NO_EFFORT.search(body) and "reasoning_effort" not in self._changes:
            self._changes["reasoning_effort"] = "none"
            return True
        blamed = [name for name in DROPPABLE if name in sent and re.search(rf"\b{name}\b", body)]
        if not blamed:
            return False
        name = min(blamed, key=lambda candidate: _first_mention(candidate, body))
        if (name in self._changes and self._changes[name] is None) or (
            name in _LIMIT_NAMES and self._refuses_renaming(name)
        ):
            return False
        self._changes[name] = None
        return True

    def _refuses_renaming(self, name: str) -> bool:
        return self._limit_is_fixed or _LIMIT_NAMES[name] in self._changes


def _first_mention(name: str, body: str) -> int:
    found = re.search(rf"\b{name}\b", body)
    return found.start() if found else len(body)
