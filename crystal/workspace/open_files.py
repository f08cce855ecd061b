"""Opening what the fence admitted, without being led elsewhere between the decision and the use.

Paths given here are real paths. They are walked from the root by descriptors that follow no link, so a link put in
later is met as a link and refused. Named pipes, sockets and devices are refused too, so nothing here can block.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from crystal.types._frozen import Frozen
from crystal.workspace.fence import PathRefused

_READ_PIECE = 1 << 20

_KEPT = os.O_NOFOLLOW | os.O_CLOEXEC
_PASSED = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | _KEPT
"""A folder on the way. Linux needs no permission to read it, as with any path; elsewhere it has to be readable."""


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
    folder, _, name = real.rpartition("/")
    try:
        parent = _walk(folder, shown)
        try:
            require_regular(os.stat(name or ".", dir_fd=parent, follow_symlinks=False), shown)
            descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | _KEPT, dir_fd=parent)
        finally:
            os.close(parent)
    except (FileNotFoundError, NotADirectoryError):
        raise FileMissing(f"There is no file {shown}; list its folder to see what is there.") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _moved(shown) from None
        raise
    try:
        status = os.fstat(descriptor)
        require_regular(status, shown)
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
def open_folder(real: str, shown: str) -> Iterator[int]:
    """Open a folder for listing and yield its descriptor.

    :param real: absolute real path.
    :param shown: the path as the message of a refusal names it.
    :raises FileRefused: when it is missing, no folder, or no longer what the path meant.
    :raises OSError: when the system does not allow it.
    """
    try:
        reached = _walk(real, shown)
        try:
            descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | _KEPT, dir_fd=reached)
        finally:
            os.close(reached)
    except FileNotFoundError:
        raise _missing_folder(shown) from None
    except NotADirectoryError:
        raise _no_folder(shown) from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def enter_folder(real: str, shown: str, *, create: bool) -> Iterator[int]:
    """Yield a descriptor of a folder for work relative to it.

    :param real: absolute real path.
    :param shown: the path as the message of a refusal names it.
    :param create: make the folder and its parents when they are missing; when the work raises, those that were made
        are removed again, as far as they are empty.
    :raises FileRefused: when it is missing and not to be made, no folder, or no longer what the path meant.
    :raises OSError: when the system does not allow it.
    """
    made: list[tuple[int, str]] = []
    try:
        reached = _walk(real, shown, made if create else None)
        try:
            yield reached
        finally:
            os.close(reached)
    except BaseException as error:
        for parent, name in reversed(made):
            with suppress(OSError):
                os.rmdir(name, dir_fd=parent)
        if isinstance(error, NotADirectoryError):
            raise _no_folder(shown) from None
        if isinstance(error, FileNotFoundError):
            raise _missing_folder(shown) from None
        raise
    finally:
        for parent, _ in made:
            os.close(parent)


def _walk(real: str, shown: str, made: list[tuple[int, str]] | None = None) -> int:
    """Go to a folder step by step and return a descriptor of it.

    :param made: when given, missing folders are made and noted in it with a descriptor of their parent.
    :raises FileRefused: when there is a link on the way.
    """
    reached = os.open("/", _PASSED)
    try:
        for name in filter(None, real.split("/")):
            left, reached = reached, _step(reached, name, shown, made)
            os.close(left)
    except BaseException:
        os.close(reached)
        raise
    return reached


def _step(parent: int, name: str, shown: str, made: list[tuple[int, str]] | None) -> int:
    try:
        return os.open(name, _PASSED, dir_fd=parent)
    except FileNotFoundError:
        if made is None:
            raise
    except OSError as error:
        # A link is no folder on Linux and a loop elsewhere.
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            _require_no_link(parent, name, shown)
        raise
    # Someone else may make it in the meantime; opening it without following a link tells whether it will do.
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=parent)
        made.append((os.dup(parent), name))
    return _step(parent, name, shown, None)


def _require_no_link(parent: int, name: str, shown: str) -> None:
    if stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
        raise _moved(shown)


def _moved(shown: str) -> FileRefused:
    return FileRefused(f"{shown} changed its place while it was being opened; try again.")


def _missing_folder(shown: str) -> FileRefused:
    return FileRefused(f"There is no folder {shown}; list its parent to see what is there.")


def _no_folder(shown: str) -> FileRefused:
    return FileRefused(f"{shown} is not a folder or lies below a file; choose another path.")
