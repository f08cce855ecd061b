"""Plays a script: what each round streams, what it expects of the request, how it fails. No network."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator

from crystal.types.items import AssistantItem, ModelItem, SystemItem, ToolCallItem, ToolResultItem, UserItem
from crystal.types.model import (
    CallDelta,
    FinishDelta,
    FinishReason,
    ImageLoader,
    ModelDelta,
    ModelError,
    ModelErrorKind,
    ModelRequest,
    Purpose,
    ReasoningDelta,
    TextDelta,
    UsageDelta,
)
from plugins_builtin.protocols.script import Script, ScriptCall, ScriptFault, ScriptRound


class ScriptPlayer:
    """A script and how far each purpose has got in it; shared by the clients that play it."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self._played: dict[str, int] = {}
        self._rounds: dict[str, list[ScriptRound]] = {}
        for entry in script.rounds:
            self._rounds.setdefault(entry.purpose, []).append(entry)

    def next_round(self, purpose: str) -> ScriptRound:
        """Return the next round of a purpose.

        :raises ModelError: kind SCRIPT, when all of them were played.
        """
        rounds = self._rounds.get(purpose, [])
        played = self._played.get(purpose, 0)
        if played >= len(rounds):
            raise ModelError(
                ModelErrorKind.SCRIPT,
                f'{self.script.source} has no further round for a "{purpose}" request: '
                f"it has {len(rounds)} and all were played; add one.",
            )
        self._played[purpose] = played + 1
        return rounds[played]


class ScriptedClient:
    """Plays rounds as if a model had answered."""

    def __init__(self, player: ScriptPlayer) -> None:
        self._player = player

    async def stream(self, request: ModelRequest, load_image: ImageLoader) -> AsyncIterator[ModelDelta]:
        """Play the next round of the request's purpose.

        :raises ModelError: the error of the round; kind SCRIPT when the script has run out or its expectation
            of the request is not met.
        """
        played = self._player.next_round(purpose_word(request.purpose))
        mismatch = expectation_fault(played, request)
        if mismatch:
            raise ModelError(ModelErrorKind.SCRIPT, f"{self._player.script.source}, round {played.number}: {mismatch}.")
        deltas = round_deltas(played)
        fault = played.fault
        for delta in deltas if fault is None else deltas[: fault.after]:
            if played.delay:
                await asyncio.sleep(played.delay)
            yield delta
        if fault is not None:
            raise fault_error(fault)

    async def aclose(self) -> None:
        """Release nothing."""


def purpose_word(purpose: Purpose) -> str:
    """Return the word by which a script names a purpose; work and plan are both ``turn``."""
    return "turn" if purpose in (Purpose.WORK, Purpose.PLAN) else purpose.value


def round_deltas(played: ScriptRound) -> list[ModelDelta]:
    """Return everything that a round streams, the finish last."""
    deltas: list[ModelDelta] = []
    deltas += [ReasoningDelta(text=piece) for piece in _pieces(played.reasoning, played.chunk)]
    deltas += [TextDelta(text=piece) for piece in _pieces(played.text, played.chunk)]
    for number, call in enumerate(played.calls, 1):
        deltas += _call_deltas(call, f"call_{played.number}_{number}", str(number), played.chunk)
    if played.usage is not None:
        deltas.append(UsageDelta(usage=played.usage))
    finish = played.finish or (FinishReason.TOOL_CALLS if played.calls else FinishReason.STOP)
    return [*deltas, FinishDelta(reason=finish, raw=finish.value)]


def expectation_fault(played: ScriptRound, request: ModelRequest) -> str:
    """Return what the request lacks that the round expects, in words; empty when it lacks nothing."""
    expect = played.expect
    if expect is None:
        return ""
    texts = [text for item in request.items if (text := _item_text(item))]
    for wanted in expect.contains:
        if not any(wanted in text for text in texts):
            latest = f"the last text is {_excerpt(texts[-1])}" if texts else "it has no text"
            return f"expected the request to contain {_excerpt(wanted)}, but {latest}"
    offered = [tool.name for tool in request.tools]
    for wanted in expect.tools:
        if wanted not in offered:
            names = ", ".join(offered) or "none"
            return f"expected the tool {wanted!r} to be offered, but the tools are {names}"
    results = [item for item in request.items if isinstance(item, ToolResultItem)]
    for wanted in expect.last_result:
        if not results:
            return f"expected the last tool result to contain {_excerpt(wanted)}, but there is no result"
        if wanted not in results[-1].text:
            latest = _excerpt(results[-1].text)
            return f"expected the last tool result to contain {_excerpt(wanted)}, but it is {latest}"
    return ""


def fault_error(fault: ScriptFault) -> ModelError:
    """Return the error of a round as the HTTP adapters would report it."""
    from crystal.wire.errors import payload_error, response_error

    if fault.status is not None:
        headers = {"retry-after": fault.retry_after} if fault.retry_after else {}
        return response_error(fault.status, headers, fault.body.encode(), time.time())
    if not fault.body:
        return ModelError(ModelErrorKind.INCOMPLETE, "The scripted answer broke off before it was complete.")
    try:
        return payload_error(json.loads(fault.body))
    except ValueError:
        return payload_error({"error": fault.body})


def _call_deltas(call: ScriptCall, call_id: str, key: str, chunk: int) -> list[CallDelta]:
    first, *rest = _pieces(call.arguments, chunk) or [""]
    opening = CallDelta(key=key, call_id=call.call_id or call_id, name=call.name, arguments=first)
    return [opening, *(CallDelta(key=key, arguments=piece) for piece in rest)]


def _pieces(text: str, chunk: int) -> list[str]:
    if not text or not chunk:
        return [text] if text else []
    return [text[at : at + chunk] for at in range(0, len(text), chunk)]


def _item_text(item: ModelItem) -> str:
    match item:
        case SystemItem() | UserItem() | AssistantItem() | ToolResultItem():
            return item.text
        case ToolCallItem():
            return f"{item.name} {item.arguments}"
        case _:
            return ""


def _excerpt(text: str) -> str:
    shown = json.dumps(text, ensure_ascii=False)
    return shown if len(shown) <= 120 else shown[:117] + '..."'
