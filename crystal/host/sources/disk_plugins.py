"""Disk plugins as the host loads them, in registration order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from crystal.host.loading.snapshot import FolderRefused, FolderSnapshot, read_folder
from crystal.host.manifests.plugin import ModuleManifest
from crystal.host.sources.counting import (
    ReadFolder,
    extension_facts,
    find_extensions,
    list_project_entries,
    refused_folder,
)
from crystal.host.sources.disk import DiscoveredPlugin, read_plugin
from crystal.host.sources.project_trust import ProjectCode, ProjectEntry
from crystal.store.home import Home
from crystal.types._frozen import Frozen
from crystal.types.environment import ExtensionFacts
from crystal.types.notes import Note


class LoadablePlugin(Frozen):
    """One plugin to load.

    :param snapshot: the bytes that its code is compiled from; for a project plugin those that were trusted.
    """

    full_name: str
    folder: Path
    manifest: ModuleManifest
    snapshot: FolderSnapshot


class DiskPlugins(Frozen):
    """Every plugin folder of both trees.

    :param plugins: sorted by directory name, the home's before the project's.
    :param untrusted: what the operator is told about in one note; see :func:`untrusted_note`.
    :param snapshots: by full name, of the project plugins that count.
    """

    plugins: tuple[DiscoveredPlugin, ...]
    untrusted: tuple[ProjectEntry, ...]
    notes: tuple[Note, ...]
    snapshots: Mapping[str, FolderSnapshot]


class LoadPlan(Frozen):
    """What to load, in registration order.

    :param found: the discovery, with the plugins marked whose folders cannot be read.
    """

    loadable: tuple[LoadablePlugin, ...]
    found: DiskPlugins


def find_disk_plugins(home: Home, workspace: Path, project: ProjectCode, read: ReadFolder = read_folder) -> DiskPlugins:
    """Find the plugins of both trees and say which of them load. No code runs.

    :param workspace: real path.
    :raises HomeFileError: when ``trust.json`` is broken.
    """
    found = find_extensions(DiscoveredPlugin, home, workspace, project, read_plugin, read)
    return DiskPlugins(plugins=found.folders, untrusted=found.untrusted, notes=found.notes, snapshots=found.snapshots)


def plan_loading(found: DiskPlugins, read: ReadFolder = read_folder) -> LoadPlan:
    """Read the folders of the plugins that load; one that cannot be read is skipped with a note."""
    plugins: list[DiscoveredPlugin] = []
    loadable: list[LoadablePlugin] = []
    notes = list(found.notes)
    for plugin in found.plugins:
        manifest = plugin.manifest
        if not plugin.effective or not isinstance(manifest, ModuleManifest):
            plugins.append(plugin)
            continue
        try:
            snapshot = found.snapshots.get(plugin.full_name) or read(plugin.path)
        except FolderRefused as refused:
            skipped, note = refused_folder(plugin, refused)
            plugins.append(skipped)
            notes.append(note)
            continue
        plugins.append(plugin)
        loadable.append(
            LoadablePlugin(full_name=plugin.full_name, folder=plugin.path, manifest=manifest, snapshot=snapshot)
        )
    return LoadPlan(loadable=tuple(loadable), found=replace(found, plugins=tuple(plugins), notes=tuple(notes)))


def plugin_facts(
    plugins: Sequence[DiscoveredPlugin], display_names: Mapping[str, str], failures: Mapping[str, str]
) -> tuple[ExtensionFacts, ...]:
    """Return the rows of the catalog snapshot that ``attach`` receives.

    :param display_names: of the plugins that are loaded, by full name.
    :param failures: why others are not, by full name.
    """
    return extension_facts(plugins, display_names, failures)


def project_entries(
    home: Home, workspace: Path, read: ReadFolder = read_folder
) -> tuple[tuple[ProjectEntry, DiscoveredPlugin], ...]:
    """Return every plugin of a workspace, with its manifest and its digest as they are now.

    :param workspace: real path.
    :raises HomeFileError: when ``trust.json`` is broken.
    """
    return list_project_entries(DiscoveredPlugin, home, workspace, read_plugin, read)
