"""Run one task from open to close: the events to a printer, the signals to the session, the end to an exit code.

``crystal run``, ``crystal demo`` and the test kit all come through here.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Protocol, TextIO

from crystal.cli.exit_codes import ExitCode
from crystal.cli.loop import run_to_end
from crystal.cli.safe_text import safe_text
from crystal.cli.turn_ending import exit_code_of
from crystal.engine.answers import Deny, Dismiss
from crystal.engine.checkpoint import checkpoint
from crystal.engine.opening import open_session
from crystal.engine.preflight import SessionOptions, SetupError
from crystal.engine.session import INTERRUPTED_TURN, Session
from crystal.engine.state import Surroundings
from crystal.store.media import MediaStore, printable_name, sniff_image
from crystal.types._frozen import Frozen
from crystal.types.events import (
    ApprovalAsked,
    Event,
    NoteAdded,
    QuestionAsked,
    TurnFinished,
)
from crystal.types.notes import Severity
from crystal.workspace.limits import IMAGE_BYTES

HELD_UP_SECONDS = 0.5
Listener = Callable[[Event], None]


class Printer(Protocol):
    """A reader of the events that writes one format."""

    def __call__(self, event: Event) -> None:
        """Take one event."""

    def finish(self, exit_code: int, reason: str, detail: str, finished: TurnFinished | None) -> None:
        """Write what comes last."""


class Operator(Protocol):
    """Someone who can be asked; answers through the session."""

    def hear(self, event: ApprovalAsked | QuestionAsked, session: Session) -> None:
        """Take a request; answer it now or later."""


class Nobody:
    """The operator of a headless run: every approval is denied, every question dismissed."""

    def hear(self, event: ApprovalAsked | QuestionAsked, session: Session) -> None:
        """Answer at once."""
        answer = Deny(by="nobody") if isinstance(event, ApprovalAsked) else Dismiss(by="nobody")
        asyncio.get_running_loop().call_soon(session.answer, event.request_id, answer)


class TaskRequest(Frozen):
    """One task and how to run it.

    :param images: files to attach to the message.
    :param quiet: drops notes from stderr.
    :param listeners: hear every event besides the printer.
    """

    text: str
    options: SessionOptions
    printer: Printer
    errors: TextIO
    environ: Mapping[str, str]
    operator: Operator = Nobody()
    images: tuple[Path, ...] = ()
    quiet: bool = False
    listeners: tuple[Listener, ...] = ()
    surroundings: Surroundings | None = None


class TaskEnded(Frozen):
    """How a task ended."""

    exit_code: int
    session_id: str
    finished: TurnFinished | None


async def run_task(request: TaskRequest) -> TaskEnded:
    """Run the task; signals are ours from here to the printer's last line.

    :raises Exception: what keeps the session from being opened or stored, after the printer's last line.
    """
    run = _Run(request)
    with _signals(run.interrupt):
        try:
            finished = await _send(request, run)
        except asyncio.CancelledError:
            if not run.interrupted:
                raise
            finished = INTERRUPTED_TURN
        except Exception as error:
            run.fail(str(error))
            raise
        code = run.finish(finished)
    return TaskEnded(exit_code=code, session_id=run.session_id, finished=finished)


async def _send(request: TaskRequest, run: _Run) -> TurnFinished:
    images = _read_images(request.images)
    session = await open_session(request.options, run.hear, request.text, request.environ, request.surroundings)
    run.session = session
    try:
        # An interrupt of the opening is heard here at the latest, where the session can be closed.
        await checkpoint()
        if run.interrupted:
            return INTERRUPTED_TURN
        media = MediaStore(request.options.home.media)
        attached = tuple(media.put(data, name) for name, data in images)
        return await session.send(request.text, attached)
    finally:
        await session.close()


def execute_task(request: TaskRequest) -> TaskEnded:
    """Run the task in a loop of its own, to its printer's last line.

    :raises Exception: as :func:`run_task`.
    :raises KeyboardInterrupt: when a second signal came while code that never waits held the first one up.
    """
    try:
        return run_to_end(run_task(request))
    except KeyboardInterrupt:
        with contextlib.suppress(OSError):
            detail = "The run was interrupted while something in it could not be ended."
            request.printer.finish(ExitCode.INTERRUPTED, "interrupted", detail, None)
        raise


class _Run:
    """Hands each event to the printer, the listeners and the operator."""

    def __init__(self, request: TaskRequest) -> None:
        self._request = request
        self._task = asyncio.current_task()
        self.session: Session | None = None
        self.interrupted = False
        self.pipe_is_closed = False

    @property
    def session_id(self) -> str:
        """The session's id, empty before it is open."""
        return self.session.id if self.session is not None else ""

    def interrupt(self) -> None:
        """End the turn, or the opening of the session when there is none yet."""
        self.interrupted = True
        if self.session is not None:
            self.session.interrupt()
        elif self._task is not None:
            self._task.cancel()

    def hear(self, event: Event) -> None:
        for listener in self._request.listeners:
            listener(event)
        self._print(event)
        if isinstance(event, NoteAdded) and not self._request.quiet:
            note = event.note
            if note.severity is not Severity.INFO or note.source == "crystal":
                self._report(f"note: {note.text}")
        if isinstance(event, (ApprovalAsked, QuestionAsked)) and self.session is not None:
            self._request.operator.hear(event, self.session)

    def _print(self, event: Event) -> None:
        if self.pipe_is_closed:
            return
        try:
            self._request.printer(event)
        except OSError as error:
            self._lose_output(error)
            self.interrupt()

    def _lose_output(self, error: OSError) -> None:
        self.pipe_is_closed = True
        if not isinstance(error, BrokenPipeError):
            self._report(f"stdout cannot be written: {error.strerror or error}.")

    def fail(self, detail: str) -> None:
        """Have the printer write its last lines for a run that failed outside its turn."""
        if not self.pipe_is_closed:
            with contextlib.suppress(OSError):
                self._request.printer.finish(ExitCode.INVALID, "invalid", detail, None)

    def finish(self, finished: TurnFinished) -> ExitCode:
        """Have the printer write its last lines; return the exit code, to which a lost output belongs."""
        code = ExitCode.INTERRUPTED if self.pipe_is_closed else exit_code_of(finished)
        detail = _denied_sentence(finished) if code is ExitCode.DENIED else finished.detail
        if not self.pipe_is_closed:
            reason = "denied" if code is ExitCode.DENIED else finished.stop_reason.value
            try:
                self._request.printer.finish(code, reason, detail, finished)
            except OSError as error:
                self._lose_output(error)
                code = ExitCode.INTERRUPTED
        if self.pipe_is_closed:
            detail = "Nobody reads the output any more, so the run ended; its session is saved."
        if code is not ExitCode.DONE:
            self._report(detail)
        return code

    def _report(self, text: str) -> None:
        # A reader of stderr that went away must not end the run.
        with contextlib.suppress(OSError):
            self._request.errors.write(f"crystal: {safe_text(text)}\n")
            self._request.errors.flush()


