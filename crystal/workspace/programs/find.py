"""Where a program lies that the host itself starts: never in the workspace, whose programs nobody has approved."""

from __future__ import annotations

import os
from pathlib import Path


def find_program(name: str, workspace: Path) -> str | None:
    """Return the first program on the ``PATH`` that may be started unasked, or ``None`` when there is none.

    Empty and relative entries are passed over, and so is what lies in the workspace or leads there through links.

    :param name: the program's name without a folder.
    """
    import shutil

    top = Path(os.path.realpath(workspace))
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if not os.path.isabs(folder) or Path(os.path.realpath(folder)).is_relative_to(top):
            continue
        found = shutil.which(name, path=folder)
        if found is not None and not Path(os.path.realpath(found)).is_relative_to(top):
            return found
    return None
