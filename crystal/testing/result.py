"""What a run did: exit code, events, notes, what the model was sent, the calls with their results, and the output."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Mapping, Sequence
from typing import Any

from crystal.types._frozen import Frozen
from crystal.types.events import Event, NoteAdded, ToolCallFinished
from crystal.types.model import ModelRequest
from crystal.types.notes import Note


class Call(Frozen):
    """One finished tool call, as the events or the JSON lines tell it."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    output: str
    failed: bool
    approval: Mapping[str, Any] | None = None


class RunResult(Frozen):
    """The result of one run.

    :param events: the typed events of a run in process; empty for a subprocess.
    :param lines: the parsed JSON lines of a run with ``--format json``.
    :param requests: what each model call was sent, in process.
    :param error: the exception that an in-process run raised before its session opened, as one sentence.
    """

    exit_code: int
    stdout: str
    stderr: str
    events: tuple[Event, ...] = ()
    lines: tuple[dict[str, Any], ...] = ()
    requests: tuple[ModelRequest, ...] = ()
    session_id: str = ""
    error: str = ""

    @property
    def notes(self) -> tuple[Note, ...]:
        """The notes of a run in process."""
        return tuple(event.note for event in self.events if isinstance(event, NoteAdded))

    @property
    def note_codes(self) -> list[str]:
        """The codes of all notes, from events or JSON lines."""
        if self.events:
            return [note.code.value for note in self.notes]
        return [line["code"] for line in self.lines if line["type"] == "note"]

    @property
    def calls(self) -> tuple[Call, ...]:
        """The finished tool calls in order."""
        finished = [event for event in self.events if isinstance(event, ToolCallFinished)]
        if finished:
            return tuple(_from_event(event) for event in finished)
        return tuple(_from_line(line) for line in self.lines if line["type"] == "tool_use")

    def fnmatch_lines(self, patterns: Sequence[str]) -> None:
        """Assert that the patterns match lines of stdout in this order, others between them allowed."""
        lines = iter(self.stdout.splitlines())
        for pattern in patterns:
            matched = any(fnmatch.fnmatchcase(line, pattern) for line in lines)
            assert matched, f"no line matches {pattern!r} (in order) in:\n{self.stdout}"


def _from_event(event: ToolCallFinished) -> Call:
    approval = None
    if event.approval is not None:
        approval = {
            "rule": event.approval.decision.rule,
            "class": event.approval.final.label,
            "hostClass": event.approval.host.label,
            "approved": event.approval.approved,
            "answeredBy": event.approval.answered_by,
        }
    return Call(
        id=event.call_id,
        name=event.name,
        arguments=event.arguments,
        output=event.output,
        failed=event.failed,
        approval=approval,
    )


def _from_line(line: dict[str, Any]) -> Call:
    return Call(
        id=line["callId"],
        name=line["name"],
        arguments=line["arguments"],
        output=line["output"],
        failed=line["status"] == "failure",
        approval=line["approval"],
    )


def parse_lines(stdout: str) -> tuple[dict[str, Any], ...]:
    """Parse JSON lines; the format promises one object a line."""
    return tuple(json.loads(line) for line in stdout.split("\n") if line)
