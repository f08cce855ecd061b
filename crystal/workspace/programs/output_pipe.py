"""The reading end of a command's output: many bytes a read, and a flood left to gather. Keeps nothing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Callable

PIPE_BYTES = 1 << 20
"""The pipe's size where the system grants it; a command that floods its output is then waited for less often."""

_BURST_BYTES = 1 << 14
"""A read of more bytes found the pipe filling faster than it is read."""

GATHER_SECONDS = 50e-6
"""How long a flood is left to gather before the next read: many small reads would cost more than the flood itself."""

Receive = Callable[[memoryview], None]
"""Takes the bytes of one read; they are overwritten by the next one."""


class OutputPipe:
    """The reading end of one pipe.

    :param ended: gets its result at the end of the file, or when the pipe is closed before.
    """

    def __init__(self, descriptor: int, buffer: bytearray, receive: Receive, ended: asyncio.Future[None]) -> None:
        self.descriptor = descriptor
        self.ended = ended
        self._buffers = [buffer]
        self._view = memoryview(buffer)
        self._receive = receive
        self._loop: asyncio.AbstractEventLoop | None = None
        self._flood = False
        self._plenty = False

    def read(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read from now on, whenever there is something."""
        os.set_blocking(self.descriptor, False)
        loop.add_reader(self.descriptor, self.take)
        self._loop = loop

    def take(self) -> None:
        """Read once; an empty read is the end."""
        if self.ended.done():
            return
        if self._flood and not self._plenty:
            time.sleep(GATHER_SECONDS)
        try:
            size = os.readv(self.descriptor, self._buffers)
        except BlockingIOError:
            return
        if not size:
            self.close()
            return
        self._plenty = size > PIPE_BYTES // 4
        if size > _BURST_BYTES and not self._flood:
            self._flood = True
            _widen(self.descriptor)
        self._receive(self._view[:size])

    def close(self) -> None:
        """Stop reading."""
        if self.ended.done():
            return
        self.ended.set_result(None)
        if self._loop is not None:
            self._loop.remove_reader(self.descriptor)
        os.close(self.descriptor)


def _widen(descriptor: int) -> None:
    """Make a pipe larger; a refusal (the user's pipe quota) only makes it slower."""
    if sys.platform == "linux":
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
