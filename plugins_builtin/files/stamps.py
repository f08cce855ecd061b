"""What the session knows of a file's state, so that nothing is written over a change it has not seen."""

from __future__ import annotations

import os

from crystal.types.capabilities import BuiltinContext, FileStamp, FileStates
from crystal.types.tools import ToolContext


def states_of(context: ToolContext) -> FileStates | None:
    """Return the session's memory of files, or ``None`` where the call has none."""
    return context.file_state if isinstance(context, BuiltinContext) else None


def stamp_of(data: bytes | None, status: os.stat_result) -> FileStamp:
    """Return the stamp of a file.

    :param data: its whole content, or ``None`` when only a part was read; then size and time must do.
    """
    size = status.st_size if data is None else len(data)
    return FileStamp(size=size, modified_ns=status.st_mtime_ns, digest="" if data is None else _digest(data))


def has_changed(seen: FileStamp, data: bytes, status: os.stat_result) -> bool:
    """Whether a file differs from what the session saw; a touched file with the same bytes does not.

    :param data: its whole content now.
    """
    if seen.digest:
        return seen.digest != _digest(data)
    return (seen.size, seen.modified_ns) != (status.st_size, status.st_mtime_ns)


def _digest(data: bytes) -> str:
    import hashlib  # loads OpenSSL, which start-up does not need

    return hashlib.sha256(data).hexdigest()
