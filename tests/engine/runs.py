"""What the tests of turns share: an operator who answers by a plan, rounds of a script, and views of a result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from crystal.engine.answers import Answer
from crystal.engine.session import Session
from crystal.testing.result import RunResult
from crystal.types.events import ApprovalAsked, Event, QuestionAsked, RetryScheduled, TurnFinished
from crystal.types.items import ModelItem, ToolCallItem, ToolResultItem

Request = ApprovalAsked | QuestionAsked


class Operator:
    """Answers each request by the next of ``answers``; the last one stands for all that follow.

    :param first: called with the session and the request before the answer is given.
    """

    def __init__(self, *answers: Answer, first: Callable[[Session, Request], None] | None = None) -> None:
        self.answers = list(answers)
        self.asked: list[Request] = []
        self._first = first

    def hear(self, event: Request, session: Session) -> None:
        """Answer in the next step of the loop, as a surface would."""
        self.asked.append(event)
        if self._first is not None:
            self._first(session, event)
        if self.answers:
            answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
            asyncio.get_running_loop().call_soon(session.answer, event.request_id, answer)


def calls(*made: tuple[str, Any], **fields: Any) -> dict[str, Any]:
    """A round that calls tools; arguments are an object, or raw text as a model would send it."""
    return {"toolCalls": [{"name": name, "arguments": arguments} for name, arguments in made], **fields}


def bash(command: str) -> tuple[str, dict[str, Any]]:
    """A call of ``bash``."""
    return "bash", {"command": command}


def write(path: str, content: str = "new\n") -> tuple[str, dict[str, Any]]:
    """A call of ``write``."""
    return "write", {"path": path, "content": content}


def read(path: str) -> tuple[str, dict[str, Any]]:
    """A call of ``read``."""
    return "read", {"path": path}


DONE = {"text": "Done."}


async def no_wait(seconds: float) -> None:
    """Wait between retries without waiting."""


def of(result: RunResult, kind: type[Any]) -> list[Any]:
    """The events of one kind."""
    return [event for event in result.events if isinstance(event, kind)]


def turn_end(result: RunResult) -> TurnFinished:
    """The one end of the one turn of a run."""
    ends = of(result, TurnFinished)
    assert len(ends) == 1, ends
    end: TurnFinished = ends[0]
    return end


def waits(result: RunResult) -> list[float]:
    """How long each retry was waited for."""
    return [event.wait for event in of(result, RetryScheduled)]


def assert_calls_are_answered(items: Sequence[ModelItem]) -> None:
    """Assert that behind each batch of calls stand exactly its results, in order, as every provider wants them."""
    at = 0
    while at < len(items):
        batch = []
        while at < len(items) and isinstance(made := items[at], ToolCallItem):
            batch.append(made.call_id)
            at += 1
        following = items[at : at + len(batch)]
        assert [item.call_id for item in following if isinstance(item, ToolResultItem)] == batch
        at += len(batch)
        assert at == len(items) or batch or not isinstance(items[at], ToolResultItem)
        at += 0 if batch else 1
    ids = [item.call_id for item in items if isinstance(item, ToolCallItem)]
    assert len(ids) == len(set(ids))


def assert_requests_are_valid(result: RunResult) -> None:
    """Assert that every request of a run could be sent to a provider."""
    assert result.requests
    for request in result.requests:
        assert_calls_are_answered(request.items)


def results_of(items: Iterable[ModelItem]) -> list[str]:
    """The texts of the tool results of a request."""
    return [item.text for item in items if isinstance(item, ToolResultItem)]


def kinds(events: Iterable[Event]) -> list[str]:
    """The names of events, in order."""
    return [type(event).__name__ for event in events]
