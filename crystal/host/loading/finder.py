"""The one finder of the process for the modules of all contexts. It answers for their names and for no others."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Protocol, TypeVar

from crystal.host.loading.names import PREFIX, ROOT, mangle_key

Finder = TypeVar("Finder")


class ModuleOwner(Protocol):
    """What knows the modules below one key."""

    def find_spec(self, fullname: str, plain: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec:
        """Return the spec of a module, or raise ``ModuleNotFoundError``: nobody else may answer for its name."""


class ContextFinder:
    """Stands first in ``sys.meta_path`` and passes each name below ``_crystal_ctx`` to the context it belongs to."""

    def __init__(self) -> None:
        self._owners: dict[str, ModuleOwner] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module of a context; ``None`` for every name that is not of that kind.

        :raises ModuleNotFoundError: for a name of that kind that means nothing. ``None`` would have Python's path
            finder look, which takes compiled code and bytecode.
        """
        if not fullname.startswith(PREFIX):
            return None
        key, _, plain = fullname[len(PREFIX) :].partition(".")
        owner = self._owners.get(key)
        if owner is None or not plain:
            raise ModuleNotFoundError(f"There is no open load context for {fullname}", name=fullname)
        return owner.find_spec(fullname, plain, path, target)

    def add(self, key: str, owner: ModuleOwner, roots: Sequence[str]) -> str:
        """Take in a context and return its part of the names, which is its key made fit and unique.

        :param roots: folders that are the path of its package.
        """
        wanted = part = mangle_key(key)
        count = 1
        while part in self._owners:
            count += 1
            part = f"{wanted}_{count}"
        self._owners[part] = owner
        root = sys.modules.get(ROOT)
        if root is None:
            root = sys.modules[ROOT] = _package(ROOT, [])
        package = sys.modules[f"{PREFIX}{part}"] = _package(f"{PREFIX}{part}", list(roots))
        setattr(root, part, package)
        return part

    def remove(self, part: str) -> dict[str, ModuleType]:
        """Let go of a context and return its entries of ``sys.modules``, which are no longer there."""
        self._owners.pop(part, None)
        package = f"{PREFIX}{part}"
        names = [name for name in sys.modules if name == package or name.startswith(f"{package}.")]
        removed = {name: sys.modules.pop(name) for name in names}
        root = sys.modules.get(ROOT)
        if root is not None:
            vars(root).pop(part, None)
        return removed


def _package(name: str, path: list[str]) -> ModuleType:
    module = ModuleType(name)
    module.__path__ = path
    module.__package__ = name
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = path
    module.__spec__ = spec
    return module


def installed(kind: type[Finder]) -> Finder:
    """Return the process's finder of a kind, put first among all finders and made when there is none."""
    finders = sys.meta_path
    for place, finder in enumerate(finders):
        if type(finder) is kind:
            if place:
                del finders[place]
                finders.insert(0, finder)
            return finder
    made = kind()
    finders.insert(0, made)  # type: ignore[arg-type]  # both kinds are finders
    return made
