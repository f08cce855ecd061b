"""What ``import`` means to the code of one folder.

Python looks ``__import__`` up in the builtins of the frame that imports, so each module from a folder gets builtins
whose ``__import__`` resolves, in this order: the standard library, what the host offers, the folder, its ``lib/``.
Nobody else's imports pay for that. Finds nothing itself: names of the folder go to the process's finder.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from crystal.host.loading.bytecode import BytecodeCache
from crystal.host.loading.errors import ContextImportError
from crystal.host.loading.finder import installed
from crystal.host.loading.loader import FolderCode
from crystal.host.loading.missing import missing_beside, missing_module
from crystal.host.loading.modules import FolderModules
from crystal.host.loading.names import HOST_PROVIDED, PUBLIC_TOPS, ROOT, STANDARD_NAMES, refusal
from crystal.host.loading.shared import SharedFinder
from crystal.host.loading.stand_ins import HAVING_STAND_INS, StandIns

_import = builtins.__import__


class Route(NamedTuple):
    """Where an absolute import leads.

    :param name: the name in ``sys.modules``.
    :param top: the name of what ``import a.b`` binds, empty for modules that keep their plain name.
    :param stand_in: the module that stands in for one of the standard library.
    :param guarded: whether names imported from it may be refused.
    """

    name: str
    top: str = ""
    stand_in: ModuleType | None = None
    guarded: bool = False


class ContextImports:
    """The imports of one context.

    :param key: names the context in messages.
    :param package: mangled name that the names of its modules begin with.
    :param shared: importable names of distributions that are loaded once for the process.

    :ivar builtins: what the code finds as ``builtins``; its members are the ``__builtins__`` of each module.
    :ivar code: makes modules that import this way.
    """

    def __init__(
        self,
        key: str,
        package: str,
        modules: FolderModules,
        shared: Collection[str] = (),
        cache: BytecodeCache | None = None,
    ) -> None:
        self.key = key
        self.package = package
        self.modules = modules
        self.shared = frozenset(shared)
        self._cache = cache
        self._prefix = f"{package}."
        self._routes: dict[str, Route] = {}
        self._kept: dict[str, ModuleType] | None = None
        self.builtins = ModuleType("builtins", builtins.__doc__)
        vars(self.builtins).update(vars(builtins))
        vars(self.builtins)["__import__"] = self._make_import()
        self.code = FolderCode(modules, cache, vars(self.builtins))
        self._stand_ins = StandIns(self)

    def keep(self, modules: dict[str, ModuleType]) -> None:
        """Import from these alone from now on, by their real names: they left ``sys.modules``."""
        self._kept = modules

    @property
    def closed(self) -> bool:
        """Whether the modules left ``sys.modules``."""
        return self._kept is not None

    def real_name(self, name: str) -> str:
        """Return a module's name in ``sys.modules``.

        :param name: plain or real, absolute.
        :raises ContextImportError: for one that the folder's code may not have.
        """
        return self.route(name).name

    def plain_name(self, name: str) -> str:
        """Return a module's name as the folder's code writes it."""
        return name.removeprefix(self._prefix)

    def resolve(self, name: str) -> ModuleType:
        """Import a module by its absolute name and return it, not its top package."""
        route = self.route(name)
        if route.stand_in is not None:
            return route.stand_in
        try:
            if self._kept is not None and route.top:
                return self._kept_module(route.name)
            return importlib.import_module(route.name)
        except ContextImportError as error:
            self.tell_plainly(error)
            raise

    def route(self, name: str) -> Route:
        """Say where an absolute import leads.

        :raises ContextImportError: for a module of the host that is not public.
        """
        route = self._routes.get(name)
        if route is None:
            route = self._routes[name] = self._find_route(name)
        return route

    def _find_route(self, name: str) -> Route:
        if name == self.package or name.startswith(self._prefix):
            return Route(name, top=ROOT)
        top = name.partition(".")[0]
        if top in STANDARD_NAMES:
            return Route(name, stand_in=self._stand_ins.get(name)) if top in HAVING_STAND_INS else Route(name)
        reason = refusal(name)
        if reason is not None:
            raise ContextImportError(reason, name=name)
        if top in PUBLIC_TOPS or top in HOST_PROVIDED:
            return Route(name, guarded=name == "crystal")
        if top in self.shared:
            self._admit_shared(top)
            return Route(name)
        return Route(self._prefix + name, top=self._prefix + top)

    def _admit_shared(self, wanted: str) -> None:
        """Let the process find a shared distribution, and all others of the folder, which it may import."""
        finder = installed(SharedFinder)
        for name in sorted(self.shared):
            try:
                finder.admit(name, self.key, self.modules, self._cache)
            except ContextImportError:
                if name == wanted:
                    raise

    def _make_import(self) -> Callable[..., Any]:
        routes = self._routes
        modules = sys.modules

        def __import__(  # noqa: A001, N807  # the name that introspection expects
            name: str,
            globals: Mapping[str, Any] | None = None,  # noqa: A002  # called by keyword, too
            locals: Mapping[str, Any] | None = None,  # noqa: A002
            fromlist: Sequence[str] | None = (),
            level: int = 0,
        ) -> Any:
            if level or self._kept is not None or not isinstance(name, str) or not name:
                return self._import_otherwise(name, globals, locals, fromlist, level)
            route = routes.get(name) or self.route(name)
            if route.stand_in is not None or route.guarded:
                return self._import_watched(route, name, fromlist)
            if not route.top:
                return _import(name, globals, locals, fromlist, 0)
            try:
                imported = _import(route.name, None, None, fromlist, 0)
            except ContextImportError as error:
                self.tell_plainly(error)
                raise
            if not fromlist:
                return modules[route.top]
            if self.modules.has_compiled:
                self._check_compiled(imported, fromlist)
            return imported

        return __import__

    def _import_watched(self, route: Route, name: str, fromlist: Sequence[str] | None) -> Any:
        if route.guarded:
            self._check_public(fromlist or ())
        imported = _import(name, None, None, fromlist, 0)
        if route.stand_in is None:
            return imported
        return route.stand_in if fromlist else self._stand_ins.get(name.partition(".")[0])

    def _check_public(self, names: Sequence[str]) -> None:
        import crystal

        for name in names:
            if name != "*" and not name.startswith("__") and name not in crystal.__all__:
                reason = refusal(f"crystal.{name}")
                if reason is not None:
                    raise ContextImportError(_misspelt(name, crystal.__all__) or reason, name=f"crystal.{name}")

    def _check_compiled(self, module: Any, names: Sequence[str]) -> None:
        """Name a compiled module that is imported from its package; Python would only say that a name is missing.

        :raises ContextImportError: for a name that is nothing but a compiled module.
        """
        members = vars(module) if isinstance(module, ModuleType) else {}
        path, package = members.get("__path__"), members.get("__name__")
        if path is None or not isinstance(package, str) or not package.startswith(self._prefix):
            return
        for name in names:
            if isinstance(name, str) and not hasattr(module, name) and self.modules.compiled_file(name, path):
                plain = f"{self.plain_name(package)}.{name}"
                raise ContextImportError(missing_module(self.modules, plain, path), name=plain)

    def _import_otherwise(
        self,
        name: str,
        globals: Mapping[str, Any] | None,  # noqa: A002  # as in __import__
        locals: Mapping[str, Any] | None,  # noqa: A002
        fromlist: Sequence[str] | None,
        level: int,
    ) -> Any:
        """Import relatively, from a closed context, or what is no name at all."""
        package = (globals or {}).get("__package__") if level else None
        if isinstance(package, str) and f"{package}.".startswith(self._prefix):
            base = package.rsplit(".", level - 1)[0]
            if not f"{base}.".startswith(self._prefix):
                raise ImportError("attempted relative import beyond the folder of the code")
            if self._kept is not None:
                return self._import_kept(f"{base}.{name}" if name else base, fromlist or ("",))
        elif self._kept is not None and not level and isinstance(name, str) and name:
            route = self.route(name)
            if route.top:
                return self._import_kept(route.name, fromlist)
            if route.stand_in is not None or route.guarded:
                return self._import_watched(route, name, fromlist)
        try:
            imported = _import(name, globals, locals, fromlist, level)
        except ContextImportError as error:
            if level and error.name == f"{self.package}.{name}":
                raise ContextImportError(missing_beside(self.modules, name), name=name) from None
            self.tell_plainly(error)
            raise
        if fromlist and self.modules.has_compiled:
            self._check_compiled(imported, fromlist)
        return imported

    def _import_kept(self, name: str, fromlist: Sequence[str] | None) -> Any:
        module = self._kept_module(name)
        if not fromlist:
            return self._kept_module(self._prefix + name[len(self._prefix) :].partition(".")[0])
        for attribute in fromlist:
            kept = (self._kept or {}).get(f"{name}.{attribute}")
            if kept is not None and attribute not in vars(module):
                setattr(module, attribute, kept)
        return module

    def _kept_module(self, name: str) -> ModuleType:
        module = (self._kept or {}).get(name)
        if module is None:
            plain = self.plain_name(name)
            raise ContextImportError(f"No module named {plain!r}: {self.key} was unloaded before", name=plain)
        return module

    def tell_plainly(self, error: ContextImportError) -> None:
        """Give an error the name that the code wrote; inside the import system it has to be the real one."""
        if error.name is not None and error.name.startswith(self._prefix):
            error.name = self.plain_name(error.name)
            error.__traceback__ = None


def _misspelt(name: str, offered: Sequence[str]) -> str | None:
    """Return a clause about a name that is much like one of ``crystal``'s; ``None`` for a module of its own."""
    from importlib.util import find_spec

    if find_spec(f"crystal.{name}") is not None:
        return None
    import difflib

    nearest = difflib.get_close_matches(name, offered, n=1)
    return f"crystal has no {name!r}; did you mean {nearest[0]!r}?" if nearest else None
