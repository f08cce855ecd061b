"""Requests to the operator and their answers. The engine asks by an event; a surface answers by the request's id."""

from __future__ import annotations

import asyncio
from typing import TypeAlias

from crystal.types._frozen import Frozen
from crystal.types.approval import GrantScope


class Approve(Frozen):
    """Let the call run; ``scope`` must be one that was offered."""

    scope: GrantScope = GrantScope.ONCE


class Deny(Frozen):
    """Do not let the call run.

    :param by: ``operator``, or ``nobody`` from a surface that cannot ask.
    """

    by: str = "operator"


class Reply(Frozen):
    """Answers to questions: for each question the chosen labels, in order."""

    labels: tuple[tuple[str, ...], ...]


class Dismiss(Frozen):
    """No answer to the questions."""

    by: str = "operator"


Answer: TypeAlias = Approve | Deny | Reply | Dismiss


class UnknownRequest(Exception):
    """There is no open request of that id: it was answered, or its turn has ended."""


class OpenRequests:
    """The requests of a session that wait for an answer."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[Answer]] = {}

    def open(self, request_id: str) -> asyncio.Future[Answer]:
        """Open a request; the future resolves to its answer."""
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = future
        return future

    def answer(self, request_id: str, answer: Answer) -> None:
        """Answer a request.

        :raises UnknownRequest: when it is not open.
        """
        future = self._waiting.pop(request_id, None)
        if future is None or future.done():
            raise UnknownRequest(f"There is no open request {request_id!r}; it was answered or its turn has ended.")
        future.set_result(answer)

    def close(self, request_id: str) -> None:
        """Forget a request whose turn ended."""
        self._waiting.pop(request_id, None)
