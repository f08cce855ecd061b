"""Undo what importing a folder's code changed for everybody else: import paths, finders, foreign modules, builtins.

Only what is reached by accident or habit (``sys.path.insert``, a library that writes ``sys.modules``); code that means
harm is not held by this.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Collection
from importlib.machinery import ModuleSpec
from operator import is_
from types import ModuleType
from typing import Any

from crystal.host.loading.modules import FolderModules
from crystal.host.loading.names import PREFIX, ROOT


class Before:
    """The state of the process before some code is imported.

    :param package: mangled name of the context's package.
    :param modules: of its folder.
    :param shared: top-level names that its modules may have in the process.
    """

    def __init__(self, package: str, modules: FolderModules, shared: Collection[str]) -> None:
        self._own = f"{package}."
        self._folder = modules
        self._shared = shared
        self._path = list(sys.path)
        self._finders = list(sys.meta_path)
        self._modules = dict(sys.modules)
        self._builtins = dict(vars(builtins))

    def drop_new_modules(self) -> None:
        """Remove every module that the context got since then: a half-loaded one may not stay."""
        package = sys.modules.get(self._own[:-1])
        for name in [name for name in sys.modules if name.startswith(self._own) and name not in self._modules]:
            del sys.modules[name]
            top = name[len(self._own) :]
            if package is not None and "." not in top:
                vars(package).pop(top, None)

    def restore(self, keep_finder: Callable[[Any], None]) -> list[str]:
        """Put things back and return what was changed, a clause each.

        :param keep_finder: takes each finder that the folder's code installed; it goes on serving that context alone.
        """
        changes = []
        if sys.path != self._path:
            sys.path[:] = self._path
            changes.append("it changed sys.path, which was put back: imports search its own folder and lib/ anyway")
        self._restore_finders(keep_finder)
        replaced = self._restore_modules()
        if replaced:
            changes.append(f"it replaced modules of the process, which were put back: {', '.join(sorted(replaced))}")
        changed = _replaced(self._builtins, vars(builtins))
        if changed:
            vars(builtins).update({name: self._builtins[name] for name in changed})
            changes.append(f"it changed builtins of the process, which were put back: {', '.join(sorted(changed))}")
        return changes

    def _restore_finders(self, keep_finder: Callable[[Any], None]) -> None:
        if sys.meta_path == self._finders:
            return
        known = {id(finder) for finder in self._finders}
        new = [finder for finder in sys.meta_path if id(finder) not in known]
        others = []
        for finder in new:
            kind = finder if isinstance(finder, type) else type(finder)
            if kind.__module__.startswith(self._own):
                keep_finder(finder)
            else:
                others.append(finder)
        own = [finder for finder in others if type(finder).__module__.startswith("crystal.host.loading.")]
        sys.meta_path[:] = [*own, *self._finders, *(finder for finder in others if finder not in own)]

    def _restore_modules(self) -> list[str]:
        modules = sys.modules
        for name in modules.keys() - self._modules.keys():
            if name.partition(".")[0] != ROOT and self._is_stray(name, modules[name]):
                modules.setdefault(self._own + name, modules.pop(name))
        replaced = [name for name in _replaced(self._modules, modules) if not name.startswith(self._own)]
        modules.update({name: self._modules[name] for name in replaced})
        return [name for name in replaced if not name.startswith(PREFIX)]

    def _is_stray(self, name: str, module: object) -> bool:
        """Whether a module of the folder stands under a name that everybody imports."""
        top = name.partition(".")[0]
        if top in self._shared:
            return False
        members = vars(module) if isinstance(module, ModuleType) else {}
        spec = members.get("__spec__")
        if isinstance(spec, ModuleSpec) and spec.name == name:
            # Imported as usual, if need be from a folder that was put into sys.path.
            return isinstance(spec.origin, str) and self._folder.relative(spec.origin) is not None
        # A library that writes names of its own, as requests does.
        is_own = str(members.get("__name__")).startswith(self._own)
        return is_own or (top in self._folder.top_levels and top not in self._modules)


def _replaced(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return the names that mean something else now, or nothing."""
    # At every load over everything that is loaded: the quick way says that there are none.
    if all(map(is_, map(now.get, before), before.values())):
        return []
    missing = object()
    return [name for name, value in before.items() if now.get(name, missing) is not value]
