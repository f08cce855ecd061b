"""Turns the events of a chat-completions answer into deltas. Pure: no clock, no socket.

It accepts what real servers send: missing, null or empty fields, whole messages instead of deltas, errors
beside choices, unknown keys and unknown finish reasons.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crystal.types.model import (
    FinishDelta,
    FinishReason,
    ModelDelta,
    ModelError,
    ModelErrorKind,
    ReasoningDelta,
    TextDelta,
    UsageDelta,
)
from crystal.wire.error_body import one_line
from crystal.wire.errors import foreign_body_error, payload_error
from crystal.wire.events import JsonEvent
from plugins_builtin.protocols.chat_calls import CallAssembly
from plugins_builtin.protocols.chat_usage import UsageTally

_FINISH_REASONS = {
    "stop": FinishReason.STOP,
    "eos": FinishReason.STOP,
    "end_turn": FinishReason.STOP,
    "tool_calls": FinishReason.STOP,
    "tool_call": FinishReason.STOP,
    "function_call": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "content_filter": FinishReason.FILTER,
    "sensitive": FinishReason.FILTER,
    "refusal": FinishReason.REFUSAL,
}
"""The ones that mean tool calls say STOP here: whether there are calls is seen from the calls."""

_FAILURES = {
    "error": ModelErrorKind.SERVER,
    "insufficient_system_resource": ModelErrorKind.SERVER,
    "abort": ModelErrorKind.INCOMPLETE,
}

_REASONING_KEYS = ("reasoning_content", "reasoning", "thinking", "reasoning_text")


class ChatDecoder:
    """Decodes one answer.

    :param state_tag: the key under which provider-bound data of this endpoint is kept with items.
    """

    def __init__(self, state_tag: str) -> None:
        self._state_tag = state_tag
        self._calls = CallAssembly(state_tag)
        self._usage = UsageTally()
        self._details: dict[tuple[str, str], dict[str, Any]] = {}
        self._details_are_told = True
        self._finish = ""
        self._done = False
        self._refused = False
        self._said_something = False

    @property
    def has_finished(self) -> bool:
        """Whether the server gave its reason to stop; only figures and the end mark may follow."""
        return bool(self._finish)

    def feed(self, event: JsonEvent) -> list[ModelDelta]:
        """Take one event.

        :raises ModelError: when the event is an error, with the kind that its HTTP twin would have.
        """
        if event.done:
            self._done = True
            return []
        chunk = event.value
        if isinstance(chunk, list) and len(chunk) == 1:
            chunk = chunk[0]
        if not isinstance(chunk, dict):
            return []
        if event.name == "error" or _is_error(chunk):
            raise payload_error(_error_of(chunk))
        choices = chunk.get("choices")
        deltas: list[ModelDelta] = []
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and choice.get("index") in (0, None):
                deltas += self._choice(choice)
        usage = self._usage.feed(chunk)
        if usage is not None:
            deltas.append(UsageDelta(usage=usage))
        if event.whole:
            if not isinstance(choices, list):
                raise foreign_body_error(one_line(str(chunk)))
            self._done = True
        return deltas

    def close(self) -> list[ModelDelta]:
        """Take the end of the stream and return the last deltas, the finish among them.

        :raises ModelError: kind INCOMPLETE when the answer has no end of its own.
        """
        if not self._finish and not self._is_whole_without_reason():
            raise ModelError(
                ModelErrorKind.INCOMPLETE,
                "The provider's answer ended before it was complete: there was no finish reason.",
            )
        finish = FinishDelta(reason=self._reason(), raw=self._finish)
        return [*self._untold_details(), *self._calls.close(), finish]

    def _is_whole_without_reason(self) -> bool:
        """Whether the end mark alone can be trusted: something was said, and no call was cut."""
        return self._done and (self._said_something or bool(self._calls)) and self._calls.are_complete()

    def _reason(self) -> FinishReason:
        known = _FINISH_REASONS.get(self._finish, FinishReason.OTHER if self._finish else FinishReason.STOP)
        if known in (FinishReason.LENGTH, FinishReason.FILTER):
            return known
        if self._refused:
            return FinishReason.REFUSAL
        if self._calls and known is not FinishReason.REFUSAL:
            return FinishReason.TOOL_CALLS
        return known

    def _choice(self, choice: Mapping[str, Any]) -> list[ModelDelta]:
        if choice.get("error"):
            raise payload_error(choice)
        finish = choice.get("finish_reason")
        if isinstance(finish, str) and finish:
            if finish in _FAILURES:
                raise ModelError(_FAILURES[finish], f"The provider ended the answer with {finish!r}.", code=finish)
            self._finish = finish
        delta = choice.get("delta")
        if not isinstance(delta, dict) or not delta:
            delta = choice.get("message")
        return self._delta(delta) if isinstance(delta, dict) else []

    def _delta(self, delta: Mapping[str, Any]) -> list[ModelDelta]:
        deltas: list[ModelDelta] = []
        reasoning = next((delta[key] for key in _REASONING_KEYS if isinstance(delta.get(key), str) and delta[key]), "")
        reasoning = self._detail_text(delta.get("reasoning_details"), reasoning)
        if reasoning:
            deltas.append(ReasoningDelta(text=reasoning))
        content = delta.get("content")
        if content or delta.get("tool_calls"):
            # The reasoning is over: its replay data belongs to it, not to what follows.
            deltas += self._untold_details()
        if isinstance(content, list):
            deltas += _part_deltas(content)
        elif isinstance(content, str) and content:
            deltas.append(TextDelta(text=content))
        refusal = delta.get("refusal")
        if isinstance(refusal, str) and refusal:
            self._refused = True
            deltas.append(TextDelta(text=refusal))
        self._said_something = self._said_something or any(map(_has_text, deltas))
        deltas += self._calls.feed(delta.get("tool_calls"))
        if isinstance(delta.get("function_call"), dict):
            deltas += self._calls.feed([{"function": delta["function_call"]}])
        return deltas

    def _untold_details(self) -> list[ModelDelta]:
        """Return the replay data of the reasoning when more of it came since it was last told."""
        if self._details_are_told:
            return []
        self._details_are_told = True
        details = [dict(detail) for detail in self._details.values()]
        return [ReasoningDelta(text="", state={self._state_tag: {"reasoning_details": details}})]

    def _detail_text(self, details: Any, shown: str) -> str:
        """Keep ``reasoning_details`` for the replay; return their text when the answer shows it nowhere else."""
        texts = []
        for detail in details if isinstance(details, list) else ():
            if not isinstance(detail, dict):
                continue
            self._details_are_told = False
            place = (str(detail.get("index", len(self._details))), str(detail.get("type")))
            kept = self._details.setdefault(place, {})
            for key, value in detail.items():
                before = kept.get(key)
                grows = key in ("text", "summary", "data") and isinstance(value, str) and isinstance(before, str)
                if value is not None:
                    kept[key] = before + value if grows else value
            texts += [detail[key] for key in ("text", "summary") if isinstance(detail.get(key), str)]
        return shown or "".join(texts)


def _is_error(chunk: Mapping[str, Any]) -> bool:
    if chunk.get("error") or chunk.get("object") == "error" or chunk.get("type") == "error":
        return True
    groq = chunk.get("x_groq")
    if isinstance(groq, dict) and groq.get("error"):
        return True
    return "choices" not in chunk and "detail" in chunk


def _error_of(chunk: Mapping[str, Any]) -> Mapping[str, Any]:
    groq = chunk.get("x_groq")
    return {"error": groq["error"]} if isinstance(groq, dict) and groq.get("error") else chunk


def _part_deltas(parts: list[Any]) -> list[ModelDelta]:
    """Flatten content that comes as typed parts."""
    deltas: list[ModelDelta] = []
    for part in parts:
        if isinstance(part, str):
            deltas.append(TextDelta(text=part))
        elif isinstance(part, dict) and part.get("type") == "thinking":
            inner = part.get("thinking")
            texts = inner if isinstance(inner, list) else [{"text": inner}]
            text = "".join(t["text"] for t in texts if isinstance(t, dict) and isinstance(t.get("text"), str))
            deltas.append(ReasoningDelta(text=text))
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            deltas.append(TextDelta(text=part["text"]))
    return [delta for delta in deltas if _has_text(delta)]


def _has_text(delta: ModelDelta) -> bool:
    return isinstance(delta, (TextDelta, ReasoningDelta)) and bool(delta.text)
