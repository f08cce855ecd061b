"""What the lifecycle, turn, prompt and compaction hooks are told."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from crystal.types._frozen import Frozen
from crystal.types.approval import ApprovalMode
from crystal.types.items import ImageRef
from crystal.types.tools import Catalog


class StopReason(Enum):
    """Why a turn ended."""

    DONE = "done"
    MODEL_FAILED = "model_failed"
    FILTERED = "filtered"
    REFUSED = "refused"
    OUTPUT_LIMIT = "output_limit"
    ROUND_BUDGET = "round_budget"
    CALL_BUDGET = "call_budget"
    DURATION_BUDGET = "duration_budget"
    TOKEN_BUDGET = "token_budget"
    CONTEXT_OVERFLOW = "context_overflow"
    REPEATED_CALL = "repeated_call"
    INTERRUPTED = "interrupted"


class SessionFacts(Frozen):
    """A session as hooks see it."""

    id: str
    workspace: Path
    approval: ApprovalMode


class UserMessage(Frozen):
    """A message of the operator before it is stored."""

    text: str
    images: tuple[ImageRef, ...] = ()


class TurnFacts(Frozen):
    """A turn as hooks see it.

    :param text: the user text as stored.
    :param mode: ``Catalog.PLAN`` or ``Catalog.WORK``.
    :param stop_reason: ``None`` when the turn starts.
    """

    text: str
    mode: Catalog
    stop_reason: StopReason | None = None


class PromptMode(Enum):
    """Which system prompt is being composed."""

    WORK = "work"
    PLAN = "plan"
    REVIEW = "review"
    COMPACTION = "compaction"


class PromptFacts(Frozen):
    """The system prompt so far."""

    mode: PromptMode
    text: str


class CompactionPhase(Enum):
    """Which text of a compaction a hook is asked about."""

    PROMPT = "prompt"
    SUMMARY = "summary"


class CompactionFacts(Frozen):
    """A compaction as hooks see it: the phase and the text so far."""

    phase: CompactionPhase
    text: str
