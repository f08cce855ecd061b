"""Run a coroutine to its end without waiting for what it leaves behind.

:func:`asyncio.run` waits for every task and every thread that is left. A hook that swallows its cancellation, or waits
in a thread, would hold the process there for ever.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

GRACE_SECONDS = 1.0
"""How long what is left may take to end, all of it together."""

Result = TypeVar("Result")
logger = logging.getLogger("crystal.loop")


def run_to_end(main: Coroutine[Any, Any, Result]) -> Result:
    """Run ``main`` in a loop of its own and return its result; leftovers are cancelled and waited for only briefly."""
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(_log)
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(main)
    finally:
        try:
            _end_leftovers(loop)
        finally:
            asyncio.set_event_loop(None)
            loop.close()


def _end_leftovers(loop: asyncio.AbstractEventLoop) -> None:
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.wait(left, timeout=GRACE_SECONDS))
    closing = loop.create_task(loop.shutdown_asyncgens())
    loop.run_until_complete(asyncio.wait({closing}, timeout=GRACE_SECONDS))


def _log(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    logger.info("%s", context.get("message", "a task was left behind"))
