"""Installed packages as plugins: the entry-point group ``crystal``, sorted by name. They import like any package."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from crystal.host.isolation import name_fault
from crystal.host.sources.builtin import FoundPlugin
from crystal.types._frozen import Frozen
from crystal.types.notes import Note, NoteCode

GROUP = "crystal"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
"""As a plugin's folder: the runtime directories of a package are named by it."""

_HEADING = f"[{GROUP}]".encode()


class PackagePlugin(Frozen):
    """One entry point; nothing of it is imported yet.

    :param value: ``module`` or ``module:attribute``.
    :param distribution: name and version, for people.
    :param installed: the folder that its metadata lie in.
    """

    name: str
    value: str
    distribution: str
    installed: Path

    @property
    def full_name(self) -> str:
        """Its name in the registry."""
        return f"package:{self.name}"

    @property
    def module(self) -> str:
        """The module to import."""
        return self.value.partition(":")[0].strip()

    def places(self) -> tuple[Path, ...]:
        """Return the files and folders that its module is imported from, without running any code.

        Those of a namespace package that holds it come before its own; none when it is not there.
        """
        found: list[Path] = []
        name = ""
        for part in self.module.split("."):
            name = f"{name}.{part}" if name else part
            try:
                # Nothing runs: what holds the name is a namespace, or there is nothing that holds it.
                spec = importlib.util.find_spec(name)
            except (ImportError, ValueError, AttributeError):
                return tuple(found)
            if spec is None:
                return tuple(found)
            folders = spec.submodule_search_locations
            if spec.origin is None and folders:
                found += map(Path, folders)
                continue
            if folders:
                found.append(Path(next(iter(folders))))
            elif spec.origin is not None and spec.has_location:
                found.append(Path(spec.origin))
            return tuple(found)
        return tuple(found)

    def lies_in(self, workspace: Path) -> bool:
        """Whether any file of it lies inside the workspace.

        :param workspace: real path.
        """
        return any(
            Path(os.path.realpath(place)).is_relative_to(workspace) for place in (self.installed, *self.places())
        )

    def load(self) -> object:
        """Import the module and return the plugin: the module, or its attribute.

        :raises BaseException: whatever the package's own code raises.
        """
        from importlib.metadata import EntryPoint

        found: object = EntryPoint(self.name, self.value, GROUP).load()
        return found


def load_packages(found: Iterable[PackagePlugin]) -> tuple[list[FoundPlugin], list[Note]]:
    """Import each package; one whose code fails is left out with a note."""
    loaded: list[FoundPlugin] = []
    notes: list[Note] = []
    for package in found:
        if not _NAME.fullmatch(package.name):
            text = (
                f"The entry point {package.name!r} of {package.distribution} is not loaded: its name must be a letter, "
                "then letters, digits, '_', '-' or '.', 64 at most."
            )
            notes.append(Note(code=NoteCode.PLUGIN_INVALID, text=text, source=package.full_name))
            continue
        try:
            plugin = package.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            # A package may raise anything while it is imported, SystemExit included.
            notes.append(
                Note(
                    code=NoteCode.PLUGIN_INVALID,
                    text=f"Plugin '{package.full_name}' ({package.distribution}) is not loaded: importing "
                    f"{package.value} {name_fault(error)}. The rest of the session is as without it.",
                    source=package.full_name,
                )
            )
        else:
            loaded.append(FoundPlugin(name=package.full_name, plugin=plugin))
    return loaded, notes


def find_packages(paths: Iterable[str] | None = None) -> tuple[PackagePlugin, ...]:
    """Return the entry points of the group, sorted by name; of two distributions in one place the first counts.

    :param paths: folders to look into instead of ``sys.path``.
    """
    folders = [folder for folder in (sys.path if paths is None else paths) if _has_group(folder)]
    if not folders:
        return ()
    # Imported only here: it costs more than the whole search, and few installations have a plugin.
    from importlib.metadata import distributions

    found: dict[tuple[str, str], PackagePlugin] = {}
    for distribution in distributions(path=folders):
        for entry in distribution.entry_points:
            if entry.group == GROUP:
                shown = f"{distribution.metadata['Name']} {distribution.version}"
                plugin = PackagePlugin(
                    name=entry.name,
                    value=entry.value,
                    distribution=shown,
                    installed=Path(str(distribution.locate_file(""))),
                )
                found.setdefault((entry.name, distribution.metadata["Name"]), plugin)
    return tuple(sorted(found.values(), key=lambda plugin: (plugin.name, plugin.distribution)))


def _has_group(folder: str) -> bool:
    """Whether any distribution in ``folder`` may declare the group; reads only ``entry_points.txt`` files."""
    try:
        with os.scandir(folder or os.curdir) as entries:
            infos = [entry.path for entry in entries if entry.name.endswith((".dist-info", ".egg-info"))]
    except OSError:
        return False
    for info in infos:
        try:
            with open(os.path.join(info, "entry_points.txt"), "rb") as file:
                if _HEADING in file.read():
                    return True
        except OSError:
            continue
    return False
