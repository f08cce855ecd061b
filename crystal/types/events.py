"""The events of a session: a closed union, matched by class. Every surface reads this one stream.

Events hold plain values only; ``crystal.engine`` emits them, printers and recorders read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from crystal.types._frozen import Frozen
from crystal.types.approval import ApprovalMode, ApprovalRecord, Classification, GrantScope
from crystal.types.capabilities import Question
from crystal.types.model import FinishReason, ModelErrorKind, Usage
from crystal.types.notes import Note
from crystal.types.session import StopReason
from crystal.types.tools import Catalog


class LoadedPlugin(Frozen):
    """One registered plugin and the hooks it implements."""

    name: str
    hooks: tuple[str, ...]
    tools: tuple[str, ...]


class SessionOpened(Frozen):
    """A session is ready. ``skipped`` names what did not load, with the reason."""

    session_id: str
    workspace: str
    provider: str
    model: str
    approval: ApprovalMode
    resumed: bool
    plugins: tuple[LoadedPlugin, ...]
    skipped: tuple[Note, ...] = ()


class SessionClosed(Frozen):
    """The session ended; nothing follows."""

    session_id: str


class TurnStarted(Frozen):
    """A user message was stored and its turn began."""

    text: str
    mode: Catalog


class FollowUpDelivered(Frozen):
    """A message that was queued while the turn ran was stored and goes out with the next round."""

    text: str


class StepStarted(Frozen):
    """A model round began; ``step`` counts from 1 in each turn."""

    step: int


class TextStreamed(Frozen):
    """A piece of assistant text as it arrived; not committed yet."""

    text: str


class ReasoningStreamed(Frozen):
    """A piece of reasoning as it arrived; not committed yet."""

    text: str


class TextCommitted(Frozen):
    """A whole block of assistant text was stored."""

    item_id: str
    text: str


class ReasoningCommitted(Frozen):
    """A whole block of reasoning was stored."""

    item_id: str
    text: str


class ToolCallStarted(Frozen):
    """A call of the batch is about to be judged, or to be answered with what keeps it from running."""

    call_id: str
    name: str
    arguments: Mapping[str, Any]
    parent_call_id: str | None = None


class ToolProgressed(Frozen):
    """Live output of a running tool."""

    call_id: str
    text: str


class ApprovalAsked(Frozen):
    """The policy asks the operator about a call; answered with :meth:`Session.answer` and ``request_id``.

    :param host: the classification before any hook.
    :param final: the classification the policy used.
    :param preview: what the call would change, as the tool shows it; empty when it shows nothing.
    """

    request_id: str
    call_id: str
    name: str
    arguments: Mapping[str, Any]
    host: Classification
    final: Classification
    offered: tuple[GrantScope, ...]
    reason: str
    preview: str = ""


class QuestionAsked(Frozen):
    """A tool asks the operator."""

    request_id: str
    call_id: str
    questions: tuple[Question, ...]


class RequestAnswered(Frozen):
    """An approval or a question was answered or dismissed."""

    request_id: str
    call_id: str
    answer: str


class ToolCallFinished(Frozen):
    """A call has its result; one of the model's own is stored, one made by a tool goes to that tool.

    A call that was interrupted before its turn came is announced here only.
    """

    call_id: str
    name: str
    arguments: Mapping[str, Any]
    failed: bool
    output: str
    images: int = 0
    parent_call_id: str | None = None
    approval: ApprovalRecord | None = None


class NoteAdded(Frozen):
    """The host noted something."""

    note: Note


class RetryScheduled(Frozen):
    """A round failed in passing and will be tried again; text streamed for it is void.

    :param attempt: the number of the coming attempt, from 2.
    :param wait: seconds.
    """

    attempt: int
    wait: float
    kind: ModelErrorKind
    message: str


class StepFinished(Frozen):
    """A model round ended, its tool calls included."""

    step: int
    finish: FinishReason
    usage: Usage
    tool_calls: int


class ErrorRaised(Frozen):
    """The turn cannot go on. ``partial`` is text that had streamed and was not committed."""

    kind: str
    message: str
    partial: str = ""


class TurnFinished(Frozen):
    """The turn ended.

    :param detail: one sentence on the reason; empty when the turn is simply done.
    :param denied: how many prompts were denied or dismissed in it.
    """

    stop_reason: StopReason
    detail: str
    model_calls: int
    tool_calls: int
    denied: int
    usage: Usage = Usage()


Event: TypeAlias = (
    SessionOpened
    | SessionClosed
    | TurnStarted
    | FollowUpDelivered
    | StepStarted
    | TextStreamed
    | ReasoningStreamed
    | TextCommitted
    | ReasoningCommitted
    | ToolCallStarted
    | ToolProgressed
    | ApprovalAsked
    | QuestionAsked
    | RequestAnswered
    | ToolCallFinished
    | NoteAdded
    | RetryScheduled
    | StepFinished
    | ErrorRaised
    | TurnFinished
)
"""Every event; match with ``match`` and close with ``assert_never``."""
