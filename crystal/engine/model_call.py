"""One model round: hooks, request, stream, retry. What comes back is a complete candidate, not stored yet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from crystal.engine.candidate import Accumulator, Candidate
from crystal.engine.retry import decide_retry
from crystal.engine.state import SessionState
from crystal.host.hooks import RequestRebuilt
from crystal.host.isolation import describe_error, host_is_cancelled, run_isolated
from crystal.store.secrets import StreamRedactor
from crystal.types._frozen import Frozen
from crystal.types.events import ReasoningStreamed, RetryScheduled, TextStreamed
from crystal.types.items import ModelItem, ToolCallItem
from crystal.types.model import (
    ModelError,
    ModelErrorKind,
    ModelRequest,
    ModelResponse,
    NoticeDelta,
    Purpose,
    ReasoningDelta,
    TextDelta,
    Usage,
)
from crystal.types.notes import NoteCode
from crystal.types.tools import Catalog

CHARACTERS_PER_TOKEN = 4
CLIENT_GRACE_SECONDS = 2.0
"""How long a cancelled request may take to close its connection."""


class RoundFailed(Exception):
    """A round failed for good.

    :param partial: text that had streamed and is not kept.
    :param retry_after: seconds after which the provider wants to be asked again, when it said so.
    """

    def __init__(self, error: ModelError, partial: str, retry_after: float | None) -> None:
        super().__init__(error.message)
        self.error = error
        self.partial = partial
        self.retry_after = retry_after


class Answered(Frozen):
    """A complete round; ``seconds`` is its wall time, retries and waiting included."""

    purpose: Purpose
    candidate: Candidate
    usage: Usage
    seconds: float


async def call_model(state: SessionState) -> Answered:
    """Ask the session model once, trying again as the retry rules allow.

    :raises RoundFailed: when it failed for good.
    """
    purpose = Purpose.PLAN if state.mode is Catalog.PLAN else Purpose.WORK
    began = state.surroundings.monotonic()
    rebuilt = await state.host.hooks.prepare_request(_request(state, purpose))
    failures: list[ModelError] = []
    while True:
        accumulator = Accumulator()
        try:
            await _stream(state, rebuilt.request, accumulator)
            break
        except ModelError as error:
            failures.append(_redacted(state, error))
        decision = decide_retry(failures, state.surroundings.chance())
        if decision.wait is None:
            _note_raw_hooks(state, rebuilt)
            raise RoundFailed(failures[-1], state.redactor.apply(accumulator.text), decision.retry_after)
        state.emit(
            RetryScheduled(
                attempt=len(failures) + 1,
                wait=decision.wait,
                kind=failures[-1].kind,
                message=failures[-1].message,
            )
        )
        await state.surroundings.sleep(decision.wait)
    candidate = accumulator.candidate(state.ids.new, state.transcript.is_taken, state.redactor.apply)
    usage = candidate.usage or _estimate(rebuilt.request, candidate)
    await state.host.hooks.on_model_response(
        ModelResponse(purpose=purpose, finish=candidate.finish, items=candidate.items, usage=usage)
    )
    seconds = state.surroundings.monotonic() - began
    return Answered(purpose=purpose, candidate=candidate, usage=usage, seconds=seconds)


def _request(state: SessionState, purpose: Purpose) -> ModelRequest:
    accepts_images = state.model.image_input
    items = state.transcript.items if accepts_images else state.transcript.text_items
    return ModelRequest(
        purpose=purpose,
        items=items,
        accepts_images=accepts_images,
        tools=state.catalog.definitions,
        session_id=state.session_id,
    )


async def _stream(state: SessionState, request: ModelRequest, accumulator: Accumulator) -> None:
    _, error = await run_isolated(_consume(state, request, accumulator), grace=CLIENT_GRACE_SECONDS)
    if isinstance(error, ModelError):
        raise error
    if error is not None:
        # A client of a plugin may raise anything.
        raise ModelError(
            ModelErrorKind.INVALID,
            f"The client of the protocol '{state.model.protocol}' failed: {describe_error(error)}",
        ) from error
    if not accumulator.is_finished:
        raise ModelError(ModelErrorKind.INCOMPLETE, "The response ended without its end mark.")


async def _consume(state: SessionState, request: ModelRequest, accumulator: Accumulator) -> None:
    text = StreamRedactor(state.redactor)
    reasoning = StreamRedactor(state.redactor)
    deltas = state.client.stream(request, state.media.load)
    try:
        async for delta in deltas:
            if host_is_cancelled():
                # The client swallowed its cancellation and goes on; nobody listens any more.
                raise asyncio.CancelledError
            accumulator.add(delta)
            if isinstance(delta, TextDelta):
                _emit_piece(state, TextStreamed, text.feed(delta.text))
            elif isinstance(delta, ReasoningDelta):
                _emit_piece(state, ReasoningStreamed, reasoning.feed(delta.text))
            elif isinstance(delta, NoticeDelta):
                state.host.notes.add(NoteCode.REQUEST_NOTICE, state.redactor.apply(delta.text))
    finally:
        if isinstance(deltas, AsyncGenerator):
            await deltas.aclose()
    _emit_piece(state, ReasoningStreamed, reasoning.finish())
    _emit_piece(state, TextStreamed, text.finish())


def _emit_piece(state: SessionState, event: type[TextStreamed] | type[ReasoningStreamed], piece: str) -> None:
    if piece:
        state.emit(event(text=piece))


def _redacted(state: SessionState, error: ModelError) -> ModelError:
    error.message = state.redactor.apply(error.message)
    return error


def _estimate(request: ModelRequest, candidate: Candidate) -> Usage:
    return Usage(
        input=sum(map(_characters, request.items)) // CHARACTERS_PER_TOKEN,
        output=sum(map(_characters, candidate.items)) // CHARACTERS_PER_TOKEN,
        estimated=True,
    )


def _characters(item: ModelItem) -> int:
    return len(item.arguments) + len(item.name) if isinstance(item, ToolCallItem) else len(item.text)


def _note_raw_hooks(state: SessionState, rebuilt: RequestRebuilt) -> None:
    for plugin in rebuilt.raw_plugins:
        state.host.notes.add(
            NoteCode.RAW_HOOK_FAILURE,
            f"Raw hook '{plugin}' changed this model request. The failure may be related.",
            plugin,
        )
