"""One child process with everything it starts: begin it without a terminal, read it, end the whole tree.

Linux: the child is made a sub-reaper before it executes, so orphans of the call (``setsid`` and double-forked
ones too) become its children and can be found and ended. Elsewhere its process group is ended. Knows no tools.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from subprocess import Popen

READ_BYTES = 1 << 20
"""One read, and the pipe's size where the system grants it; large reads keep a flood of output cheap."""

DRAIN_SECONDS = 0.1
"""How long output of what an ended process left behind is still read; a left job holds up no call."""

REAP_SECONDS = 5.0
"""How long an ended process may take to be gone; only an uninterruptible wait in the kernel takes longer."""

SWEEPS = 1000
"""Passes over the tree before the rest is given up; each ends whole process groups, so two or three are usual."""

_PR_SET_CHILD_SUBREAPER = 36


class ProcessEnd(NamedTuple):
    """How a process ended.

    :param status: the exit status, negative for the number of the signal that ended it; ``None`` when the
        process could not be reaped.
    """

    status: int | None
    timed_out: bool


async def run_tree(
    arguments: Sequence[str],
    *,
    workspace: Path,
    environment: Mapping[str, str],
    seconds: float | None,
    on_stdout: Callable[[bytes], None],
    on_stderr: Callable[[bytes], None],
) -> ProcessEnd:
    """Run a program in its own session with an empty standard input until it ends.

    Jobs that the program leaves behind when it ends by itself are left running; what they print afterwards is
    not read, so that they get a closed pipe. On timeout or cancellation the whole tree is ended.

    :param workspace: the working directory.
    :param seconds: limit of the run; ``None`` for no limit.
    :param on_stdout: gets the bytes as they come; must be quick.
    :raises OSError: the program could not be started.
    """
    tree = _ProcessTree(arguments, workspace, environment)
    timed_out = False
    try:
        tree.read(on_stdout, on_stderr)
        try:
            async with asyncio.timeout(seconds):
                await tree.ended()
        except TimeoutError:
            timed_out = True
            tree.kill()
            await tree.ended(REAP_SECONDS)
        await tree.drained(DRAIN_SECONDS)
    finally:
        tree.kill()
        try:
            await tree.ended(REAP_SECONDS)
        finally:
            status = tree.close()
    return ProcessEnd(status, timed_out)


class _ProcessTree:
    """A started process, its two pipes and the news of its end; belongs to the running event loop."""

    def __init__(self, arguments: Sequence[str], workspace: Path, environment: Mapping[str, str]) -> None:
        self._loop = asyncio.get_running_loop()
        self._process = _start(arguments, workspace, environment)
        self._pipes: list[_Pipe] = []
        self._ended: asyncio.Future[Any] = self._watch()

    def _watch(self) -> asyncio.Future[Any]:
        self._pidfd = _open_pidfd(self._process.pid)
        if self._pidfd is None:
            return asyncio.ensure_future(asyncio.to_thread(self._process.wait))
        ended: asyncio.Future[Any] = self._loop.create_future()
        self._loop.add_reader(self._pidfd, self._end_seen, ended)
        return ended

    def _end_seen(self, ended: asyncio.Future[Any]) -> None:
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
        if not ended.done():
            ended.set_result(None)

    def read(self, on_stdout: Callable[[bytes], None], on_stderr: Callable[[bytes], None]) -> None:
        """Begin to drain both pipes."""
        for stream, receive in ((self._process.stdout, on_stdout), (self._process.stderr, on_stderr)):
            if stream is not None:
                self._pipes.append(_Pipe(self._loop, stream.fileno(), receive))

    async def ended(self, seconds: float | None = None) -> None:
        """Wait until the process itself has ended, at most ``seconds``."""
        await asyncio.wait([self._ended], timeout=seconds)

    async def drained(self, seconds: float) -> None:
        """Wait until nobody holds the pipes any more, at most ``seconds``; then take what lies in them."""
        await asyncio.wait([pipe.ended for pipe in self._pipes], timeout=seconds)
        for pipe in self._pipes:
            pipe.take()

    def kill(self) -> None:
        """End the process with everything below it; nothing happens when it has ended already."""
        if not self._ended.done() and self._process.returncode is None:
            kill_tree(self._process.pid)

    def close(self) -> int | None:
        """Let go of the pipes and return the exit status."""
        for pipe in self._pipes:
            pipe.close()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
        return self._process.poll()


