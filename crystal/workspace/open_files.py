"""Opening what the fence admitted, without being led elsewhere between the decision and the use.

Paths given here are real paths; what is opened is checked to be that very path. Named pipes, sockets and
devices are refused before they are opened, so nothing here can block.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from crystal.types._frozen import Frozen
from crystal.workspace.fence import PathRefused

_READ_PIECE = 1 << 20


class FileRefused(PathRefused):
    """A path that may be used but not in this way. The message is one sentence that names it and the mend."""


class FileMissing(FileRefused):
    """There is no file under that name."""


class OpenFile(Frozen):
    """A regular file open for reading.

    :param status: what the system says about it since it was opened.
    """

    descriptor: int
    status: os.stat_result


@contextmanager
def open_regular(real: str, shown: str) -> Iterator[OpenFile]:
    """Open a regular file for reading.

    :param real: absolute real path.
    :param shown: the path as the message of a refusal names it.
    :raises FileRefused: when it is missing, no regular file, or no longer what the path meant when it was
        decided.
    :raises OSError: when the system does not allow it.
    """
    try:
        require_regular(os.lstat(real), shown)
        descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY)
    except (FileNotFoundError, NotADirectoryError):
        raise FileMissing(f"There is no file {shown}; list its folder to see what is there.") from None
    try:
        status = os.fstat(descriptor)
        require_regular(status, shown)
        _require_same(descriptor, real, shown)
        yield OpenFile(descriptor=descriptor, status=status)
    finally:
        os.close(descriptor)


def require_regular(status: os.stat_result, shown: str) -> None:
    """Refuse everything but a regular file.

    :raises FileRefused: naming what it is instead.
    """
    mode = status.st_mode
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise FileRefused(f"{shown} is a folder; use list to see its entries or name a file in it.")
    raise FileRefused(f"{shown} is {describe_kind(mode)}, not a regular file; name a regular file.")


def describe_kind(mode: int) -> str:
    """Name the kind of a file from its ``st_mode``, with its article."""
    if stat.S_ISREG(mode):
        return "a file"
    if stat.S_ISDIR(mode):
        return "a folder"
    if stat.S_ISLNK(mode):
        return "a link that leads nowhere or round in a loop"
    if stat.S_ISFIFO(mode):
        return "a named pipe"
    if stat.S_ISSOCK(mode):
        return "a socket"
    return "a device"


def read_bytes(opened: OpenFile, limit: int) -> bytes:
    """Read the file from where it stands: all of it, or its next ``limit`` bytes."""
    pieces: list[bytes] = []
    left = limit
    size = max(4096, min(opened.status.st_size + 1, _READ_PIECE))
    while left > 0 and (piece := os.read(opened.descriptor, min(left, size))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


@contextmanager
def open_folder(real: str, shown: str, *, create: bool = False) -> Iterator[int]:
    """Open a folder and yield its descriptor, for work relative to it that no swapped link can lead astray.

    :param real: absolute real path.
    :param shown: the path as the message of a refusal names it.
    :param create: make the folder and its parents when they are missing.
    :raises FileRefused: when it is missing and not to be made, no folder, or no longer what the path meant.
    :raises OSError: when the system does not allow it.
    """
    missing: list[str] = []
    existing = real
    while True:
        try:
            descriptor = os.open(existing, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            break
        except FileNotFoundError:
            if not create or existing == "/":
                raise FileRefused(f"There is no folder {shown}; list its parent to see what is there.") from None
            existing, _, name = existing.rpartition("/")
            existing = existing or "/"
            missing.append(name)
        except OSError as error:
            if isinstance(error, NotADirectoryError) or os.path.islink(existing):
                raise FileRefused(f"{shown} is not a folder or lies below a file; choose another path.") from None
            raise
    try:
        _require_same(descriptor, existing, shown)
        while missing:
            name = missing.pop()
            # Someone may make it in the meantime; opening it without following a link tells whether it will do.
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=descriptor)
            child = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = child
        yield descriptor
    finally:
        os.close(descriptor)


def _require_same(descriptor: int, real: str, shown: str) -> None:
    """Make sure that an open descriptor is the path that was decided on, not what a swapped link led to.

    :raises FileRefused: when it is not.
    """
    try:
        if os.readlink(f"/proc/self/fd/{descriptor}") == real:
            return
    except OSError:
        # No /proc: macOS, and containers that do not mount it. The comparison below needs none.
        pass
    try:
        same = os.path.realpath(real) == real and os.path.samestat(os.fstat(descriptor), os.lstat(real))
    except OSError:
        same = False
    if not same:
        raise FileRefused(f"{shown} changed its place while it was being opened; try again.")
