"""Make the runtime directories of extensions step by step, so that no link in their path leads elsewhere."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_IGNORE_EVERYTHING = b"*\n"


class LinkInPath(Exception):
    """A part of the path is a link; the message names it."""


def link_on_the_way(base: Path, names: tuple[str, ...]) -> Path | None:
    """Return the first folder of ``names`` below ``base``, one in the other, that is a link; all may be missing."""
    path = base
    for name in names:
        path = path / name
        if path.is_symlink():
            return path
    return None


def make_data_directory(base: Path, names: tuple[str, ...], *, private: bool = False) -> Path:
    """Make the folders ``names`` below ``base``, one in the other, and return the last one's path.

    :param base: an existing folder; it may itself be reached through links.
    :param private: whether new folders are for their owner alone.
    :raises LinkInPath: when one of them is a link.
    :raises OSError: when one cannot be made.
    """
    at = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    path = base
    try:
        for name in names:
            path = path / name
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o700 if private else 0o777, dir_fd=at)
            try:
                entered = os.open(name, _FOLDER, dir_fd=at)
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENOTDIR) and path.is_symlink():
                    raise LinkInPath(str(path)) from error
                raise
            os.close(at)
            at = entered
    finally:
        os.close(at)
    return path


def ignore_in_git(folder: Path) -> None:
    """Put a ``.gitignore`` of ``*`` into a folder of runtime data; one that is there stays.

    :raises OSError: when it cannot be written.
    """
    at = os.open(folder, _FOLDER)
    try:
        file = os.open(".gitignore", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666, dir_fd=at)
    except FileExistsError:
        return
    finally:
        os.close(at)
    with open(file, "wb") as opened:
        opened.write(_IGNORE_EVERYTHING)
