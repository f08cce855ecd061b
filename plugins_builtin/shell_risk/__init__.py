"""The risk and authority of a shell command, and what a grant of it is given for.

The command is parsed, never searched: every simple command in it, through wrappers, substitutions, scripts in words and
redirections, is judged, and the worst counts. What cannot be parsed or is built at run time is Privileged. Nothing is
run; of the file system it is only asked where links lead and which names a folder holds.
"""

from __future__ import annotations

from crystal.types.approval import Classification
from plugins_builtin.one_line import one_line
from plugins_builtin.shell_risk.grants import grant_parts
from plugins_builtin.shell_risk.judge import Judge
from plugins_builtin.shell_risk.places import Fence

__all__ = ["classify_command", "grant_parts"]


def classify_command(command: str, fence: Fence) -> Classification:
    """Return the class of a command line: the worst of its parts.

    :param command: what bash would be given.
    :param fence: resolves paths relative to the workspace, in which the command starts.
    """
    judge = Judge(fence)
    judge.line(command)
    return Classification(risk=judge.risk, authority=judge.authority, summary=one_line(command.strip()))
