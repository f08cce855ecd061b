"""Work on many files beside the event loop, ended when its time is over or nobody waits for it any more."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


class Clock:
    """Says to work in a thread when to stop.

    :param seconds: how long the work may take.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.expired = False
        self._end = time.monotonic() + seconds
        self._given_up = threading.Event()

    def stopped(self) -> bool:
        """Whether to stop; asked often, so that the work ends soon after a cancellation."""
        if not self.expired and time.monotonic() >= self._end:
            self.expired = True
        return self.expired or self._given_up.is_set()

    def give_up(self) -> None:
        """Let the work end, because nobody waits for it."""
        self._given_up.set()


async def in_thread(work: Callable[[], Result], clock: Clock) -> Result:
    """Run ``work`` in a thread and return what it returns.

    :param clock: what ``work`` asks whether to stop; a cancellation makes it say so.
    """
    import asyncio

    try:
        return await asyncio.to_thread(work)
    except asyncio.CancelledError:
        clock.give_up()
        raise
