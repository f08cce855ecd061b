"""The last step of ``edit`` and ``write``: put the new bytes in place and let the session remember them."""

from __future__ import annotations

import os

from crystal.types.tools import ToolCall, ToolContext
from crystal.workspace.atomic_write import FileChanged, replace_in_folder
from crystal.workspace.open_files import OpenFile, enter_folder, read_bytes
from plugins_builtin.files.outcome import CallRefused, parent_of
from plugins_builtin.files.stamps import stamp_of, states_of

LOADED_BYTES = 32 * 1024 * 1024
"""The largest existing file that is changed: its old bytes are held in memory and kept as the before-image."""


def load(opened: OpenFile) -> bytes | None:
    """Return the bytes of a file that is to be changed, or ``None`` when it is too large for that."""
    if opened.status.st_size > LOADED_BYTES:
        return None
    data = read_bytes(opened, LOADED_BYTES + 1)
    return None if len(data) > LOADED_BYTES else data


def other_names_note(status: os.stat_result) -> str:
    """Say that a file that was replaced had other hard links; empty when it had none."""
    return "" if status.st_nlink < 2 else " It had other hard links, which keep the old content."


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
    :raises CallRefused: when the file changed in between, is read-only, or lies in a folder that takes no new file.
    :raises OSError: when the system does not allow it.
    """
    folder_path, name = parent_of(real)
    states = states_of(context)
    with enter_folder(folder_path, shown, create=status is None) as folder:
        if status is not None and not os.access(name, os.W_OK, dir_fd=folder):
            raise CallRefused(f"{shown} is read-only; change its mode first if it is to be written.")
        if states is not None:
            states.keep_before_image(real, before, call.id)
        try:
            written = replace_in_folder(folder, name, data, status)
        except FileChanged:
            raise CallRefused(
                f"{shown} changed on disk while the call ran or is locked; read it again and repeat the change."
            ) from None
        except PermissionError as error:
            raise CallRefused(
                f"{shown} was not written: its folder does not let this user put a new file in its place "
                f"({error.strerror}); change the folder's mode first."
            ) from None
    if states is not None:
        states.remember(real, stamp_of(data, written))
