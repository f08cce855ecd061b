"""Replacing a file whole: readers see the old bytes or the new ones, and what is not content stays.

It works in a folder that is open already; whether that is allowed is the fence's matter.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_NO_UNNAMED_FILES = frozenset(
    {errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT, errno.EXDEV, errno.EPERM, errno.ENOSYS}
)
"""What comes where the system or the file system cannot make a file without a name, or not name it later."""

_NO_HARD_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, errno.EMLINK})

_NOT_COPIED = frozenset({"security.capability"})
"""Extended attributes that belong to the old content: what a program may do is no right of the next one."""


class FileChanged(Exception):
    """The file is not what it was when its bytes were read, or another program holds it; it was left as it is."""


class _NoUnnamedFiles(Exception):
    """The file system cannot hold a file without a name, or cannot name it."""


def replace_in_folder(folder: int, name: str, data: bytes, expected: os.stat_result | None) -> os.stat_result:
    """Write ``data`` to the file ``name`` of an open folder.

    An existing file keeps its permissions and, where the system allows it, its owner and extended attributes; a new
    one gets the permissions that the umask leaves. Other hard links to the old file keep the old bytes. A folder in
    which no file can be made refuses the change even of a file that itself could be written, because only a new file
    that takes the old one's name is never seen half-written.

    The new bytes get a name when they are complete. A process that is killed leaves at most one whole
    ``.crystal-*.tmp`` beside an existing file, when that happens between the two calls that put it in the old one's
    place; a file system without unnamed files (``O_TMPFILE``) adds the time in which they are written.

    :param folder: descriptor of the folder.
    :param expected: what the system said of the file when its bytes were read, or ``None`` for a new one.
    :return: the status of the written file.
    :raises FileChanged: when the file is another one by now, a new one is there already, or a program has locked it.
    :raises OSError: when the system does not allow it; then the old file is whole and nothing else is left.
    """
    if hasattr(os, "O_TMPFILE"):
        with suppress(_NoUnnamedFiles):
            return _replace(folder, name, data, expected, unnamed=True)
    return _replace(folder, name, data, expected, unnamed=False)


def _replace(folder: int, name: str, data: bytes, expected: os.stat_result | None, *, unnamed: bool) -> os.stat_result:
    temporary = f".crystal-{os.urandom(8).hex()}.tmp"
    descriptor = _new_file(folder, temporary, 0o666 if expected is None else 0o600, unnamed=unnamed)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        if not unnamed:
            # Some file systems that know no unnamed files, such as NFS, say only now that the disk is full.
            os.fsync(descriptor)
        if expected is None:
            written = os.fstat(descriptor)
            _give_free_name(descriptor, folder, temporary, name, unnamed=unnamed)
        else:
            with _locked(folder, name) as existing:
                _keep_attributes(descriptor, existing, expected)
                written = os.fstat(descriptor)
                if unnamed:
                    _link(descriptor, folder, temporary)
                _require_expected(folder, name, expected)
                os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    finally:
        # The bytes are where they belong, or the call has failed already.
        with suppress(OSError):
            os.close(descriptor)
    return written


def _new_file(folder: int, name: str, mode: int, *, unnamed: bool) -> int:
    flags = os.O_WRONLY | os.O_CLOEXEC
    if not unnamed:
        return os.open(name, flags | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode, dir_fd=folder)
    try:
        return os.open(".", flags | os.O_TMPFILE, mode, dir_fd=folder)
    except OSError as error:
        if error.errno in _NO_UNNAMED_FILES:
            raise _NoUnnamedFiles from error
        raise


def _link(descriptor: int, folder: int, name: str) -> None:
    """Name an unnamed file."""
    try:
        os.link(f"/proc/self/fd/{descriptor}", name, dst_dir_fd=folder)
    except OSError as error:
        if error.errno in _NO_UNNAMED_FILES:
            raise _NoUnnamedFiles from error
        raise


def _give_free_name(descriptor: int, folder: int, temporary: str, name: str, *, unnamed: bool) -> None:
    """Give a new file its name unless something has it: a link is made or fails, where a rename would replace."""
    try:
        if unnamed:
            _link(descriptor, folder, name)
            return
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        raise FileChanged(f"{name} was made in the meantime") from None
    except OSError as error:
        if unnamed or error.errno not in _NO_HARD_LINKS:
            raise
        _require_expected(folder, name, None)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        return
    os.unlink(temporary, dir_fd=folder)


def _require_expected(folder: int, name: str, expected: os.stat_result | None) -> None:
    try:
        now = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        if expected is None:
            return
        raise FileChanged(f"{name} was removed in the meantime") from None
    if expected is None or _identity(now) != _identity(expected):
        raise FileChanged(f"{name} changed in the meantime")


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@contextmanager
def _locked(folder: int, name: str) -> Iterator[int | None]:
    """Keep others that do the same from replacing a file, from the last look at it until it is replaced.

    :return: a descriptor of the file; ``None`` for one that cannot be opened, which is not locked.
    """
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP):
            raise FileChanged(f"{name} was removed in the meantime") from None
        descriptor = -1
    if descriptor < 0:
        yield None
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FileChanged(f"{name} is locked by another program") from None
        except OSError:
            # A file system without locks; the last look has to do.
            pass
        yield descriptor
    finally:
        os.close(descriptor)


def _keep_attributes(descriptor: int, source: int | None, existing: os.stat_result) -> None:
    """Give a new file the owner, extended attributes and permissions of the one whose place it takes."""
    mode = stat.S_IMODE(existing.st_mode)
    made = os.fstat(descriptor)
    if (made.st_uid, made.st_gid) != (existing.st_uid, existing.st_gid):
        # Only root may give a file away; for everyone else the file becomes the writer's, as with any editor.
        for owner in (existing.st_uid, -1):
            with suppress(PermissionError):
                os.fchown(descriptor, owner, existing.st_gid)
                break
        made = os.fstat(descriptor)
    if made.st_uid != existing.st_uid:
        mode &= ~(stat.S_ISUID | stat.S_ISGID)
    if made.st_gid != existing.st_gid:
        # Another group gets no more than everybody: what the old one was trusted with was not meant for it.
        mode = mode & ~(stat.S_ISGID | stat.S_IRWXG) | (mode & stat.S_IRWXO) << 3
    if source is not None and hasattr(os, "listxattr"):
        _copy_extended_attributes(descriptor, source)
    os.fchmod(descriptor, mode)


def _copy_extended_attributes(descriptor: int, source: int) -> None:
    # A file system may have none, and some may be set only by root: the content is what the call is about.
    with suppress(OSError):
        for attribute in os.listxattr(source):
            if attribute not in _NOT_COPIED:
                with suppress(OSError):
                    os.setxattr(descriptor, attribute, os.getxattr(source, attribute))
