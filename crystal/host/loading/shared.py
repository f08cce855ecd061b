"""Distributions that are loaded once for the process, under their plain names, from the first folder that brings them.

For compiled code, which imports through the host and cannot be loaded twice. Its Python files still come from the bytes
that were digested, and a compiled file is loaded only when it still has its digest. What the host's own environment
has is never replaced.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from crystal.host.loading.bytecode import BytecodeCache
from crystal.host.loading.distributions import brings, metadata_folders, normalised
from crystal.host.loading.errors import ContextImportError
from crystal.host.loading.loader import FolderCode, ask_finders, make_spec
from crystal.host.loading.modules import LIBRARY_FOLDER, FolderModules
from crystal.types._frozen import Frozen


class SharedDistribution(Frozen):
    """What was loaded, or is to be.

    :param version: of its distribution; a digest of its files when nothing says it.
    :param key: of the context that brings it.
    """

    name: str
    version: str
    key: str
    code: FolderCode
    info: str


class SharedFinder:
    """Finds shared distributions by their plain names; one for the process."""

    def __init__(self) -> None:
        self._brought: dict[str, SharedDistribution] = {}

    def admit(self, name: str, key: str, modules: FolderModules, cache: BytecodeCache | None) -> None:
        """Take the first folder that brings ``name``, or make sure that another one brings the same version.

        :param key: of the context that asks.
        :raises ContextImportError: when nobody brings it, or a different version is there already.
        """
        found = modules.find(name, modules.roots, compiled=True)
        known = self._brought.get(name)
        if found is None:
            if known is None:
                raise ContextImportError(
                    f"No module named {name!r}, which is declared as shared: put it into the folder with "
                    f"'pip install --target {modules.roots[-1]} {name}'",
                    name=name,
                )
            return
        version, info = _version(name, modules)
        if known is None:
            other = _host_version(name)
            if other is not None:
                if other != version:
                    raise ContextImportError(_second(name, version, other, "the host's own environment"), name=name)
                return
            self._brought[name] = SharedDistribution(
                name=name, version=version, key=key, code=FolderCode(modules, cache), info=info
            )
        elif known.version != version:
            raise ContextImportError(_second(name, version, known.version, known.key), name=name)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module of a shared distribution; ``None`` for every other name.

        :raises ContextImportError: for a module that a shared distribution has not.
        """
        top, _, rest = fullname.partition(".")
        brought = self._brought.get(top)
        if brought is None:
            return None
        code = brought.code
        folders = code.modules.roots if not rest or path is None else path
        found = code.modules.find(fullname.rpartition(".")[2], folders, compiled=True)
        if found is not None:
            return make_spec(fullname, found, code, lambda name, file: CheckedExtensionLoader(name, file, code.modules))
        others = [finder for finder in sys.meta_path if _module_of(finder).partition(".")[0] in self._brought]
        spec = ask_finders(others, fullname, path, target)
        if spec is None:
            raise ContextImportError(f"No module named {fullname!r}", name=fullname)
        return spec

    def find_distributions(self, context: Any = None) -> Iterator[Any]:
        """Yield the metadata of shared distributions, for ``importlib.metadata``."""
        from importlib import metadata
        from pathlib import Path

        wanted = getattr(context, "name", None)
        for brought in self._brought.values():
            if brought.info:
                found = metadata.PathDistribution(Path(brought.info))
                if wanted is None or normalised(found.metadata["Name"]) == normalised(wanted):
                    yield found

    def release(self, key: str) -> None:
        """Forget what a context brought and nobody imported. What was imported stays for the process."""
        for name in [name for name, brought in self._brought.items() if brought.key == key and name not in sys.modules]:
            del self._brought[name]


class CheckedExtensionLoader(importlib.machinery.ExtensionFileLoader):
    """Loads compiled code that still is what was digested."""

    def __init__(self, name: str, path: str, modules: FolderModules) -> None:
        super().__init__(name, path)
        self._modules = modules

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Load the file.

        :raises ContextImportError: when it changed since its folder was read.
        """
        name = self._modules.relative(self.path)
        entry = None if name is None else self._modules.snapshot.entries.get(self._modules.snapshot.resolve(name))
        with open(self.path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if entry is None or entry.rpartition(" ")[2] != digest:
            raise ContextImportError(f"{self.path} changed since its folder was read", name=spec.name, path=self.path)
        return super().create_module(spec)


def _module_of(finder: object) -> str:
    return (finder if isinstance(finder, type) else type(finder)).__module__


def _second(name: str, version: str, known: str, owner: str) -> str:
    return (
        f"{name} {version} cannot be loaded beside {name} {known} of {owner}: a shared distribution is loaded once; "
        "bring the same version, or run this one in a process of its own"
    )


def _version(name: str, modules: FolderModules) -> tuple[str, str]:
    """Return the version of the distribution that a module belongs to, and the folder of its metadata."""
    for root in modules.roots:
        for info, _, version in metadata_folders(root):
            if brings(info, name):
                return version, info
    entries = modules.snapshot.entries
    begins = tuple(f"{root}{name}{end}" for root in ("", f"{LIBRARY_FOLDER}/") for end in ("/", "."))
    mine = sorted(f"{entry} {entries[entry]}" for entry in entries if entry.startswith(begins))
    return f"build {hashlib.sha256(os.fsencode(chr(10).join(mine))).hexdigest()[:12]}", ""


def _host_version(name: str) -> str | None:
    """Return the version that the host's own environment has, or ``None``.

    :return: ``of unknown version`` when nothing says it.
    """
    if name not in sys.modules and importlib.machinery.PathFinder.find_spec(name) is None:
        return None
    for root in sys.path:
        for info, _, version in metadata_folders(root):
            if brings(info, name):
                return version
    return "of unknown version"
