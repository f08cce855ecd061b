"""Run one task from open to close: the events to a printer, the signals to the session, the end to an exit code.

``crystal run``, ``crystal demo`` and the test kit all come through here.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Protocol, TextIO

from crystal.cli.exit_codes import ExitCode
from crystal.cli.log import LogWriter
from crystal.cli.safe_text import safe_text
from crystal.cli.turn_ending import exit_code_of
from crystal.engine.answers import Deny, Dismiss
from crystal.engine.opening import open_session
from crystal.engine.preflight import SessionOptions, SetupError
from crystal.engine.session import Session
from crystal.engine.state import Surroundings
from crystal.store.media import MediaStore, sniff_image
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
    """Run the task.

    :raises Exception: what keeps the session from being opened or stored, after the printer's last line.
    """
    run = _Run(request)
    try:
        images = _read_images(request.images)
        session = await open_session(request.options, run.hear, request.text, request.environ, request.surroundings)
        run.session = session
        with _signals(session):
            try:
                media = MediaStore(request.options.home.media)
                attached = tuple(media.put(data, name) for name, data in images)
                finished = await session.send(request.text, attached)
            finally:
                await session.close()
    except Exception as error:
        run.fail(str(error))
        raise
    code = ExitCode.INTERRUPTED if run.pipe_is_closed else exit_code_of(finished)
    run.finish(code, finished)
    return TaskEnded(exit_code=code, session_id=session.id, finished=finished)


class _Run:
    """Hands each event to the printer, the listeners and the operator."""

    def __init__(self, request: TaskRequest) -> None:
        self._request = request
        self.session: Session | None = None
        self.pipe_is_closed = False

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
            self.pipe_is_closed = True
            if not isinstance(error, BrokenPipeError):
                self._report(f"stdout cannot be written: {error.strerror or error}.")
            if self.session is not None:
                self.session.interrupt()

    def fail(self, detail: str) -> None:
        """Have the printer write its last lines for a run that failed outside its turn."""
        if not self.pipe_is_closed:
            with contextlib.suppress(OSError):
                self._request.printer.finish(ExitCode.INVALID, "invalid", detail, None)

    def finish(self, code: ExitCode, finished: TurnFinished) -> None:
        if code is not ExitCode.DONE:
            self._report(finished.detail or _denied_sentence(finished))
        if self.pipe_is_closed:
            return
        with contextlib.suppress(OSError):
            reason = "denied" if code is ExitCode.DENIED else finished.stop_reason.value
            detail = finished.detail or (_denied_sentence(finished) if code is ExitCode.DENIED else "")
            self._request.printer.finish(code, reason, detail, finished)

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
        try:
            data = path.read_bytes()
        except OSError as error:
            raise SetupError(f"--image {path}: {error.strerror or error}") from error
        if not sniff_image(data):
            raise SetupError(f"--image {path}: it is not a png, jpeg, gif or webp image.")
        if len(data) > IMAGE_BYTES:
            raise SetupError(f"--image {path}: it has {len(data)} bytes; at most {IMAGE_BYTES} can be attached.")
        read.append((path.name, data))
    return tuple(read)


@contextlib.contextmanager
def _signals(session: Session) -> Iterator[None]:
    """Let SIGINT, SIGTERM and SIGHUP end the turn cleanly; outside the main thread signals are not ours.

    The handler interrupts at once, as :class:`asyncio.Runner` does for SIGINT: one of the loop's own handlers would be
    heard only some passes later, when a turn that never waits may be over.
    """
    loop = asyncio.get_running_loop()

    def interrupt(number: int, frame: FrameType | None) -> None:
        session.interrupt()
        loop.call_soon_threadsafe(lambda: None)  # wakes a loop that waits for input

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def contained_output() -> Iterator[None]:
    """Send what plugins and in-process tools print to the log: it may hold anything, and the formats stay whole."""
    printed, complained = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = LogWriter(), LogWriter()
    try:
        yield
    finally:
        sys.stdout, sys.stderr = printed, complained
