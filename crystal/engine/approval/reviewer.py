"""The reviewer: one request to a model about one call. It enters neither the transcript nor any hook of a model call.

Whatever goes wrong with it is no verdict, so the operator is asked.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncGenerator

from crystal.engine.approval.evidence import CallTooLong, compose_review, review_values, select_evidence
from crystal.engine.approval.policy import Verdict
from crystal.engine.approval.verdict import Review, parse_verdict
from crystal.engine.budgets import Spent
from crystal.engine.candidate import Accumulator
from crystal.engine.model_call import CHARACTERS_PER_TOKEN, CLIENT_GRACE_SECONDS
from crystal.engine.prompts.compose import bind_template
from crystal.engine.state import SessionState
from crystal.host.isolation import LimitReached, host_is_cancelled, run_isolated
from crystal.types.approval import ApprovalRecord
from crystal.types.items import SystemItem, ToolCallItem, UserItem
from crystal.types.model import FinishReason, ModelClient, ModelError, ModelRequest, Purpose, Usage
from crystal.types.notes import NoteCode
from crystal.types.session import PromptFacts, PromptMode
from crystal.types.tools import ToolCall

REVIEW_SECONDS = 90.0
"""How long a review may take; the operator is asked after that."""

EVIDENCE_CHARACTERS = 40_000
"""Room for the conversation in a review, about 10,000 tokens."""

LONGEST_ANSWER = 20_000
"""Characters; a reviewer that writes on is not answering."""


class AnswerTooLong(Exception):
    """The reviewer wrote more than any verdict needs."""


async def review_call(
    state: SessionState, call: ToolCall, record: ApprovalRecord, require_prompt: bool, spent: Spent
) -> Review:
    """Ask the reviewer about a call.

    :param record: holds the call's classes; the final one with its summary redacted.
    :param require_prompt: whether the operator will be asked even if the reviewer allows it.
    :param spent: takes the tokens.
    :raises asyncio.CancelledError: when the turn is interrupted.
    """
    items = [
        item for item in state.transcript.items if not (isinstance(item, ToolCallItem) and item.call_id == call.id)
    ]
    final = dataclasses.replace(record.final, require_prompt=require_prompt)
    evidence = select_evidence(items, EVIDENCE_CHARACTERS)
    try:
        text = compose_review(evidence, call, record.host, final, str(state.workspace))
    except CallTooLong as too_long:
        return Review(verdict=Verdict.UNSURE, reason=f"no review: {too_long}")
    template = bind_template(state, state.templates.review, review_values(evidence, call, record.host, final))
    system = await state.host.hooks.compose_prompt(PromptFacts(mode=PromptMode.REVIEW, text=template))
    redact = state.redactor.apply
    request = ModelRequest(
        purpose=Purpose.REVIEW,
        items=(SystemItem(id="system", text=redact(system)), UserItem(id="review", text=redact(text))),
        session_id=state.session_id,
    )
    accumulator = Accumulator()
    began = state.surroundings.monotonic()
    try:
        client = state.review_client()
    except Exception as error:
        # The client is made by the factory of a plugin.
        return _failed(state, type(error).__name__)
    _, fault = await run_isolated(
        _consume(state, client, request, accumulator), grace=CLIENT_GRACE_SECONDS, limit=REVIEW_SECONDS
    )
    if fault is not None:
        return _failed(state, _fault(state, fault))
    if not accumulator.is_finished:
        return _failed(state, "its answer ended without its end mark")
    candidate = accumulator.candidate(state.ids.new, state.transcript.is_taken, redact)
    _count(state, candidate.usage or _estimate(request, accumulator), spent, state.surroundings.monotonic() - began)
    if candidate.finish is not FinishReason.STOP:
        return _failed(state, f"its answer ended with '{candidate.finish.value}'")
    return parse_verdict(redact(accumulator.text))


async def _consume(state: SessionState, client: ModelClient, request: ModelRequest, accumulator: Accumulator) -> None:
    deltas = client.stream(request, state.media.load)
    try:
        async for delta in deltas:
            if host_is_cancelled():
                raise asyncio.CancelledError
            accumulator.add(delta)
            if len(accumulator.text) > LONGEST_ANSWER:
                raise AnswerTooLong
    finally:
        if isinstance(deltas, AsyncGenerator):
            await deltas.aclose()


def _fault(state: SessionState, error: BaseException) -> str:
    match error:
        case LimitReached():
            return f"it took longer than {REVIEW_SECONDS:g} s"
        case AnswerTooLong():
            return f"it answered more than {LONGEST_ANSWER:,} characters"
        case ModelError():
            return state.redactor.apply(f"{error.kind.value}: {error.message}")
        case _:
            return type(error).__name__


def _failed(state: SessionState, fault: str) -> Review:
    state.host.notes.add(NoteCode.CLIENT_ERROR, f"The review of a call failed, so the operator decides: {fault}.")
    return Review(verdict=Verdict.UNSURE, reason=f"the review failed: {fault}")


def _estimate(request: ModelRequest, accumulator: Accumulator) -> Usage:
    asked = sum(len(item.text) for item in request.items if isinstance(item, (SystemItem, UserItem)))
    return Usage(
        input=asked // CHARACTERS_PER_TOKEN, output=len(accumulator.text) // CHARACTERS_PER_TOKEN, estimated=True
    )


def _count(state: SessionState, usage: Usage, spent: Spent, seconds: float) -> None:
    spent.usage += usage
    model = state.review.model if state.review is not None else state.model
    state.store.record_usage(
        state.session_id,
        state.transcript.turn,
        spent.model_calls,
        Purpose.REVIEW,
        usage,
        seconds,
        provider=model.provider,
        model=model.name,
    )
