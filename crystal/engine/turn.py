"""One turn: the loop. A user message, then model rounds and tool batches until nothing is left to do."""

from __future__ import annotations

import asyncio
import dataclasses

from crystal.engine.arguments import ArgumentsFault, parse_arguments
from crystal.engine.budgets import Spent, budget_sentence, calls_left, exhausted_before_round
from crystal.engine.checkpoint import checkpoint
from crystal.engine.loop_guard import LoopGuard
from crystal.engine.model_call import Answered, RoundFailed, call_model
from crystal.engine.repair import interrupted_result
from crystal.engine.state import SessionState
from crystal.engine.tool_batch import RepeatedCall, run_batch
from crystal.types._frozen import Frozen
from crystal.types._readonly import EMPTY
from crystal.types.events import (
    ErrorRaised,
    FollowUpDelivered,
    ReasoningCommitted,
    StepFinished,
    StepStarted,
    TextCommitted,
    ToolCallFinished,
    TurnFinished,
    TurnStarted,
)
from crystal.types.items import AssistantItem, ImageRef, ReasoningItem, ToolCallItem, UserItem
from crystal.types.model import FinishReason, ModelErrorKind
from crystal.types.notes import NoteCode, Severity
from crystal.types.session import StopReason, TurnFacts, UserMessage

_CUT_SHORT = {
    FinishReason.LENGTH: (
        StopReason.OUTPUT_LIMIT,
        "The model reached its output limit; its answer is incomplete.",
    ),
    FinishReason.FILTER: (StopReason.FILTERED, "The provider's content filter stopped the answer."),
    FinishReason.REFUSAL: (StopReason.REFUSED, "The model refused to answer."),
}


class Outcome(Frozen):
    """How the loop ended."""

    stop_reason: StopReason
    detail: str = ""
    error_kind: str = ""
    partial: str = ""


async def run_turn(state: SessionState, text: str, images: tuple[ImageRef, ...] = ()) -> TurnFinished:
    """Run one turn to its end and leave a transcript that the next request can use.

    :raises StoreError: when the session cannot be stored any more; nothing is announced that was not.
    """
    message = await _heard_message(state, UserMessage(text=text, images=images))
    state.transcript.turn += 1
    state.transcript.add(UserItem(id=state.ids.new("item"), text=message.text, images=message.images))
    state.store.touch(state.session_id, turns=state.transcript.turn, now=state.surroundings.now())
    state.emit(TurnStarted(text=message.text, mode=state.mode))
    facts = TurnFacts(text=message.text, mode=state.mode)
    spent = Spent()
    try:
        await state.host.hooks.on_turn_started(facts)
        async with asyncio.timeout(state.budgets.duration) as limit:
            outcome = await _rounds(state, spent)
            await checkpoint()
    except TimeoutError:
        if not limit.expired():
            raise
        outcome = _over_budget(state, StopReason.DURATION_BUDGET)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if not state.interrupted or task is None:
            raise
        while task.uncancel():
            pass
        outcome = Outcome(stop_reason=StopReason.INTERRUPTED, detail="The turn was interrupted.")
    # From here on there is nothing left to interrupt.
    state.turn_is_open = False
    return await _finish(state, facts, spent, outcome)


async def _rounds(state: SessionState, spent: Spent) -> Outcome:
    guard = LoopGuard()
    while True:
        budget = exhausted_before_round(state.budgets, spent)
        if budget is not None:
            return _over_budget(state, budget)
        spent.model_calls += 1
        step = spent.model_calls
        state.emit(StepStarted(step=step))
        await checkpoint()
        try:
            answered = await call_model(state)
        except RoundFailed as failed:
            return _failed(failed)
        _commit_candidate(state, answered, spent, step)
        calls = answered.candidate.calls
        try:
            await run_batch(state, calls, spent, guard)
        except RepeatedCall as repeated:
            return Outcome(stop_reason=StopReason.REPEATED_CALL, detail=str(repeated))
        finally:
            state.emit(
                StepFinished(
                    step=step,
                    finish=answered.candidate.finish,
                    usage=answered.usage,
                    tool_calls=len(calls),
                )
            )
        if calls and not calls_left(state.budgets, spent):
            return _over_budget(state, StopReason.CALL_BUDGET)
        if await _deliver_follow_ups(state) or calls:
            continue
        stop_reason, detail = _CUT_SHORT.get(answered.candidate.finish, (StopReason.DONE, ""))
        return Outcome(stop_reason=stop_reason, detail=detail)


