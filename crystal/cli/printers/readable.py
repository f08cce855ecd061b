"""``--format default``: a readable trace. Labels stand in ``[ ]``, statuses in ``( )``, cuts in ``< >``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TextIO

from crystal.cli.safe_text import safe_line, safe_text
from crystal.types.events import (
    ApprovalAsked,
    ErrorRaised,
    Event,
    FollowUpDelivered,
    QuestionAsked,
    ReasoningCommitted,
    RetryScheduled,
    SessionOpened,
    TextCommitted,
    ToolCallFinished,
    TurnFinished,
)

HEAD_LINES = 5
TAIL_LINES = 20
_IN_FULL = ("edit", "write")
_TAIL = ("bash",)


class ReadablePrinter:
    """Prints the reply, and each call beside its result."""

    def __init__(self, stream: TextIO, show_thinking: bool) -> None:
        self._stream = stream
        self._show_thinking = show_thinking

    def __call__(self, event: Event) -> None:
        """Print one event."""
        match event:
            case SessionOpened():
                resumed = " (resumed)" if event.resumed else ""
                self._line(
                    f"[session] {event.session_id}{resumed}  {event.provider}/{event.model}  "
                    f"approval {event.approval.value}  {event.workspace}"
                )
            case ReasoningCommitted() if self._show_thinking:
                self._line("[thinking]")
                self._block(event.text)
            case FollowUpDelivered():
                self._line(f"[user] {event.text}")
            case TextCommitted():
                self._line(event.text.strip("\n"))
            case ToolCallFinished():
                self._tool(event)
            case ApprovalAsked():
                self._line(f"[approval] {event.name}: {event.final.label}, {event.reason}")
            case QuestionAsked():
                for question in event.questions:
                    self._line(f"[question] {question.text}")
            case RetryScheduled():
                self._line(f"[retry] attempt {event.attempt} in {event.wait:.1f} s ({event.kind.value})")
            case ErrorRaised() if event.partial:
                self._line("[discarded]")
                self._block(event.partial)
            case TurnFinished():
                self._summary(event)
            case _:
                pass

    def finish(self, exit_code: int, reason: str, detail: str, finished: TurnFinished | None) -> None:
        """Print nothing: the summary was the last line, errors are on stderr."""

    def _tool(self, event: ToolCallFinished) -> None:
        status = "failed" if event.failed else "ok"
        child = "[child] " if event.parent_call_id else ""
        self._line(f"{child}[{event.name}] {_brief(event.arguments)} ({status})")
        approval = event.approval
        if approval is not None and approval.answered_by != "policy":
            word = "approved" if approval.approved else "denied"
            self._line(f"  [approval] {approval.final.label}: {word} by {approval.answered_by}")
        lines = event.output.rstrip("\n").split("\n")
        if event.failed or event.name in _IN_FULL:
            shown = lines
        elif event.name in _TAIL:
            shown = (
                lines
                if len(lines) <= TAIL_LINES
                else [f"<{len(lines) - TAIL_LINES} lines above>", *lines[-TAIL_LINES:]]
            )
        else:
            shown = (
                lines if len(lines) <= HEAD_LINES else [*lines[:HEAD_LINES], f"<{len(lines) - HEAD_LINES} more lines>"]
            )
        self._block("\n".join(shown))

    def _summary(self, event: TurnFinished) -> None:
        usage = event.usage
        estimated = " (estimated)" if usage.estimated else ""
        self._line(
            f"[{event.stop_reason.value}] {event.model_calls} model calls, {event.tool_calls} tool calls, "
            f"{usage.input} + {usage.output} tokens{estimated}"
        )

    def _block(self, text: str) -> None:
        for line in safe_text(text).split("\n"):
            self._stream.write(f"  {line}\n")
        self._stream.flush()

    def _line(self, text: str) -> None:
        self._stream.write(safe_text(text) + "\n")
        self._stream.flush()


def _brief(arguments: Mapping[str, Any]) -> str:
    """Return the arguments on one line: the first one bare, long ones cut."""
    words = []
    for position, (name, value) in enumerate(arguments.items()):
        shown = safe_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), 100)
        words.append(shown if position == 0 else f"{name}={shown}")
    return safe_line("  ".join(words))
