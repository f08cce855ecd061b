"""Disk plugins as the host loads them: discovery, trust and overlay put together, in registration order.

What a workspace brings counts only when the operator trusts it as it is; until then it is as good as absent, and hides
no plugin of the home, since that could be the one that guards the operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from crystal.host.loading.snapshot import FolderRefused, FolderSnapshot, read_folder
from crystal.host.manifests.plugin import ModuleManifest
from crystal.host.sources.disk import DiscoveredPlugin, Tree, home_tree, overlay, project_tree, read_plugin
from crystal.host.sources.project_trust import NEVER_TRUSTED, EntryState, ProjectCode, ProjectEntry
from crystal.store.home import Home
from crystal.store.trust import remembered_entries, trusted_entries
from crystal.types._frozen import Frozen
from crystal.types.environment import ExtensionFacts
from crystal.types.notes import Note, NoteCode
from crystal.workspace.fence import printable

ReadFolder = Callable[[Path], FolderSnapshot]


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
    mine, theirs = home_tree(home), project_tree(home, workspace)
    placed, untrusted, refusals, snapshots = _judge(home, workspace, theirs, project, read)
    counting = [plugin for plugin in placed if plugin.full_name in snapshots]
    notes = [*mine.notes, *(theirs.notes if project is not ProjectCode.NEVER else ()), *refusals]
    found: list[DiscoveredPlugin] = []
    ignores_case = mine.ignores_case or theirs.ignores_case
    for plugin in (*overlay(mine.plugins, counting, ignores_case), *placed):
        if plugin.effective:
            snapshot = snapshots.get(plugin.full_name)
            read_one, noted = read_plugin(plugin, None if snapshot is None else snapshot.files)
            notes += noted
            found.append(read_one)
        else:
            found.append(plugin)
    return DiskPlugins(
        plugins=tuple(sorted(found, key=lambda plugin: plugin.directory)),
        untrusted=untrusted,
        notes=tuple(notes),
        snapshots=snapshots,
    )


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
            skipped, note = _refused(plugin, refused)
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
    return tuple(
        ExtensionFacts(
            directory=plugin.directory,
            source=plugin.source,
            display_name=display_names.get(plugin.full_name, ""),
            enabled=plugin.enabled,
            effective=plugin.effective,
            loaded=plugin.full_name in display_names,
            skipped=plugin.skipped or failures.get(plugin.full_name, ""),
        )
        for plugin in plugins
    )


def project_entries(
    home: Home, workspace: Path, read: ReadFolder = read_folder
) -> tuple[tuple[ProjectEntry, DiscoveredPlugin], ...]:
    """Return everything of a workspace that needs trust, with its manifest and its digest as they are now.

    :param workspace: real path.
    :raises HomeFileError: when ``trust.json`` is broken.
    """
    placed: list[DiscoveredPlugin] = []
    present: dict[str, str] = {}
    for plugin in project_tree(home, workspace).plugins:
        if plugin.skipped:
            placed.append(plugin)
            continue
        try:
            snapshot = read(plugin.path)
        except FolderRefused as refused:
            placed.append(_refused(plugin, refused)[0])
            continue
        present[plugin.entry] = snapshot.digest
        placed.append(read_plugin(plugin, snapshot.files)[0])
    review = trusted_entries(remembered_entries(home, str(workspace)), present)
    states = {
        **dict.fromkeys(review.trusted, EntryState.TRUSTED),
        **dict.fromkeys(review.changed, EntryState.CHANGED),
        **dict.fromkeys(review.new, EntryState.NEW),
    }
    return tuple(
        (
            ProjectEntry(
                name=plugin.entry,
                state=states.get(plugin.entry, EntryState.REFUSED),
                digest=present.get(plugin.entry, ""),
            ),
            plugin,
        )
        for plugin in placed
    )


def _judge(
    home: Home, workspace: Path, theirs: Tree, project: ProjectCode, read: ReadFolder
) -> tuple[list[DiscoveredPlugin], tuple[ProjectEntry, ...], list[Note], dict[str, FolderSnapshot]]:
    """Say which project plugins count: those alone have a snapshot."""
    placed: list[DiscoveredPlugin] = []
    untrusted: list[ProjectEntry] = []
    notes: list[Note] = []
    snapshots: dict[str, FolderSnapshot] = {}
    asks = project is ProjectCode.ASK
    remembered = remembered_entries(home, str(workspace)) if asks and theirs.plugins else {}
    for plugin in theirs.plugins:
        known = remembered.get(plugin.entry)
        if plugin.skipped:
            placed.append(plugin)
        elif project is ProjectCode.NEVER:
            placed.append(replace(plugin, skipped=NEVER_TRUSTED))
        elif asks and known is None:
            # Not even read: a stranger's folder may be large.
            untrusted.append(ProjectEntry(name=plugin.entry, state=EntryState.NEW))
            placed.append(_untrusted(plugin, EntryState.NEW))
        else:
            try:
                snapshot = read(plugin.path)
            except FolderRefused as refused:
                plugin, note = _refused(plugin, refused)
                notes.append(note)
                placed.append(plugin)
                continue
            if asks and snapshot.digest != known:
                untrusted.append(ProjectEntry(name=plugin.entry, state=EntryState.CHANGED, digest=snapshot.digest))
                placed.append(_untrusted(plugin, EntryState.CHANGED))
            else:
                snapshots[plugin.full_name] = snapshot
                placed.append(plugin)
    return placed, tuple(untrusted), notes, snapshots


def _untrusted(plugin: DiscoveredPlugin, state: EntryState) -> DiscoveredPlugin:
    changed = "it changed since it was trusted" if state is EntryState.CHANGED else "it is not trusted"
    return replace(plugin, skipped=f"{changed}; 'crystal trust' asks")


def _refused(plugin: DiscoveredPlugin, refused: FolderRefused) -> tuple[DiscoveredPlugin, Note]:
    text = f"Plugin '{plugin.directory}' is skipped: {printable(str(refused))}"
    note = Note(code=NoteCode.EXTENSION_FOLDER, text=text, source=plugin.full_name)
    return replace(plugin, skipped=str(refused)), note
