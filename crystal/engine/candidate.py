"""From deltas to transcript items: what a model said in one response, assembled in order. Pure, no I/O."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, assert_never

from crystal.engine.deltas import check_delta
from crystal.types._frozen import Frozen
from crystal.types._readonly import read_only
from crystal.types.items import AssistantItem, ModelItem, ReasoningItem, ToolCallItem
from crystal.types.model import (
    CallDelta,
    FinishDelta,
    FinishReason,
    ModelDelta,
    NoticeDelta,
    ReasoningDelta,
    TextDelta,
    Usage,
    UsageDelta,
)

_HALF = re.compile("[\ud800-\udfff]")
_CUT_SHORT = (FinishReason.LENGTH, FinishReason.FILTER, FinishReason.REFUSAL)


class Candidate(Frozen):
    """A complete response, not committed yet.

    :param usage: ``None`` when the provider gave no figures.
    :param dropped_calls: calls that were cut short and must not run.
    """

    items: tuple[ModelItem, ...]
    finish: FinishReason
    usage: Usage | None
    dropped_calls: int = 0

    @property
    def calls(self) -> tuple[ToolCallItem, ...]:
        """The tool calls in order."""
        return tuple(item for item in self.items if isinstance(item, ToolCallItem))


class _Part:
    __slots__ = ("call_id", "key", "kind", "name", "pieces", "state")

    def __init__(self, kind: type[ModelItem], key: str = "") -> None:
        self.kind = kind
        self.key = key
        self.pieces: list[str] = []
        self.call_id = ""
        self.name = ""
        self.state: Mapping[str, Any] | None = None

    @property
    def text(self) -> str:
        # Two halves of a surrogate pair may have come in two deltas.
        joined = "".join(self.pieces).encode("utf-16", "surrogatepass")
        if self.kind is ToolCallItem:
            return escape_halves(joined.decode("utf-16", "surrogatepass"))
        return joined.decode("utf-16", "replace")


class Accumulator:
    """Takes the deltas of one response; parts keep the order in which they began."""

    def __init__(self) -> None:
        self._parts: list[_Part] = []
        self._calls: dict[str, _Part] = {}
        self._usage: Usage | None = None
        self._finish: FinishDelta | None = None

    @property
    def is_finished(self) -> bool:
        """Whether the end of the response was seen."""
        return self._finish is not None

    @property
    def text(self) -> str:
        """The assistant text so far."""
        return "".join(part.text for part in self._parts if part.kind is AssistantItem)

    def add(self, delta: ModelDelta) -> None:
        """Take one delta.

        :raises DeltaRefused: for one that holds something else than it declares; a plugin's client may yield anything.
        """
        check_delta(delta)
        match delta:
            case TextDelta():
                self._open(AssistantItem).pieces.append(delta.text)
            case ReasoningDelta():
                part = self._open(ReasoningItem)
                part.pieces.append(delta.text)
                part.state = read_only(delta.state) or part.state
            case CallDelta():
                self._add_call(delta)
            case UsageDelta():
                self._usage = delta.usage
            case FinishDelta():
                self._finish = delta
            case NoticeDelta():
                pass  # for the operator, not for the transcript
            case _:
                assert_never(delta)

    def _open(self, kind: type[ModelItem]) -> _Part:
        if not self._parts or self._parts[-1].kind is not kind:
            self._parts.append(_Part(kind))
        return self._parts[-1]

    def _add_call(self, delta: CallDelta) -> None:
        part = self._calls.get(delta.key)
        if part is None:
            part = self._calls[delta.key] = _Part(ToolCallItem, delta.key)
            self._parts.append(part)
        part.call_id = part.call_id or delta.call_id
        part.name = delta.name or part.name
        part.pieces.append(delta.arguments)
        part.state = read_only(delta.state) or part.state

    def candidate(
        self, new_id: Callable[[str], str], taken: Callable[[str], bool], redact: Callable[[str], str]
    ) -> Candidate:
        """Return the assembled response.

        :param new_id: makes an id from a kind word.
        :param taken: whether a call id is used in the session already; a repeated or missing one is renamed.
        :param redact: takes secrets out of a text.
        """
        if self._finish is None:
            raise ValueError("the response has no end yet")
        reason = self._finish.reason
        cut_short = reason in _CUT_SHORT
        items: list[ModelItem] = []
        used: set[str] = set()
        for part in self._parts:
            is_call = part.kind is ToolCallItem
            if is_call and cut_short:
                continue
            text = redact_arguments(part.text, redact) if is_call else redact(part.text)
            if is_call:
                call_id = part.call_id
                if not call_id or call_id in used or taken(call_id):
                    call_id = new_id("call")
                used.add(call_id)
                items.append(
                    ToolCallItem(id=new_id("item"), call_id=call_id, name=part.name, arguments=text, state=part.state)
                )
            elif part.kind is ReasoningItem and (text or part.state):
                items.append(ReasoningItem(id=new_id("item"), text=text, state=part.state))
            elif part.kind is AssistantItem and text.strip():
                items.append(AssistantItem(id=new_id("item"), text=text))
        if not cut_short:
            reason = FinishReason.TOOL_CALLS if used else _without_calls(reason)
        return Candidate(
            items=tuple(items),
            finish=reason,
            usage=self._usage,
            dropped_calls=len(self._calls) if cut_short else 0,
        )


def escape_halves(text: str) -> str:
    """Write halves of surrogate pairs in a JSON text as its escapes: they cannot be stored, yet say what was asked."""
    return _HALF.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def redact_arguments(text: str, redact: Callable[[str], str]) -> str:
    """Take secrets out of the JSON text of a call, also where escapes hide them; text without one is not touched."""
    try:
        value = json.loads(text)
        redacted = redact_strings(value, redact)
    except (ValueError, RecursionError):
        return redact(text)
    return redact(text) if redacted == value else escape_halves(json.dumps(redacted, ensure_ascii=False))


def redact_strings(value: Any, redact: Callable[[str], str]) -> Any:
    """Return a JSON value with every text in it redacted, names of members included."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {redact(name): redact_strings(entry, redact) for name, entry in value.items()}
    if isinstance(value, list):
        return [redact_strings(entry, redact) for entry in value]
    return value


def _without_calls(reason: FinishReason) -> FinishReason:
    return FinishReason.STOP if reason is FinishReason.TOOL_CALLS else reason
