"""The program that keeps one command together: starts it, adopts its orphans and ends whatever is left of it.

It runs as a process of its own, between Crystal and the command, so that it outlives neither: when Crystal is gone,
however it went, everything below is ended. It imports nothing but the standard library and knows no tools.

Linux: it is a sub-reaper, so what the command starts, ``setsid`` and double-forked processes too, is always below it
and nothing else ever is. Elsewhere it knows the command's process group only.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import socket
import sys
import time

SWEEP_SECONDS = 5.0
"""How long ended processes may take to be gone before the host is told so; only an uninterruptible wait in the kernel,
or a flood of new processes, takes longer."""

HOST_CHECK_SECONDS = 5.0
"""How often it is made sure that the host lives, should a fork of the host hold the connection open after its death."""

DISCARD_BYTES = 1 << 16
DISCARD_PAUSE_SECONDS = 0.02
"""What background jobs print is thrown away at no more than this pace, so that a flood costs next to nothing."""

_PR_SET_CHILD_SUBREAPER = 36

RUN, KILL, LET_GO = b"R", b"K", b"L"
"""What the host says with :func:`encode_message`. ``RUN`` brings :func:`encode_request`, the writing ends of two pipes
and, where the command gets an input, the reading end of a third; ``LET_GO`` brings the reading ends of the two. The
answers are lines: ``refused ERRNO PART`` or ``ended STATUS REST`` to ``RUN``, ``swept REST`` to ``KILL`` and
``let REST`` to ``LET_GO``; REST is ``clean`` or ``left``."""


_HEADER = 5


def encode_message(word: bytes, body: bytes = b"") -> bytes:
    """Return a message: its word, the length of its body in four bytes, the body."""
    return word + len(body).to_bytes(4, "big") + body


def encode_request(workspace: bytes, arguments: list[bytes], environment: list[bytes]) -> bytes:
    """Return the body of a ``RUN``: none of its parts can hold a NUL, for the system could not be given it."""
    return b"\0".join([workspace, b"%d" % len(arguments), *arguments, *environment])


class _HostGone(Exception):
    """The connection has ended."""


class _Keeper:
    """The state of the process: a command that runs, or jobs that one left behind.

    :param control: the blocking connection to the host.
    """

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._host = os.getppid()
        self._root = 0
        self._group = 0
        self._status: int | None = None
        self._holding = False
        self._woken, waker = os.pipe()
        for descriptor in (self._woken, waker):
            os.set_blocking(descriptor, False)
        # What Python and whoever started it ignore, such as SIGPIPE or SIGHUP, a command must not.
        self._ignored = [number for number in signal.valid_signals() if signal.getsignal(number) is signal.SIG_IGN]
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, frame: self._leave())
        self._poll = select.poll()
        self._poll.register(control.fileno(), select.POLLIN)
        self._poll.register(self._woken, select.POLLIN)

    def serve(self) -> None:
        """Do what the host says until it is gone, or until the last job that was left behind has ended."""
        with contextlib.suppress(_HostGone, BrokenPipeError, ConnectionResetError):
            while os.getppid() == self._host:
                for descriptor, _ in self._poll.poll(HOST_CHECK_SECONDS * 1000):
                    if descriptor == self._woken:
                        self._notice_ends()
                    elif descriptor == self._control.fileno():
                        self._hear()
                    else:
                        self._discard(descriptor)
        self._leave()

    def _leave(self) -> None:
        """End when nothing is left below; nobody else would end what still forks, so there is no limit."""
        self._sweep(math.inf)
        os._exit(0)

    def _hear(self) -> None:
        header, descriptors, _, _ = socket.recv_fds(self._control, _HEADER, 3)
        if not header:
            raise _HostGone
        header += self._receive(_HEADER - len(header))
        word, body = header[:1], self._receive(int.from_bytes(header[1:], "big"))
        if word == RUN:
            self._run(body, descriptors)
        elif word == KILL:
            rest = self._sweep(SWEEP_SECONDS)
            if self._root:
                self._tell_end(rest)
            self._say(f"swept {rest}")
        elif word == LET_GO:
            rest = self._reap()
            self._say(f"let {rest}")
            self._hold(rest, descriptors)

    def _receive(self, size: int) -> bytes:
        parts = []
        while size:
            part = self._control.recv(size)
            if not part:
                raise _HostGone
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _say(self, line: str) -> None:
        self._control.sendall(f"{line}\n".encode("ascii"))

    def _run(self, request: bytes, descriptors: list[int]) -> None:
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        workspace, count, *rest = request.split(b"\0")
        arguments, environment = rest[: int(count)], rest[int(count) :]
        part = "workspace"
        try:
            os.chdir(workspace)
            part = "program"
            self._root = self._group = os.posix_spawn(
                arguments[0],
                arguments,
                dict(entry.split(b"=", 1) for entry in environment),
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, descriptors[2], 0)
                    if len(descriptors) > 2
                    else (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, descriptors[0], 1),
                    (os.POSIX_SPAWN_DUP2, descriptors[1], 2),
                ],
                setsid=True,
                setsigmask=(),
                setsigdef=self._ignored,
            )
        except OSError as error:
            self._say(f"refused {error.errno} {part}")
        else:
            self._status = None
        finally:
            os.chdir("/")
            for descriptor in descriptors:
                os.close(descriptor)

    def _notice_ends(self) -> None:
        self._clear_woken()
        rest = self._reap()
        if self._root and self._status is not None:
            self._tell_end(rest)
        elif self._holding and rest == "clean":
            self._leave()

    def _tell_end(self, rest: str) -> None:
        # A command whose end cannot be waited for, such as one of another user, has no status.
        self._say(f"ended {'?' if self._status is None else self._status} {rest}")
        self._root = 0

    def _reap(self) -> str:
        """Collect every child that has ended and say whether any is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return "left" if sys.platform != "linux" and _group_lives(self._group) else "clean"
            if pid == 0:
                return "left"
            if pid == self._root:
                self._status = os.waitstatus_to_exitcode(status)

    def _sweep(self, seconds: float) -> str:
        """End everything below until nothing is left, or for ``seconds``.

        What is killed leaves its own children to this process, so that each pass finds those; a pass also ends whole
        process groups, in one step each, so that a group cannot escape by forking. Only own children and their groups
        are killed: nobody else collects those, so that their numbers cannot come to mean another process.
        """
        latest = time.monotonic() + seconds
        while (rest := self._reap()) == "left" and time.monotonic() < latest:
            if sys.platform == "linux":
                allowed = [_end(pid) for pid in _children()]
            else:
                allowed = [_end_group(self._group)]
            if allowed and not any(allowed):
                break
            self._poll_woken()
        return rest

    def _poll_woken(self) -> None:
        waiting = select.poll()
        waiting.register(self._woken, select.POLLIN)
        if waiting.poll(1):
            self._clear_woken()

    def _clear_woken(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._woken, 4096)

    def _hold(self, rest: str, descriptors: list[int]) -> None:
        """Stay with jobs that were left behind, and let them print into nothing."""
        self._holding = rest == "left"
        for descriptor in descriptors:
            if self._holding:
                os.set_inheritable(descriptor, False)
                self._poll.register(descriptor, select.POLLIN)
            else:
                os.close(descriptor)

    def _discard(self, descriptor: int) -> None:
        try:
            ended = not os.read(descriptor, DISCARD_BYTES)
        except BlockingIOError:
            return
        if ended:
            self._poll.unregister(descriptor)
            os.close(descriptor)
        else:
            time.sleep(DISCARD_PAUSE_SECONDS)


