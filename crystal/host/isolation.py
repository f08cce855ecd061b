"""Running the code of plugins so that whatever it raises stays a value, and ending it so that nobody waits for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any


async def contained(awaitable: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    """Await and hand errors back as values: a task that raises SystemExit would end the event loop.

    To be run as a task of its own; only the operator's KeyboardInterrupt passes, and the end of the task itself.
    """
    try:
        return await awaitable, None
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        return None, error


def outcome_of(task: asyncio.Task[tuple[Any, BaseException | None]]) -> tuple[Any, BaseException | None]:
    """Return result and error of a finished task of :func:`contained`, however it ended."""
    if task.cancelled():
        return None, asyncio.CancelledError()
    error = task.exception()
    return (None, error) if error is not None else task.result()


async def end_task(task: asyncio.Task[Any], grace: float) -> None:
    """Cancel a task and wait for it, but at most ``grace`` seconds: it may swallow its cancellation."""
    task.cancel()
    await asyncio.wait({task}, timeout=grace)


def host_is_cancelled() -> bool:
    """Whether the current task is being cancelled by the host, and not by the code it runs."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def describe_error(error: BaseException) -> str:
    """Return type and message of an exception; one whose own message cannot be made is named by its type."""
    try:
        message = str(error)
    except Exception:
        message = ""
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
