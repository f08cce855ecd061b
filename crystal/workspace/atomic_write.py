"""Replacing a file whole: readers see the old bytes or the new ones, and the permissions stay.

It writes where it is told; whether that is allowed is the fence's matter.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from crystal.workspace.open_files import open_folder


def atomic_write(path: str | os.PathLike[str], data: bytes, *, durable: bool = False) -> os.stat_result:
    """Write ``data`` to ``path``, following a link to its target; the folder must exist.

    :param durable: flush to the disk before the file takes its name.
    :return: the status of the written file.
    :raises FileRefused: when the folder is missing or changed its place.
    :raises OSError: when the system does not allow it.
    """
    real = os.path.realpath(path)
    folder, _, name = real.rpartition("/")
    with open_folder(folder or "/", folder or "/") as descriptor:
        return replace_in_folder(descriptor, name, data, durable=durable)


def replace_in_folder(folder: int, name: str, data: bytes, *, durable: bool = False) -> os.stat_result:
    """Write ``data`` to the file ``name`` of an open folder.

    An existing file keeps its permissions and, where the system allows it, its owner; a new one gets the
    permissions that the umask leaves. Other hard links to the old file keep the old bytes.

    :param folder: descriptor of the folder.
    :param durable: flush to the disk before the file takes its name.
    :return: the status of the written file.
    """
    existing: os.stat_result | None
    try:
        existing = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        existing = None
    temporary = f".crystal-{os.urandom(8).hex()}.tmp"
    mode = 0o666 if existing is None else 0o600
    descriptor = os.open(
        temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=folder
    )
    try:
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            if existing is not None:
                _keep_owner(descriptor, existing)
                os.fchmod(descriptor, stat.S_IMODE(existing.st_mode))
            if durable:
                os.fsync(descriptor)
            written = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        raise
    return written


def _keep_owner(descriptor: int, existing: os.stat_result) -> None:
    status = os.fstat(descriptor)
    if (status.st_uid, status.st_gid) != (existing.st_uid, existing.st_gid):
        # Only root may give a file away; for everyone else the file becomes the writer's, as with any editor.
        with suppress(PermissionError):
            os.fchown(descriptor, existing.st_uid, existing.st_gid)
