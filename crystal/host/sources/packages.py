"""Installed packages as plugins: the entry-point group ``crystal``, sorted by name. They import like any package."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from crystal.host.isolation import name_fault
from crystal.host.sources.builtin import FoundPlugin
from crystal.types._frozen import Frozen
from crystal.types.notes import Note, NoteCode

GROUP = "crystal"
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

    def place(self) -> Path | None:
        """Return the file or folder of its top-level module without importing it; ``None`` when there is none."""
        top = self.module.partition(".")[0]
        try:
            spec = importlib.util.find_spec(top)
        except (ImportError, ValueError):
            return None
        if spec is None:
            return None
        if spec.submodule_search_locations:
            return Path(next(iter(spec.submodule_search_locations)))
        return None if spec.origin is None or not spec.has_location else Path(spec.origin)

    def lies_in(self, workspace: Path) -> bool:
        """Whether any file of it lies inside the workspace.

        :param workspace: real path.
        """
        places = [self.installed, *([place] if (place := self.place()) else [])]
        return any(Path(os.path.realpath(place)).is_relative_to(workspace) for place in places)

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
