"""The calls of one response: side by side when all of them only read in the workspace, else one after another."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence

from crystal.engine.arguments import ArgumentsFault
from crystal.engine.budgets import Spent
from crystal.engine.loop_guard import STOP_AT, WARN_AT, WARNING, LoopGuard
from crystal.engine.state import SessionState
from crystal.engine.tool_call import (
    FinishedCall,
    PreparedCall,
    announce_call,
    judge_call,
    prepare_call,
    record_call,
    run_call,
)
from crystal.types.items import ToolCallItem


class RepeatedCall(Exception):
    """The same call gave the same result too often; the message names the tool."""


async def run_batch(state: SessionState, items: Sequence[ToolCallItem], spent: Spent, guard: LoopGuard) -> None:
    """Run the calls and store their results in call order, each as soon as those before it are there.

    :raises RepeatedCall: when the loop guard ends the turn; every call of the batch has its result then.
    """
    with state.store.together():
        for item in items:
            record_call(state, item.call_id, item.name, item.arguments)
    prepared = [await prepare_call(state, item) for item in items]
    repeated: str | None = None
    if len(prepared) > 1 and all(_may_run_beside(state, call) for call in prepared):
        repeated = await _run_beside(state, prepared, spent, guard)
    else:
        for call in prepared:
            repeated = _commit(state, await run_call(state, call, spent), guard) or repeated
    if repeated is not None:
        raise RepeatedCall(
            f"The model called '{repeated}' with the same arguments and got the same result {STOP_AT} times running."
        )


async def _run_beside(
    state: SessionState, prepared: Sequence[PreparedCall], spent: Spent, guard: LoopGuard
) -> str | None:
    """Run calls side by side; also when that is interrupted, what has finished is stored."""
    running = [asyncio.create_task(run_call(state, call, spent)) for call in prepared]
    repeated: str | None = None
    stored = 0
    try:
        for task in running:
            repeated = _commit(state, await task, guard) or repeated
            stored += 1
    finally:
        for task in running[stored:]:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for task in running[stored:]:
            if not task.cancelled() and task.exception() is None:
                _commit(state, task.result(), guard)
    return repeated


def _may_run_beside(state: SessionState, prepared: PreparedCall) -> bool:
    if prepared.tool is None:
        return True
    if not prepared.tool.contribution.parallel:
        return False
    try:
        return judge_call(state, prepared.call, prepared.tool).is_plain_read
    except ArgumentsFault:
        return True


def _commit(state: SessionState, finished: FinishedCall, guard: LoopGuard) -> str | None:
    """Store a result and announce it; return the tool's name when the guard says that the turn must end."""
    prepared, result = finished.prepared, finished.result
    count = guard.add(prepared.call.name, prepared.item.arguments, result.text)
    if count == WARN_AT:
        result = dataclasses.replace(result, text=result.text + WARNING)
        finished = dataclasses.replace(finished, result=result)
    with state.store.together():
        state.transcript.add(result)
        state.store.finish_call(state.session_id, result.call_id, result.failed, finished.seconds)
    announce_call(state, finished)
    return prepared.call.name if count >= STOP_AT else None
