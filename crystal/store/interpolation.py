"""Fills variables into a text of the operator: ``${NAME}``, ``${NAME:-default}``, ``{env:NAME}``; ``$${`` is ``${``.

One pass: what a variable held is never looked at again. A variable that is not set is an error, never text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_VARIABLE = re.compile(
    r"(?P<escape>\$\$\{)"
    r"|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-[^}]*)?\}"
    r"|\{env:(?P<word>[A-Za-z_][A-Za-z0-9_]*)\}"
    r"|(?P<malformed>\$\{|\{env:)"
)


class VariableError(ValueError):
    """A variable is not set, or is not written as one; the text says which.

    :param name: the variable, empty when it is malformed.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"the environment variable {name} is not set"
            if name
            else "a variable is written ${NAME}, ${NAME:-default} or {env:NAME}"
        )


def fill_variables(text: str, environ: Mapping[str, str]) -> str:
    """Return ``text`` with its variables filled in once.

    :raises VariableError: for an unset variable without a default, and for a malformed one.
    """
    if "{" not in text:
        return text

    def value(found: re.Match[str]) -> str:
        if found["escape"]:
            return "${"
        if found["malformed"]:
            raise VariableError("")
        name = found["name"] or found["word"]
        if found["default"] is not None:
            return environ.get(name) or found["default"][2:]
        if name not in environ:
            raise VariableError(name)
        return environ[name]

    return _VARIABLE.sub(value, text)
