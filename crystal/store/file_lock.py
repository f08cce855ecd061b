"""Locks between processes by ``flock``: held by an open file, freed by the kernel when its process ends in any way."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Self

from crystal.store.errors import HomeFileError
from crystal.store.home import Home, describe


class LockHeld(Exception):
    """Someone else holds the lock.

    :param process: the process id the holder wrote down, or ``None``.
    """

    def __init__(self, process: int | None) -> None:
        self.process = process
        super().__init__("the lock is held")


class FileLock:
    """One held lock; a context manager that releases it."""

    __slots__ = ("_descriptor", "_path")

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Free the lock and remove its file; harmless when done twice."""
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        try:
            os.unlink(self._path)
        except FileNotFoundError:
            pass
        finally:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def take_lock(home: Home, name: str, *, wait: bool) -> FileLock:
    """Take the lock ``name`` of the home.

    :param wait: whether to wait for another holder.
    :raises LockHeld: when someone else holds it and ``wait`` is false.
    :raises HomeFileError: when the lock file cannot be made.
    """
    path = home.locks / f"{name}.lock"
    home.ensure(home.locks)
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise HomeFileError(path, f"the lock cannot be made: {describe(error)}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            process = _holder(descriptor)
            os.close(descriptor)
            raise LockHeld(process) from error
        except BaseException:
            os.close(descriptor)
            raise
        # The holder before us removes the file when it is done; a lock on a removed file would exclude nobody.
        if _is_current(path, descriptor):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
            return FileLock(path, descriptor)
        os.close(descriptor)


def _is_current(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _holder(descriptor: int) -> int | None:
    written = os.pread(descriptor, 20, 0)
    return int(written) if written.isdigit() else None
