"""Commands without a terminal: run one, read it as it prints, end it with everything it started.

Each runs below a keeper, a small process of :mod:`crystal.workspace.programs.keeper_process` that does the starting
and the ending. Knows no tools.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Sequence
from enum import Enum, auto
from pathlib import Path
from typing import NamedTuple, TypeVar

from crystal.workspace.programs.input_pipe import InputPipe
from crystal.workspace.programs.output_pipe import OutputPipe, Receive

READ_BYTES = 1 << 19
"""The most that one read takes."""

DRAIN_SECONDS = 0.1
"""How long output of what an ended command left behind is still read; a left job holds up no call."""

ANSWER_SECONDS = 1.0
"""How long a keeper may take to end a command before it is helped; it takes milliseconds unless it was stopped."""

END_SECONDS = 6.0
"""How long is waited for that at all; a keeper says a second earlier that something cannot be ended, and goes on."""

REFUSAL_SECONDS = 1.0
"""How long a command that closed its input unread may take to end by itself; most such are about to."""

_BOOT = "import sys; sys.path.append(sys.argv[1]); import keeper_process; keeper_process.main()"

Outcome = TypeVar("Outcome")


class ProcessEnd(NamedTuple):
    """How a command ended.

    :param status: the exit status, negative for the number of the signal that ended it; ``None`` when the process
        could not be waited for.
    :param input_refused: whether it was ended because it closed its input unread and went on.
    """

    status: int | None
    timed_out: bool
    input_refused: bool = False


class KeeperLost(Exception):
    """The keeper of a running command was ended from outside."""


class State(Enum):
    """What a keeper is doing: nothing, a command, staying with jobs, or ending itself."""

    IDLE = auto()
    RUNNING = auto()
    HOLDING = auto()
    ENDING = auto()


class Keepers:
    """The keepers of one session. A keeper serves one command after the other, until one leaves jobs behind.

    Such a keeper stays with the jobs, throws away what they print and ends them when this is closed or when the host
    process is gone. The next command gets another one.
    """

    def __init__(self) -> None:
        self._spare: _Keeper | None = None
        self._busy: list[_Keeper] = []
        self._buffer = bytearray(READ_BYTES)  # every read fills it and hands it on before the next one

    def warm(self) -> None:
        """Start a keeper for the next command, unless there is one.

        :raises OSError: it could not be started.
        """
        if self._spare is None:
            self._spare = _Keeper()

    async def run(
        self,
        arguments: Sequence[bytes],
        *,
        workspace: Path,
        environment: Sequence[bytes],
        seconds: float | None,
        on_stdout: Receive,
        on_stderr: Receive,
        stdin: bytes = b"",
    ) -> ProcessEnd:
        """Run a program in its own session until it ends.

        Jobs that the program leaves behind when it ends by itself are left running. On timeout or cancellation
        everything it started is ended before this returns.

        :param arguments: the absolute path of the program and its arguments.
        :param workspace: the working directory.
        :param environment: entries ``NAME=value``.
        :param seconds: limit of the run; ``None`` for no limit.
        :param on_stdout: gets the bytes as they come; must be quick.
        :param stdin: what stands on its standard input, which ends behind it.
        :raises OSError: the program could not be started.
        :raises KeeperLost: something ended the keeper; what it did is not known.
        """
        keeper = self._take()
        call = _Call(keeper, (on_stdout, on_stderr), self._buffer)
        try:
            return await call.run(os.fsencode(workspace), list(arguments), list(environment), seconds, stdin)
        finally:
            call.close()
            self._put_back(keeper)

    def _take(self) -> _Keeper:
        self._busy = [keeper for keeper in self._busy if not keeper.reap()]
        keeper, self._spare = self._spare, None
        return _Keeper() if keeper is None or keeper.reap() else keeper

    def _put_back(self, keeper: _Keeper) -> None:
        if keeper.state is State.IDLE and self._spare is None:
            self._spare = keeper
            return
        self._busy.append(keeper)
        if keeper.state is State.HOLDING:
            with contextlib.suppress(OSError):  # the next command says so
                self.warm()
        else:
            keeper.dismiss()

    async def close(self) -> None:
        """End every job that was left behind, and the keepers; a later command starts a new one."""
        keepers = [*self._busy, *([self._spare] if self._spare else [])]
        self._spare, self._busy = None, []
        await asyncio.gather(*(keeper.end() for keeper in keepers))


class _Keeper:
    """One keeper process. Belongs to no event loop."""

    def __init__(self) -> None:
        own, theirs = socket.socketpair()
        own.setblocking(False)
        folder = os.path.dirname(os.path.abspath(__file__))
        try:
            with theirs:
                self.pid = os.posix_spawn(
                    sys.executable,
                    [sys.executable, "-I", "-S", "-B", "-c", _BOOT, folder],
                    os.environ,
                    file_actions=[
                        (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
                        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                    ],
                )
        except BaseException:
            own.close()
            raise
        self.socket = own
        self.state = State.IDLE
        self._reaped = False

    def reap(self) -> bool:
        """Return whether the process has ended, and forget it then."""
        if not self._reaped:
            try:
                self._reaped = os.waitpid(self.pid, os.WNOHANG)[0] != 0
            except ChildProcessError:
                self._reaped = True  # somebody else in this process has waited for it
            if self._reaped:
                self.socket.close()
        return self._reaped

    def dismiss(self) -> None:
        """Say that the host is done with this keeper, upon which it ends everything below it and itself."""
        self.state = State.ENDING
        self.signal(signal.SIGCONT)
        with contextlib.suppress(OSError):  # it has ended already
            self.socket.shutdown(socket.SHUT_WR)

    def signal(self, number: signal.Signals) -> None:
        """Send the keeper a signal, unless it has ended."""
        if not self._reaped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    async def end(self) -> None:
        """Have everything below ended, and wait for it."""
        self.dismiss()
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(END_SECONDS):
                with contextlib.suppress(OSError):
                    while not self._reaped and await loop.sock_recv(self.socket, 4096):
                        pass
        except TimeoutError:
            self.socket.close()  # it goes on with what cannot be ended so soon; without it nobody would
            return
        self._wait()

    def _wait(self) -> None:
        """Wait for the end of the process, which has closed its connection: for next to nothing."""
        if not self._reaped:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
            self._reaped = True
            self.socket.close()

    def __del__(self) -> None:
        # A session that was never closed: the keeper ends when its connection does.
        if "socket" in self.__dict__:
            self.socket.close()


class _Call:
    """One command on one keeper; belongs to the running event loop."""

    def __init__(self, keeper: _Keeper, receivers: tuple[Receive, Receive], buffer: bytearray) -> None:
        self._loop = asyncio.get_running_loop()
        self._keeper = keeper
        self._receivers = receivers
        self._buffer = buffer
        self._pipes: list[OutputPipe] = []
        self._input: InputPipe | None = None
        self._heard = b""
        self._ended: asyncio.Future[int | None] = self._loop.create_future()
        # The end, or what comes before it: the limit, or that the input is refused, which is True.
        self._news: asyncio.Future[bool] = self._loop.create_future()
        self._rest: asyncio.Future[str] = self._loop.create_future()
        keeper.state = State.RUNNING

    async def run(
        self, workspace: bytes, arguments: list[bytes], environment: list[bytes], seconds: float | None, stdin: bytes
    ) -> ProcessEnd:
        """Start the command and see it to its end; see :meth:`Keepers.run`."""
        await self._start(workspace, arguments, environment, stdin)
        # While the keeper is starting the program.
        for pipe in self._pipes:
            pipe.read(self._loop)
        self._loop.add_reader(self._keeper.socket.fileno(), self._hear)
        if self._input is not None:
            self._input.write(self._loop)
        limit = None if seconds is None else self._loop.call_later(seconds, _settle, self._news, False)
        timed_out = refused = False
        try:
            news = await self._news
            if not self._ended.done():
                refused, timed_out = news, not news
                await self._kill()
        except asyncio.CancelledError:
            await self._kill()
            raise
        finally:
            if limit is not None:
                limit.cancel()
        status = self._ended.result() if self._ended.done() else None
        await self._finish()
        return ProcessEnd(status, timed_out, refused)

    async def _start(self, workspace: bytes, arguments: list[bytes], environment: list[bytes], stdin: bytes) -> None:
        from crystal.workspace.programs.keeper_process import RUN, encode_message, encode_request

        writing: list[int] = []
        try:
            for receive in self._receivers:
                reading, end = os.pipe()
                writing.append(end)
                self._pipes.append(OutputPipe(reading, self._buffer, receive, self._loop.create_future()))
            if stdin:
                end, own = os.pipe()
                writing.append(end)
                self._input = InputPipe(own, stdin, self._refuse_input)
            message = encode_message(RUN, encode_request(workspace, arguments, environment))
            sent = socket.send_fds(self._keeper.socket, [message], writing)
            if sent < len(message):
                await self._loop.sock_sendall(self._keeper.socket, memoryview(message)[sent:])
        except (BrokenPipeError, ConnectionResetError):
            self._keeper.state = State.ENDING
            raise KeeperLost from None
        except asyncio.CancelledError:
            await self._keeper.end()
            raise
        finally:
            for end in writing:
                os.close(end)

    def _hear(self) -> None:
        """Take what the keeper says; its end is the end of everything that is waited for."""
        try:
            data = self._keeper.socket.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose()
        *lines, self._heard = (self._heard + data).split(b"\n")
        for line in lines:
            self._understand(*line.decode("ascii").split(" "))

    def _understand(self, word: str, *told: str) -> None:
        if word == "refused":
            self._keeper.state = State.IDLE
            number = int(told[0])
            self._end(OSError(number, os.strerror(number), told[1]))
        elif word == "ended":
            self._keeper.state = State.IDLE if told[1] == "clean" else State.RUNNING
            self._end(None if told[0] == "?" else int(told[0]))
        else:
            _settle(self._rest, told[0])

    def _end(self, outcome: int | Exception | None) -> None:
        _settle(self._ended, outcome)
        _settle(self._news, False)

    def _refuse_input(self) -> None:
        """Give a command that closed its input unread the time to end by itself."""
        self._loop.call_later(REFUSAL_SECONDS, _settle, self._news, True)

    def _lose(self) -> None:
        self._loop.remove_reader(self._keeper.socket.fileno())
        self._keeper.state = State.ENDING
        if not self._ended.done():
            self._end_printers()
        self._end(KeeperLost())
        _settle(self._rest, "left")

    async def _kill(self) -> None:
        """End the command and all it started; a keeper that does not answer is let go, and goes on with it."""
        from crystal.workspace.programs.keeper_process import KILL, encode_message

        try:
            self._keeper.socket.send(encode_message(KILL))
        except OSError:
            self._keeper.state = State.ENDING
            return
        # Whatever the command did to its keeper, such as stopping it, must not help it.
        self._keeper.signal(signal.SIGCONT)
        await asyncio.wait([self._rest], timeout=ANSWER_SECONDS)
        if not self._rest.done():
            self._end_printers()
            self._keeper.signal(signal.SIGCONT)
            await asyncio.wait([self._rest], timeout=END_SECONDS - ANSWER_SECONDS)
        clean = self._rest.done() and self._rest.result() == "clean"
        self._keeper.state = State.IDLE if clean else State.ENDING

    def _end_printers(self) -> None:
        """End whatever holds the writing end of one of the pipes: what can be found without the keeper."""
        if sys.platform == "linux":
            # A keeper that the command stopped early may hold them, too, and has the rest to end.
            spared = {os.getpid(), self._keeper.pid}
            _end_holders(
                {f"pipe:[{os.fstat(pipe.descriptor).st_ino}]" for pipe in self._pipes if not pipe.ended.done()}, spared
            )

    async def _finish(self) -> None:
        """Read what is left in the pipes, and leave jobs that hold them to the keeper."""
        left = self._keeper.state is State.RUNNING
        # Nobody is left to write when all have ended, unless an outsider was given a pipe.
        unread = [pipe.ended for pipe in self._pipes if not pipe.ended.done()]
        if unread:
            await asyncio.wait(unread, timeout=DRAIN_SECONDS if left else END_SECONDS)
        for pipe in self._pipes:
            pipe.take()
        if not left:
            return
        from crystal.workspace.programs.keeper_process import LET_GO, encode_message

        try:
            open_pipes = [pipe.descriptor for pipe in self._pipes if not pipe.ended.done()]
            socket.send_fds(self._keeper.socket, [encode_message(LET_GO)], open_pipes)
        except OSError:
            self._keeper.state = State.ENDING
            return
        await asyncio.wait([self._rest], timeout=ANSWER_SECONDS)
        if self._rest.done() and self._keeper.state is State.RUNNING:
            self._keeper.state = State.HOLDING if self._rest.result() == "left" else State.IDLE

    def close(self) -> None:
        """Let go of the pipes and of the connection; a keeper that is still at work then ends it."""
        if self._keeper.socket.fileno() >= 0:
            self._loop.remove_reader(self._keeper.socket.fileno())
        for pipe in self._pipes:
            pipe.close()
        if self._input is not None:
            self._input.close()


def _settle(future: asyncio.Future[Outcome], outcome: Outcome | Exception) -> None:
    """Give a future its outcome unless it has one; an exception is remembered as retrieved."""
    if future.done():
        return
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
        future.exception()
    else:
        future.set_result(outcome)


def _end_holders(pipes: set[str], spared: set[int]) -> None:
    for pid in {int(name) for name in os.listdir("/proc") if name.isdigit()} - spared:
        with contextlib.suppress(OSError):  # it has ended, or belongs to somebody else
            if any(os.readlink(f"/proc/{pid}/fd/{name}") in pipes for name in os.listdir(f"/proc/{pid}/fd")):
                os.kill(pid, signal.SIGKILL)