def _denied_sentence(finished: TurnFinished) -> str:
    return f"The task is done, but {finished.denied} prompt(s) were denied or dismissed."


def _read_images(paths: tuple[Path, ...]) -> tuple[tuple[str, bytes], ...]:
    read = []
    for path in paths:
        shown = printable_name(str(path))
        try:
            data = path.read_bytes()
        except OSError as error:
            raise SetupError(f"--image {shown}: {error.strerror or error}") from error
        if not sniff_image(data):
            raise SetupError(f"--image {shown}: it is not a png, jpeg, gif or webp image.")
        if len(data) > IMAGE_BYTES:
            raise SetupError(f"--image {shown}: it has {len(data)} bytes; at most {IMAGE_BYTES} can be attached.")
        read.append((printable_name(path.name), data))
    return tuple(read)


@contextlib.contextmanager
def _signals(interrupt: Callable[[], None]) -> Iterator[None]:
    """Let SIGINT, SIGTERM and SIGHUP end the run cleanly; outside the main thread signals are not ours.

    The handler interrupts at once, as :class:`asyncio.Runner` does for SIGINT: one of the loop's own handlers would be
    heard only some passes later, when a turn that never waits may be over. A signal that comes when an earlier one has
    not been heard for a while meets code that never waits, such as a plugin's endless loop, and raises in it.
    """
    loop = asyncio.get_running_loop()
    unheard_since: float | None = None

    def hear() -> None:
        nonlocal unheard_since
        unheard_since = None

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal unheard_since
        if unheard_since is None:
            unheard_since = time.monotonic()
        elif time.monotonic() - unheard_since >= HELD_UP_SECONDS:
            raise KeyboardInterrupt
        interrupt()
        loop.call_soon_threadsafe(hear)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
