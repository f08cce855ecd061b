"""``--format json``: one JSON object a line. The fields are those of ``crystal schema run-events``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TextIO

from crystal.types.approval import ApprovalRecord, Classification
from crystal.types.events import (
    ErrorRaised,
    Event,
    NoteAdded,
    ReasoningCommitted,
    RetryScheduled,
    SessionOpened,
    StepFinished,
    StepStarted,
    TextCommitted,
    ToolCallFinished,
    TurnFinished,
)
from crystal.types.model import Usage

VERSION = 1
"""Version of the event format; it changes when a field changes its meaning or goes."""


class JsonLinesPrinter:
    """Prints the events that the format has; streamed pieces are not among them."""

    def __init__(self, stream: TextIO, now: Callable[[], float], show_thinking: bool) -> None:
        self._stream = stream
        self._now = now
        self._show_thinking = show_thinking
        self._session_id = ""
        self._model_calls = 0
        self._tool_calls = 0

    def __call__(self, event: Event) -> None:
        """Print one event."""
        if isinstance(event, SessionOpened):
            self._session_id = event.session_id
            self._print("session", version=VERSION, state="opened", **_opened(event))
            return
        described = self._describe(event)
        if described is not None:
            kind, fields = described
            self._print(kind, **fields)

    def _describe(self, event: Event) -> tuple[str, dict[str, Any]] | None:
        match event:
            case StepStarted():
                return "step_start", {"step": event.step}
            case TextCommitted():
                return "text", {"text": event.text}
            case ReasoningCommitted() if self._show_thinking:
                return "reasoning", {"text": event.text}
            case ToolCallFinished():
                return "tool_use", _tool_use(event)
            case ErrorRaised():
                return "error", {"kind": event.kind, "message": event.message, "partial": event.partial}
            case NoteAdded():
                note = event.note
                return "note", {
                    "code": note.code.value,
                    "severity": note.severity.value,
                    "source": note.source,
                    "text": note.text,
                }
            case RetryScheduled():
                return "retry", {
                    "attempt": event.attempt,
                    "wait": round(event.wait, 3),
                    "kind": event.kind.value,
                    "message": event.message,
                }
            case StepFinished():
                self._model_calls += 1
                self._tool_calls += event.tool_calls
                return "step_finish", {
                    "step": event.step,
                    "reason": event.finish.value,
                    "modelCalls": self._model_calls,
                    "toolCalls": self._tool_calls,
                    "usage": _usage(event.usage),
                }
            case _:
                return None

    def finish(self, exit_code: int, reason: str, detail: str, finished: TurnFinished | None) -> None:
        """Print the last lines: ``stopped`` when the exit is not 0, then ``session`` with the exit code."""
        if exit_code:
            self._print("stopped", reason=reason, detail=detail, exitCode=exit_code)
        resume = f"crystal run -r {self._session_id} TASK" if self._session_id else None
        usage = _usage(finished.usage) if finished is not None else None
        self._print("session", version=VERSION, state="closed", exitCode=exit_code, resume=resume, usage=usage)

    def _print(self, kind: str, /, **fields: Any) -> None:
        moment = datetime.fromtimestamp(self._now(), UTC).isoformat(timespec="milliseconds")
        line = {"type": kind, "timestamp": moment.replace("+00:00", "Z"), "sessionID": self._session_id, **fields}
        # Only ASCII goes out, so that no reader splits a line at a separator inside a text.
        self._stream.write(json.dumps(line, ensure_ascii=True, separators=(",", ":")) + "\n")
        self._stream.flush()


def _opened(event: SessionOpened) -> dict[str, Any]:
    return {
        "workspace": event.workspace,
        "provider": event.provider,
        "model": event.model,
        "approval": event.approval.value,
        "resumed": event.resumed,
        "plugins": [
            {"name": plugin.name, "hooks": list(plugin.hooks), "tools": list(plugin.tools)} for plugin in event.plugins
        ],
        "toolSets": [],
        "skills": [],
        "mcpServers": [],
        "skipped": [{"code": note.code.value, "source": note.source, "text": note.text} for note in event.skipped],
    }


def _tool_use(event: ToolCallFinished) -> dict[str, Any]:
    return {
        "name": event.name,
        "callId": event.call_id,
        "parentCallId": event.parent_call_id,
        "arguments": event.arguments,
        "status": "failure" if event.failed else "success",
        "output": event.output,
        "images": event.images,
        "approval": _approval(event.approval),
    }


def _approval(record: ApprovalRecord | None) -> dict[str, Any] | None:
    if record is None:
        return None
    return {
        "rule": record.decision.rule,
        "reason": record.decision.reason,
        "class": _classification(record.final),
        "hostClass": _classification(record.host),
        "approved": record.approved,
        "answeredBy": record.answered_by,
        "scope": record.scope.value if record.scope is not None else None,
        "changes": list(record.changes),
    }


def _classification(classification: Classification) -> Mapping[str, Any]:
    return {
        "risk": classification.risk.label,
        "authority": classification.authority.label,
        "summary": classification.summary,
    }


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input": usage.input,
        "output": usage.output,
        "cached": usage.cached,
        "reasoning": usage.reasoning,
        "estimated": usage.estimated,
    }
