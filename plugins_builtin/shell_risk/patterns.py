"""The names that an unquoted pattern of bash may stand for; reads names of folders and opens no file."""

from __future__ import annotations

import os
from collections.abc import Iterable

_SIGNS = "*?[]"


def folder_names(folder: str, most: int) -> dict[str, bool] | None:
    """Return the names in a folder and whether each is a link, ``None`` when there are more than ``most``.

    :param folder: real path; one that cannot be read holds no name, for bash neither.
    """
    names: dict[str, bool] = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if len(names) == most:
                    return None
                names[entry.name] = entry.is_symlink()
    except OSError:
        return {}
    return names


def names_met(names: Iterable[str], pattern: str, first: int) -> list[str]:
    """Return every one of a folder's names that bash may put in the place of ``pattern``, and perhaps more.

    Only what stands before the first and after the last pattern sign is compared: which of the signs between were
    quoted is not known any more, and what brackets mean depends on the locale. So no name that bash meets is missed.

    :param pattern: the last part of a word.
    :param first: where in ``pattern`` the first unquoted sign stands.
    """
    beginning = pattern[:first]
    end = pattern[max(map(pattern.rfind, _SIGNS)) + 1 :]
    hidden = beginning.startswith(".")
    # Before its release 5.2 bash also met the folder itself and the one around it.
    return [
        name
        for name in (*names, *((".", "..") if hidden else ()))
        if name.startswith(beginning)
        and name.endswith(end)
        and len(name) >= len(beginning) + len(end)
        and (hidden or not name.startswith("."))
    ]
