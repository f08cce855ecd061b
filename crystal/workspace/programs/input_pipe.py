"""The writing end of a command's input: written as far as the command reads, closed behind the last byte."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable


class InputPipe:
    """What is written to one pipe.

    :param refused: called when the reader has closed its end before everything was written.
    """

    def __init__(self, descriptor: int, data: bytes, refused: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._left = memoryview(data)
        self._refused = refused
        self._loop: asyncio.AbstractEventLoop | None = None

    def write(self, loop: asyncio.AbstractEventLoop) -> None:
        """Write from now on, whenever there is room."""
        os.set_blocking(self._descriptor, False)
        self._loop = loop
        loop.add_writer(self._descriptor, self._put)
        self._put()

    def _put(self) -> None:
        try:
            self._left = self._left[os.write(self._descriptor, self._left) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self.close()
            self._refused()
            return
        if not self._left:
            self.close()

    def close(self) -> None:
        """Stop writing; the reader finds the end."""
        if self._descriptor < 0:
            return
        if self._loop is not None:
            self._loop.remove_writer(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = -1
