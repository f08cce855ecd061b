"""Stand-ins for the modules of the standard library that import by name, so that they search the caller's context.

Each has what its original has, but for the functions that take a module's name. They are made when first imported.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, Protocol

from crystal.host.loading.errors import ContextImportError
from crystal.host.loading.loader import FolderCode, SnapshotLoader
from crystal.host.loading.modules import FolderModules

HAVING_STAND_INS = frozenset(("builtins", "importlib", "pkgutil"))
"""Top-level modules that have a stand-in, or hold one that has."""

_BY_PACKAGE = (
    *("files", "open_text", "open_binary", "read_text", "read_binary"),
    *("path", "is_resource", "contents"),
)
"""What ``importlib.resources`` offers by package; versions of Python differ in how much of it they have."""

Members = dict[str, Any]


class Imports(Protocol):
    """What stand-ins need of a context."""

    builtins: ModuleType
    modules: FolderModules
    code: FolderCode
    package: str

    def real_name(self, name: str) -> str:
        """Return a module's name in ``sys.modules``."""

    def plain_name(self, name: str) -> str:
        """Return a module's name as code of the folder writes it."""

    def resolve(self, name: str) -> ModuleType:
        """Import a module by its absolute name."""


class StandIns:
    """The stand-ins of one context."""

    def __init__(self, context: Imports) -> None:
        self._context = context
        self._made: dict[str, ModuleType] = {"builtins": context.builtins}
        self._members: dict[str, Callable[[ModuleType], Members]] = {
            "importlib": self._importlib,
            "importlib.machinery": self._machinery,
            "importlib.metadata": self._metadata,
            "importlib.resources": self._resources,
            "importlib.util": self._util,
            "pkgutil": self._pkgutil,
        }

    def get(self, name: str) -> ModuleType:
        """Return the stand-in of a module, or the module itself when it has none."""
        made = self._made.get(name)
        if made is None:
            made = importlib.import_module(name)
            members = self._members.get(name)
            if members is not None:
                made = self._stand_in(made, members(made))
            self._made[name] = made
        return made

    def _stand_in(self, original: ModuleType, members: Members) -> ModuleType:
        def read(attribute: str) -> Any:
            inner = f"{original.__name__}.{attribute}"
            return self.get(inner) if inner in self._members else getattr(original, attribute)

        made = ModuleType(original.__name__, original.__doc__)
        kept = ("__all__", "__file__", "__loader__", "__package__", "__path__", "__spec__")
        vars(made).update({name: value for name, value in vars(original).items() if name in kept})
        vars(made).update(members, __getattr__=read, __dir__=lambda: dir(original))
        return made

    def _absolute(self, name: str, package: str | None) -> str:
        if not name.startswith("."):
            return name
        from importlib.util import resolve_name

        return resolve_name(name, package)

    def _importlib(self, original: ModuleType) -> Members:
        context = self._context

        def import_module(name: str, package: str | None = None) -> ModuleType:
            if name.startswith(".") and not package:
                original.import_module(name, package)  # raises what it always raises
            return context.resolve(self._absolute(name, package))

        return {"import_module": import_module, "__import__": vars(context.builtins)["__import__"]}

    def _util(self, original: ModuleType) -> Members:
        context = self._context

        def find_spec(name: str, package: str | None = None) -> Any:
            real = context.real_name(self._absolute(name, package))
            try:
                return original.find_spec(real)
            except ContextImportError as error:
                if error.name == real:
                    return None
                raise

        def spec_from_file_location(name: str, location: Any = None, **options: Any) -> Any:
            path = None if location is None else os.path.realpath(location)
            if path is None or options.get("loader") is not None or context.modules.relative(path) is None:
                return original.spec_from_file_location(name, location, **options)
            if not path.endswith(".py"):
                raise ContextImportError(f"{path} is not Python source, and nothing else is loaded from there")
            if context.modules.source(path) is None:
                raise ContextImportError(f"{path} was not there when its folder was read", path=path)
            real = f"{context.package}.{context.plain_name(name)}"
            loader = SnapshotLoader(real, path, context.code)
            return original.spec_from_file_location(real, path, loader=loader, **options)

        return {"find_spec": find_spec, "spec_from_file_location": spec_from_file_location}

    def _machinery(self, original: ModuleType) -> Members:
        code = self._context.code

        class SourceFileLoader(SnapshotLoader):
            """Python's own, but that a file of the folder is compiled from the bytes that were digested."""

            def __init__(self, fullname: str, path: str) -> None:
                super().__init__(fullname, os.path.realpath(path), code)

        return {"SourceFileLoader": SourceFileLoader}

    def _resources(self, original: ModuleType) -> Members:
        def by_package(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(package: Any = None, *arguments: Any, **options: Any) -> Any:
                anchor = options.pop("anchor", package)
                if anchor is None:
                    import sys

                    anchor = sys._getframe(1).f_globals["__name__"]  # noqa: SLF001  # as the original finds its caller
                found = self._context.resolve(anchor) if isinstance(anchor, str) else anchor
                return function(found, *arguments, **options)

            return call

        return {name: by_package(getattr(original, name)) for name in _BY_PACKAGE if hasattr(original, name)}

    def _metadata(self, original: ModuleType) -> Members:
        from crystal.host.loading.stand_in_metadata import metadata_members

        return metadata_members(self._context)

    def _pkgutil(self, original: ModuleType) -> Members:
        context = self._context

        def by_name(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(name: str, *arguments: Any) -> Any:
                module, colon, attribute = name.partition(":")
                return function(f"{context.real_name(module)}{colon}{attribute}", *arguments)

            return call

        def iter_modules(path: Sequence[str] | None = None, prefix: str = "") -> Iterator[Any]:
            return original.iter_modules(context.modules.roots if path is None else path, prefix)  # type: ignore[no-any-return]

        def walk_packages(
            path: Sequence[str] | None = None, prefix: str = "", onerror: Callable[[str], Any] | None = None
        ) -> Iterator[Any]:
            for found in iter_modules(path, prefix):
                yield found
                if not found.ispkg:
                    continue
                try:
                    inner = context.resolve(found.name).__path__
                except Exception as error:
                    if onerror is not None:
                        onerror(found.name)
                    elif not isinstance(error, ImportError):
                        raise
                else:
                    yield from walk_packages(list(inner), f"{found.name}.", onerror)

        named = ("get_data", "resolve_name", "get_loader", "find_loader", "iter_importers")
        return {
            **{name: by_name(getattr(original, name)) for name in named if hasattr(original, name)},
            "iter_modules": iter_modules,
            "walk_packages": walk_packages,
        }
