"""A load context: the modules of one folder, isolated under names of their own for as long as the process lives.

What does not work inside, since the standard library itself imports by name: ``mock.patch("plain.x")``, classes by
plain name in ``logging.config``, ``runpy`` by plain name, ``pickle`` of classes whose library rewrites ``__module__``,
``sys.modules["plain"]``. ``__name__`` and all made of it are the real, mangled names and do work.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from crystal.host.loading.bytecode import BytecodeCache
from crystal.host.loading.containment import Before
from crystal.host.loading.errors import ContextImportError, LoadFailed, load_failed
from crystal.host.loading.finder import ContextFinder, installed
from crystal.host.loading.imports import ContextImports
from crystal.host.loading.loader import ask_finders, make_spec
from crystal.host.loading.missing import missing_module
from crystal.host.loading.modules import DOT, FolderModules, FoundModule, ModuleKind
from crystal.host.loading.names import HOST_PROVIDED, PREFIX, PUBLIC_TOPS, REFUSED_TOPS, STANDARD_NAMES
from crystal.host.loading.shared import SharedFinder
from crystal.host.loading.snapshot import FolderSnapshot


class LoadContext:
    """The code of one folder.

    :param key: names it in messages, such as ``plugin:home/Acme``, and, made fit for one, in its module names.
    :param snapshot: what it is compiled from.
    :param shared: importable names of distributions that are loaded once for the process; see ``shared``.
    :param cache: where compiled code is kept; without one it is compiled each time.

    :ivar package: mangled name that the names of its modules begin with.
    :ivar warnings: one clause for each thing the author should know: names that the standard library shadows, and
        what importing changed in the process and was put back.
    """

    def __init__(
        self,
        key: str,
        snapshot: FolderSnapshot,
        *,
        shared: Collection[str] = (),
        cache: BytecodeCache | None = None,
    ) -> None:
        self.key = key
        self.modules = FolderModules(snapshot)
        self.warnings: list[str] = _shadowed(self.modules, shared)
        self._finder = installed(ContextFinder)
        self._part = self._finder.add(key, self, self.modules.roots)
        self.package = f"{PREFIX}{self._part}"
        self._prefix = f"{self.package}."
        self._imports = ContextImports(key, self.package, self.modules, shared, cache)
        self._entries: dict[str, FoundModule] = {}
        self._brought_finders: list[Any] = []

    def entry(self, module: str) -> ModuleType:
        """Import the module that a manifest names and return it, or what it put in its own place.

        :param module: a ``.py`` file or a package folder, relative to the folder.
        :raises LoadFailed: whatever the import raised, but for ``KeyboardInterrupt``; nothing of it is left then.
        """
        try:
            name = self._place_entry(module)
            return self._contained(name)
        except KeyboardInterrupt:
            raise
        except LoadFailed:
            raise
        except BaseException as error:
            # Code of a plugin may raise anything at import, SystemExit included.
            raise load_failed(module, error, self.modules.snapshot.folder) from error

    def import_module(self, name: str) -> ModuleType:
        """Import a module as code of the folder would.

        :param name: absolute plain name, such as ``acme.tools``.
        :raises ContextImportError: when there is none that the folder's code may have.
        :raises BaseException: whatever the module's code raises; nothing of what it imported is left then.
        """
        route = self._imports.route(name)
        return self._contained(route.name) if route.top else self._imports.resolve(name)

    def close(self) -> None:
        """Take the modules out of ``sys.modules``, and finders of theirs out of ``sys.meta_path``.

        Objects that live on keep working, and so do their imports of modules that were loaded before; what was not
        is not found any more. Instances of their classes can no longer be pickled.
        """
        if not self._imports.closed:
            self._imports.keep(self._finder.remove(self._part))
            self._imports.code.forget_lines()
            self._brought_finders.clear()
            for finder in list(sys.meta_path):
                if _module_of(finder).startswith(self._prefix):
                    sys.meta_path.remove(finder)
                elif isinstance(finder, SharedFinder):
                    finder.release(self.key)

    def find_spec(self, fullname: str, plain: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec:
        """Return the spec of one of the context's modules; called by the process's finder.

        :raises ContextImportError: when the folder has no such module.
        """
        parent, _, tail = plain.rpartition(".")
        folders = path if parent and path is not None else self.modules.roots
        found = self._entries.get(plain) or self.modules.find(tail, folders)
        if found is not None:
            return make_spec(fullname, found, self._imports.code)
        own = [finder for finder in sys.meta_path if _module_of(finder).startswith(self._prefix)]
        spec = ask_finders((*own, *self._brought_finders), fullname, path, target)
        if spec is None:
            raise ContextImportError(missing_module(self.modules, plain, folders), name=fullname)
        return spec

    def _place_entry(self, module: str) -> str:
        """Return the real name of a manifest's module; its file is the one named, whatever else has its name."""
        path = "/".join(part for part in module.split("/") if part not in ("", "."))
        stem = path.removesuffix("/__init__.py") if path.endswith("/__init__.py") else path
        is_file = stem.endswith(".py")
        file = stem if is_file else f"{stem}/__init__.py"
        if not path or self.modules.source(f"{self.modules.folder}/{file}") is None:
            raise LoadFailed(module, "is neither a .py file nor a package folder of the plugin's folder")
        location = f"{self.modules.folder}/{file}"
        portions = () if is_file else (location.rpartition("/")[0],)
        found = FoundModule(kind=ModuleKind.SOURCE if is_file else ModuleKind.PACKAGE, path=location, portions=portions)
        *parents, last = stem.removesuffix(".py").split("/")
        usual = self.modules.find(last.replace(".", DOT), ["/".join((self.modules.folder, *parents))])
        if usual is not None and usual != found:
            # A package of that name lies beside it, and keeps the name.
            last = f"{last}.py"
        plain = ".".join(part.replace(".", DOT) for part in (*parents, last))
        self._entries[plain] = found
        return self._prefix + plain

    def _contained(self, name: str) -> ModuleType:
        if self._imports.closed:
            raise ContextImportError(f"{self.key} was unloaded before", name=self._imports.plain_name(name))
        before = Before(self.package, self.modules, self._imports.shared)
        try:
            return self._imports.resolve(name)
        except BaseException:
            before.drop_new_modules()
            raise
        finally:
            changes = before.restore(self._brought_finders.append)
            self.warnings += [change for change in changes if change not in self.warnings]


def _module_of(finder: object) -> str:
    return (finder if isinstance(finder, type) else type(finder)).__module__


def _shadowed(modules: FolderModules, shared: Collection[str]) -> list[str]:
    """Say which files of a folder its own imports never reach."""
    host = PUBLIC_TOPS | REFUSED_TOPS | (HOST_PROVIDED - set(shared))
    names = modules.snapshot.files
    warnings = []
    for name in sorted(modules.top_levels & (STANDARD_NAMES | host)):
        own = f"{name}.py" in names or f"{name}/__init__.py" in names
        library = f"lib/{name}.py" in names or f"lib/{name}/__init__.py" in names
        # A distribution may well bring what the host provides, and need not know.
        if own or (library and name not in HOST_PROVIDED):
            by = "standard library" if name in STANDARD_NAMES else "host"
            place = "" if own else "lib/"
            warnings.append(f"{place}{name} is shadowed by the {by}'s {name}; rename it to import it")
    return warnings
