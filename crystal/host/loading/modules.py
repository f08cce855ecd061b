"""Which file of a folder a module name means: a search through the names of a snapshot, never through the disk."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable
from enum import Enum
from functools import cached_property

from crystal.host.loading.snapshot import FolderSnapshot
from crystal.types._frozen import Frozen

LIBRARY_FOLDER = "lib"
"""Where a folder keeps the distributions that it brings."""

DOT = "%2E"
"""Stands for a dot in the name of an entry module, where a dot of its own would mean a package."""

_COMPILED = re.compile(r"\.(?:[A-Za-z0-9_-]+\.)?(?:so|pyd|dylib)")
"""What follows a module's name in the file name of compiled code, for whatever interpreter it was compiled."""


class ModuleKind(Enum):
    """What a module is made of."""

    SOURCE = "source"
    PACKAGE = "package"
    NAMESPACE = "namespace"
    COMPILED = "compiled"


class FoundModule(Frozen):
    """Where a module is.

    :param path: absolute path of its file; empty for a namespace package.
    :param portions: absolute paths of a package's folders.
    """

    kind: ModuleKind
    path: str = ""
    portions: tuple[str, ...] = ()


class FolderModules:
    """The modules of one snapshot."""

    def __init__(self, snapshot: FolderSnapshot) -> None:
        self.snapshot = snapshot
        self.folder = str(snapshot.folder)
        self._inside = self.folder.rstrip(os.sep) + os.sep
        self.roots = [self.folder, f"{self._inside}{LIBRARY_FOLDER}"]

    def relative(self, path: str) -> str | None:
        """Return the name of an absolute path within the folder; ``None`` when it lies elsewhere."""
        if ".." in path or "//" in path or "/./" in path:
            path = os.path.normpath(path)
        path = path.rstrip(os.sep)
        if path == self.folder:
            return ""
        return path[len(self._inside) :] if path.startswith(self._inside) else None

    def source(self, path: str) -> bytes | None:
        """Return the bytes of a Python file by its absolute path, ``None`` when the snapshot has none."""
        name = self.relative(path)
        return None if name is None else self.snapshot.files.get(self.snapshot.resolve(name))

    def find(self, tail: str, folders: Iterable[str], *, compiled: bool = False) -> FoundModule | None:
        """Find a module as Python's own finder would: in each folder a package, then a file, else a namespace.

        :param tail: the last part of the module's name.
        :param folders: absolute paths, in order; those outside the folder hold nothing.
        :param compiled: look for compiled code too, before source, as Python does.
        """
        if "/" in tail or "\0" in tail:
            return None
        tail = tail.replace(DOT, ".")
        portions = []
        for folder in folders:
            place = self.relative(folder)
            if place is None:
                continue
            base = f"{place}/{tail}" if place else tail
            package = self._file(f"{base}/__init__.py")
            if package is not None:
                path = self._inside + package
                return FoundModule(kind=ModuleKind.PACKAGE, path=path, portions=(os.path.dirname(path),))
            library = self._compiled(place, tail) if compiled else None
            if library is not None:
                return FoundModule(kind=ModuleKind.COMPILED, path=self._inside + library)
            module = self._file(f"{base}.py")
            if module is not None:
                return FoundModule(kind=ModuleKind.SOURCE, path=self._inside + module)
            portion = self._folder(base)
            if portion is not None:
                portions.append(self._inside + portion)
        return FoundModule(kind=ModuleKind.NAMESPACE, portions=tuple(portions)) if portions else None

    def compiled_file(self, tail: str, folders: Iterable[str]) -> str | None:
        """Return the name of a file of compiled code for a module, with or without source beside it."""
        places = (self.relative(folder) for folder in folders)
        found = (self._compiled(place, tail) for place in places if place is not None)
        return next((name for name in found if name is not None), None)

    @cached_property
    def top_levels(self) -> frozenset[str]:
        """Names that can be imported from the folder itself or its library folder."""
        names = set()
        for root in ("", f"{LIBRARY_FOLDER}/"):
            for name in (*self.snapshot.files, *self._folders):
                if name.startswith(root) and "/" not in name[len(root) :]:
                    names.add(name[len(root) :].removesuffix(".py"))
        return frozenset(names)

    def _file(self, name: str) -> str | None:
        if self._has_file(name):
            return name
        other = None if name.isascii() else self._composed.get(unicodedata.normalize("NFC", name))
        return other if other is not None and self._has_file(other) else None

    def _has_file(self, name: str) -> bool:
        return self.snapshot.resolve(name) in self.snapshot.files

    def _folder(self, name: str) -> str | None:
        if self.snapshot.resolve(name) in self._folders:
            return name
        return None if name.isascii() else self._composed.get(unicodedata.normalize("NFC", name))

    def _compiled(self, place: str, tail: str) -> str | None:
        place = self.snapshot.resolve(place)
        begin = f"{place}/{tail}" if place else tail
        for name in self._compiled_files:
            if name.startswith(begin) and _COMPILED.fullmatch(name, len(begin)):
                return name
        return None

    @property
    def has_compiled(self) -> bool:
        """Whether there is any compiled code in the folder."""
        return bool(self._compiled_files)

    @cached_property
    def _compiled_files(self) -> tuple[str, ...]:
        return tuple(name for name in self.snapshot.entries if name.endswith((".so", ".pyd", ".dylib")))

    @cached_property
    def _folders(self) -> frozenset[str]:
        folders: set[str] = set()
        for name in self.snapshot.entries:
            while (name := name.rpartition("/")[0]) and name not in folders:
                folders.add(name)
        return frozenset(folders)

    @cached_property
    def _composed(self) -> dict[str, str]:
        """Names that are not ASCII, by their composed form: some systems keep them decomposed, and Python asks so."""
        names = (name for name in (*self.snapshot.files, *self._folders) if not name.isascii())
        return {unicodedata.normalize("NFC", name): name for name in names}
