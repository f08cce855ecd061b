"""Say why a module is not there for the code of a folder, and what helps. Finds nothing itself."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from crystal.host.loading.modules import FolderModules
from crystal.host.loading.names import STANDARD_NAMES

_ALIKE = 0.8
"""How alike a name is to one of the folder's own that it is taken for a slip of the pen."""


def missing_module(modules: FolderModules, plain: str, folders: Sequence[str]) -> str:
    """Return one clause about a module that the folder has not.

    :param plain: its name as the folder's code writes it.
    :param folders: absolute paths of where it would lie.
    """
    begin = f"No module named {plain!r}"
    parent, _, tail = plain.rpartition(".")
    top = plain.partition(".")[0]
    compiled = modules.compiled_file(tail, folders)
    if compiled is not None:
        return _only_compiled(plain, compiled)
    if parent:
        return f"{begin}: {top} has no such module"
    folder = modules.folder
    nearest = _nearest_own(modules, plain)
    # No more than letters changed round: httpx and ujson are not meant to be http and json.
    nearest += [name for name in sorted(STANDARD_NAMES) if name != plain and sorted(name) == sorted(plain)]
    meant = f"did you mean {nearest[0]!r}? Otherwise " if nearest else ""
    return (
        f"{begin} in the standard library, the host's public API or {folder}; {meant}vendor it "
        f"with 'pip install --target {modules.roots[1]} {top}' or 'crystal plugins vendor {folder} {top}'"
    )


def missing_beside(modules: FolderModules, plain: str) -> str:
    """Return one clause about a module that a relative import looks for in the folder itself.

    :param plain: its name without the dot.
    """
    compiled = modules.compiled_file(plain, modules.roots)
    if compiled is not None:
        return _only_compiled(plain, compiled)
    nearest = _nearest_own(modules, plain)
    mend = f"did you mean '.{nearest[0]}'?" if nearest else f"add {plain}.py, or write the import without the dot"
    return f"No module named '.{plain}' in {modules.folder}; {mend}"


def _only_compiled(plain: str, compiled: str) -> str:
    return (
        f"No module named {plain!r} that can be loaded from a folder: {compiled} is compiled code, which would import "
        f'past it; use a version in pure Python, or list the distribution as "shared": ["{plain.partition(".")[0]}"] '
        "in the manifest"
    )


def _nearest_own(modules: FolderModules, plain: str) -> list[str]:
    return difflib.get_close_matches(plain, modules.top_levels, n=1, cutoff=_ALIKE)