def _commit_candidate(state: SessionState, answered: Answered, spent: Spent, step: int) -> None:
    candidate = answered.candidate
    spent.usage += answered.usage
    with state.store.together():
        state.transcript.add(*candidate.items)
        state.store.record_usage(
            state.session_id, state.transcript.turn, step, answered.purpose, answered.usage, answered.seconds
        )
    for item in candidate.items:
        if isinstance(item, AssistantItem):
            state.emit(TextCommitted(item_id=item.id, text=item.text))
        elif isinstance(item, ReasoningItem) and item.text:
            state.emit(ReasoningCommitted(item_id=item.id, text=item.text))
    if candidate.dropped_calls:
        state.host.notes.add(
            NoteCode.MODEL_OUTPUT,
            f"{candidate.dropped_calls} tool call(s) were cut short by the end of the answer and not run.",
            severity=Severity.WARNING,
        )


async def _deliver_follow_ups(state: SessionState) -> bool:
    """Store the texts that were queued while the turn ran; whether there were any."""
    delivered = False
    while state.follow_ups:
        # It stays queued until it is stored: an interrupt meanwhile must not lose it.
        message = await _heard_message(state, UserMessage(text=state.follow_ups[0]))
        state.transcript.add(UserItem(id=state.ids.new("item"), text=message.text))
        del state.follow_ups[0]
        state.emit(FollowUpDelivered(text=message.text))
        delivered = True
    return delivered


async def _heard_message(state: SessionState, message: UserMessage) -> UserMessage:
    """Pass a message through ``on_user_message``; secrets are taken out before and after."""
    redact = state.redactor.apply
    heard = await state.host.hooks.on_user_message(dataclasses.replace(message, text=redact(message.text)))
    return dataclasses.replace(heard, text=redact(heard.text))


def _over_budget(state: SessionState, reason: StopReason) -> Outcome:
    return Outcome(stop_reason=reason, detail=budget_sentence(reason, state.budgets))


def _failed(failed: RoundFailed) -> Outcome:
    error = failed.error
    detail = error.message
    if failed.retry_after is not None:
        detail += f" The provider can be asked again in {failed.retry_after:.0f} s."
    overflow = error.kind is ModelErrorKind.OVERFLOW
    return Outcome(
        stop_reason=StopReason.CONTEXT_OVERFLOW if overflow else StopReason.MODEL_FAILED,
        detail=detail,
        error_kind=error.kind.value,
        partial=failed.partial,
    )


def _answer_interrupted(state: SessionState, call: ToolCallItem) -> None:
    result = interrupted_result(call, state.ids.new("item"))
    with state.store.together():
        state.transcript.add(result)
        state.store.finish_call(state.session_id, call.call_id, True, 0.0)
    try:
        arguments = parse_arguments(call.arguments)
    except ArgumentsFault:
        arguments = EMPTY
    state.emit(
        ToolCallFinished(call_id=call.call_id, name=call.name, arguments=arguments, failed=True, output=result.text)
    )


async def _finish(state: SessionState, facts: TurnFacts, spent: Spent, outcome: Outcome) -> TurnFinished:
    for call in state.transcript.open_calls():
        _answer_interrupted(state, call)
    state.store.touch(state.session_id, now=state.surroundings.now())
    state.store.sync(state.session_id)
    if outcome.error_kind:
        state.emit(ErrorRaised(kind=outcome.error_kind, message=outcome.detail, partial=outcome.partial))
    await state.host.hooks.on_turn_finished(
        TurnFacts(text=facts.text, mode=facts.mode, stop_reason=outcome.stop_reason)
    )
    finished = TurnFinished(
        stop_reason=outcome.stop_reason,
        detail=outcome.detail,
        model_calls=spent.model_calls,
        tool_calls=spent.tool_calls,
        denied=spent.denied,
        usage=spent.usage,
    )
    state.emit(finished)
    return finished