class _Pipe:
    """The reading end of one pipe on the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, descriptor: int, receive: Callable[[bytes], None]) -> None:
        self._loop = loop
        self._descriptor = descriptor
        self._receive = receive
        self.ended: asyncio.Future[None] = loop.create_future()
        os.set_blocking(descriptor, False)
        _widen(descriptor)
        loop.add_reader(descriptor, self.take)

    def take(self) -> None:
        """Read once; an empty read is the end."""
        if self.ended.done():
            return
        try:
            data = os.read(self._descriptor, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._receive(data)
        else:
            self.close()

    def close(self) -> None:
        """Stop reading."""
        self._loop.remove_reader(self._descriptor)
        if not self.ended.done():
            self.ended.set_result(None)


def _start(arguments: Sequence[str], workspace: Path, environment: Mapping[str, str]) -> Popen[bytes]:
    import subprocess
    import warnings

    with warnings.catch_warnings():
        # Python 3.12 and later warn that a fork with threads may deadlock; the one call made between fork and
        # exec is a system call through a function that was looked up before the fork, which takes no lock.
        warnings.filterwarnings("ignore", message=".*fork", category=DeprecationWarning)
        return subprocess.Popen(
            list(arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=workspace,
            env=dict(environment),
            start_new_session=True,
            preexec_fn=_subreaper_call(),
        )


def _subreaper_call() -> Callable[[], Any] | None:
    """Return the call that makes its process adopt the orphans below it, or ``None`` where there is none."""
    if sys.platform != "linux":
        return None
    import ctypes

    try:
        prctl = ctypes.PyDLL(None).prctl
    except (OSError, AttributeError):
        return None
    zero = ctypes.c_ulong(0)
    return partial(prctl, _PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1), zero, zero, zero)


def _open_pidfd(pid: int) -> int | None:
    """Return a descriptor that becomes readable when ``pid`` ends; ``None`` where the system has none."""
    opener = getattr(os, "pidfd_open", None)
    if opener is None:
        return None
    try:
        return int(opener(pid))
    except OSError:
        return None


def _widen(descriptor: int) -> None:
    """Make a pipe as large as one read; a refusal (the user's pipe quota) only makes it slower."""
    if sys.platform == "linux":
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, READ_BYTES)


def kill_tree(root: int) -> None:
    """End a process that leads its own session, and everything below it.

    The root's group is stopped first and the root itself is ended last: while it stands, every orphan becomes
    its child and is found by the next pass. A pass that finds nobody new is the last one, for what has a pending
    SIGKILL can no longer fork.

    :param root: the process id of an unreaped child that is a session leader.
    """
    if sys.platform == "linux":
        _signal_group(root, signal.SIGSTOP)
        signalled: set[int] = set()
        for _ in range(SWEEPS):
            found = [(pid, group) for pid, group in _descendants(root) if pid not in signalled]
            if not found:
                break
            for pid, group in found:
                if group != root:
                    _signal_group(group, signal.SIGKILL)
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
                signalled.add(pid)
    _signal_group(root, signal.SIGKILL)


def _signal_group(group: int, number: signal.Signals) -> None:
    if group > 1 and group != os.getpgrp():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)


def _descendants(root: int) -> list[tuple[int, int]]:
    """Return process id and group of everything below ``root``, nearest first, as ``/proc`` shows it now."""
    children: dict[int, list[tuple[int, int]]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                # The command's name stands in parentheses and may itself hold spaces and parentheses.
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if len(fields) > 2:
            children.setdefault(int(fields[1]), []).append((int(name), int(fields[2])))
    below = list(children.get(root, ()))
    for pid, _ in below:
        below.extend(children.get(pid, ()))
    return below
