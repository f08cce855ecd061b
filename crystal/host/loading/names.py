"""The names of a context's modules, and which modules of the host its code may import.

Every module from a folder is really called ``_crystal_ctx.KEY.PLAIN`` and is a real entry of ``sys.modules``:
``pickle``, ``typing``, ``dataclasses`` and ``sys.modules[__name__]`` work because of that.
"""

from __future__ import annotations

import re
import sys

ROOT = "_crystal_ctx"
PREFIX = f"{ROOT}."

HOST_PROVIDED = frozenset(("pydantic", "pydantic_core", "typing_extensions", "annotated_types"))
"""Compiled, and what belongs to it: a context has the host's."""

PUBLIC_PACKAGES = frozenset(("hookspecs", "types", "wire", "workspace", "testing"))
"""Packages of ``crystal`` that code of a folder may import: those that the first-party plugins are written against, the
declarations of the hooks, and the kit for its tests."""

STANDARD_NAMES = frozenset(sys.stdlib_module_names) | {"__main__"}
"""Top-level names of the standard library, those of other systems included; libraries ask ``__main__`` whether a person
types."""

PUBLIC_TOPS = frozenset(("crystal", "pluggy"))
REFUSED_TOPS = frozenset(("plugins_builtin",))

_OFFER = "import crystal, or " + ", ".join(f"crystal.{name}" for name in sorted(PUBLIC_PACKAGES))


def mangle_key(key: str) -> str:
    """Return a context's key as one part of a module name."""
    part = re.sub(r"\W", "_", key, flags=re.ASCII) or "_"
    # It becomes an attribute of a package, which has some of its own.
    return f"x{part}" if part.startswith("__") else part


def refusal(name: str) -> str | None:
    """Say why a context does not get a module of the host, or ``None`` when it does.

    :param name: full dotted name, of whatever package.
    """
    top, _, rest = name.partition(".")
    if top in REFUSED_TOPS:
        return f"{name} is the host's own and not for extensions; {_OFFER}"
    second = rest.partition(".")[0]
    if top == "crystal" and second and second not in PUBLIC_PACKAGES:
        return f"{name} is the host's own and not for extensions; {_OFFER}"
    return None