def _end(pid: int) -> bool:
    """Kill a process with its group; return whether that was allowed."""
    try:
        _end_group(os.getpgid(pid))
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


def _end_group(group: int) -> bool:
    # To kill group 1 would be to kill every process there is.
    if group <= 1 or group == os.getpgrp():
        return False
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


def _children() -> list[int]:
    own = os.getpid()
    try:
        with open(f"/proc/{own}/task/{own}/children", "rb") as file:
            return [int(pid) for pid in file.read().split()]
    except FileNotFoundError:
        return [pid for name in os.listdir("/proc") if name.isdigit() and _parent(pid := int(name)) == own]


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The command's name stands in parentheses and may itself hold spaces and parentheses.
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return group != 0


def _adopt_orphans() -> None:
    if sys.platform == "linux":
        import ctypes

        zero = ctypes.c_ulong(0)
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1), zero, zero, zero)


def _close_inherited() -> None:
    """Close what the host left inheritable, so that no command gets it."""
    for name in os.listdir("/dev/fd"):
        if int(name) > 2:
            with contextlib.suppress(OSError):  # the listing's own descriptor
                os.close(int(name))


def main() -> None:
    """Serve the connection that standard input is; the process ends here."""
    _close_inherited()
    os.setsid()
    os.chdir("/")
    _adopt_orphans()
    control = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    os.close(nothing)
    _Keeper(control).serve()
