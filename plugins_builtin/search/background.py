"""Work on many files beside the event loop, ended when nobody waits for it any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


async def in_thread(work: Callable[[Callable[[], bool]], Result]) -> Result:
    """Run ``work`` in a thread and return what it returns.

    :param work: is given a function that says whether to stop; it asks often enough to end soon after a
        cancellation.
    """
    import asyncio
    import threading

    stopped = threading.Event()
    try:
        return await asyncio.to_thread(work, stopped.is_set)
    finally:
        stopped.set()
