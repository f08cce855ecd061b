"""The last step of ``edit`` and ``write``: put the new bytes in place and let the session remember them."""

from __future__ import annotations

import os

from crystal.types.tools import ToolCall, ToolContext
from crystal.workspace.atomic_write import replace_in_folder
from crystal.workspace.open_files import open_folder
from plugins_builtin.files.outcome import CallRefused, parent_of
from plugins_builtin.files.stamps import stamp_of, states_of

LOADED_BYTES = 32 * 1024 * 1024
"""The largest existing file that is changed: its old bytes are held in memory and kept as the before-image. """


def save(
    call: ToolCall,
    context: ToolContext,
    real: str,
    shown: str,
    data: bytes,
    *,
    before: bytes | None,
    status: os.stat_result | None,
) -> None:
    """Replace a file or create it with its folders, keep its before-image, and note that the session knows it
    now.

    :param before: the bytes it held, or ``None`` for a new file.
    :param status: what the system said of it when they were read, or ``None`` for a new file.
    :raises CallRefused: when the file changed in between or is read-only.
    :raises OSError: when the system does not allow it.
    """
    folder_path, name = parent_of(real)
    states = states_of(context)
    with open_folder(folder_path, shown, create=status is None) as folder:
        _require_unchanged(folder, name, shown, status)
        if status is not None and not os.access(name, os.W_OK, dir_fd=folder):
            raise CallRefused(f"{shown} is read-only; change its mode first if it is to be written.")
        if states is not None:
            states.keep_before_image(real, before, call.id)
        written = replace_in_folder(folder, name, data)
    if states is not None:
        states.remember(real, stamp_of(data, written))


def _require_unchanged(folder: int, name: str, shown: str, status: os.stat_result | None) -> None:
    try:
        now = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        if status is None:
            return
        raise CallRefused(f"{shown} was removed while the call ran; look again before writing it.") from None
    if status is None or (now.st_ino, now.st_size, now.st_mtime_ns) != (
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
    ):
        raise CallRefused(f"{shown} changed on disk while the call ran; read it again and repeat the change.")
