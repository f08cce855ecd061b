"""Running the code of plugins so that whatever it raises stays a value, and ending it so that nobody waits for ever."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from types import TracebackType
from typing import Any

_HOST_FOLDER = __file__.rpartition("/host/")[0] + "/"


class LimitReached(Exception):
    """The code took longer than it may and was cancelled."""


async def run_isolated(
    awaitable: Awaitable[Any], *, grace: float, limit: float | None = None
) -> tuple[Any, BaseException | None]:
    """Await the code of a plugin in a task of its own and return its result, or what it raised.

    In its own task it can neither cancel its caller nor hold it: code that swallows its cancellation is left behind
    after ``grace`` seconds, whether it is the limit or the caller's own cancellation that ends it.

    :param limit: seconds it may take; past them the error is :class:`LimitReached`.
    :raises asyncio.CancelledError: when the caller is cancelled.
    """
    task = asyncio.create_task(_contained(awaitable))
    try:
        done, _ = await asyncio.wait({task}, timeout=limit)
    except asyncio.CancelledError:
        await _end(task, grace)
        raise
    if not done:
        await _end(task, grace)
        return None, LimitReached()
    if task.cancelled():
        return None, asyncio.CancelledError()
    error = task.exception()
    return (None, error) if error is not None else task.result()


async def call_in_thread(function: Callable[[], Any]) -> Any:
    """Call ``function`` in a thread of its own and return its result; who stops waiting leaves the thread behind.

    The thread holds up neither the event loop nor the end of the process.

    :raises BaseException: what ``function`` raised.
    """
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if not answered.done():
            answered.set_result((result, error))

    def work() -> None:
        outcome: tuple[Any, BaseException | None]
        try:
            outcome = function(), None
        except BaseException as error:
            outcome = None, error
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=work, name="crystal-isolated", daemon=True).start()
    result, error = await answered
    if error is not None:
        raise error
    return result


async def _contained(awaitable: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    """Hand errors back as values: a task that raises SystemExit would end the event loop."""
    try:
        return await awaitable, None
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        return None, error


async def _end(task: asyncio.Task[Any], grace: float) -> None:
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


def name_fault(error: BaseException) -> str:
    """Say type and place of an exception; its message may quote arguments and stays out of notes.

    The place is the deepest one in the folder of the code that was called, not in a library that this called.
    """
    frames = [
        (code.co_filename.rpartition("/"), code.co_name, traceback.tb_lineno)
        for traceback in _tracebacks(error)
        if not (code := traceback.tb_frame.f_code).co_filename.startswith(_HOST_FOLDER)
    ]
    said = own_words(error)
    if not frames:
        return f"raised {type(error).__name__}{said}"
    called_in = frames[0][0][0]
    (_, _, file), function, line = next(
        frame for frame in reversed(frames) if frame[0][0] == called_in or frame[0][0].startswith(f"{called_in}/")
    )
    return f"raised {type(error).__name__} in {function}, line {line} of {file}{said}"


def own_words(error: BaseException) -> str:
    """Return the message of an exception of the host's own, which says how to mend it; empty for any other.

    Messages of foreign exceptions stay out of notes: they may quote arguments.
    """
    for module, name in (("crystal.tool_functions", "ToolFunctionError"), ("crystal.types._readonly", "ReadOnlyError")):
        if module in sys.modules and type(error) is getattr(sys.modules[module], name):
            return f": {error}"
    return ""


def _tracebacks(error: BaseException) -> Iterator[TracebackType]:
    traceback = error.__traceback__
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next
