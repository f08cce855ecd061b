"""Which file the command of a tool set starts."""

from __future__ import annotations

import os
from pathlib import Path

from crystal.workspace.programs.find import find_program


class ProgramRefused(Exception):
    """The command's program cannot be started. The message is one sentence that names it and the mend."""


def find_command(command: tuple[str, ...], folder: Path, workspace: Path) -> tuple[str, ...]:
    """Return the command with the absolute path of its program.

    A bare name is looked for in the set's directory, then on the ``PATH``, workspace folders left out; a relative path
    lies in the set's directory, whatever links it leads through; an absolute one is what it says.

    :param folder: real path of the set's directory.
    :raises ProgramRefused: when there is no such program.
    """
    name = command[0]
    if "/" not in name:
        beside = folder / name
        found = str(beside) if _is_program(beside) else find_program(name, workspace)
        if found is None:
            raise ProgramRefused(
                f"there is no program '{name}' in {folder} or on the PATH outside the workspace; install it, or put "
                "it there and make it executable."
            )
        return (found, *command[1:])
    path = Path(os.path.realpath(folder / name))
    if not os.path.isabs(name) and not path.is_relative_to(folder):
        raise ProgramRefused(f"the program '{name}' leads out of the set's directory {folder}; put it inside.")
    if not _is_program(path):
        raise ProgramRefused(f"{path} is no program; put it there and make it executable.")
    return (str(path), *command[1:])


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
