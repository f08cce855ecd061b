"""Disk plugins as a kind of extension: how their folders are found and what their manifests say. No code runs.

Of the entries of a ``plugins`` folder, a folder with a plugin's name is a plugin; other folders, and loose ``.json``
and ``.py`` files, get a note; what begins with a dot and any other file is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from crystal.host.manifests.plugin import (
    PLUGIN_MANIFEST,
    CommandManifest,
    ModuleManifest,
    PluginManifest,
    parse_plugin_manifest,
)
from crystal.host.manifests.reading import ManifestRefused
from crystal.host.sources.counting import manifest_bytes, refused_manifest, require_module
from crystal.host.sources.trees import (
    DIRECTORY_NAME,
    DISABLED,
    DiscoveredFolder,
    ExtensionKind,
    list_home_tree,
    list_project_tree,
    overlay,
)
from crystal.store.home import Home
from crystal.types._frozen import Frozen
from crystal.types.notes import Note, NoteCode
from crystal.workspace.fence import printable

__all__ = [
    "DIRECTORY_NAME",
    "DISABLED",
    "HIDDEN",
    "LINK",
    "PLUGINS",
    "DiscoveredPlugin",
    "PluginTree",
    "home_tree",
    "overlay",
    "project_tree",
    "read_plugin",
]

PLUGINS = ExtensionKind(
    folder="plugins",
    manifest=PLUGIN_MANIFEST,
    word="plugin",
    prefix="plugin",
    by_manifest=False,
    loose=(".json", ".py"),
)
HIDDEN = PLUGINS.hidden
LINK = PLUGINS.link


class DiscoveredPlugin(DiscoveredFolder):
    """One plugin folder, whether or not it counts.

    :param manifest: ``None`` when it was not read or cannot be used.
    """

    kind: ClassVar[ExtensionKind] = PLUGINS

    manifest: PluginManifest | None = None


class PluginTree(Frozen):
    """The plugin folders of one ``plugins`` folder, sorted by name, their manifests unread.

    :param ignores_case: whether its file system takes names that differ only by case for one.
    """

    plugins: tuple[DiscoveredPlugin, ...] = ()
    notes: tuple[Note, ...] = ()
    ignores_case: bool = False


def home_tree(home: Home) -> PluginTree:
    """List the plugin folders of the home; its ``plugins`` folder may itself be a link."""
    tree = list_home_tree(DiscoveredPlugin, home)
    return PluginTree(plugins=tree.folders, notes=tree.notes, ignores_case=tree.ignores_case)


def project_tree(home: Home, workspace: Path) -> PluginTree:
    """List the plugin folders of a workspace. There are none when its ``.crystal`` is the home itself.

    A ``plugins`` folder that leads out of the workspace, or into the home, is left out with a note.
    """
    tree = list_project_tree(DiscoveredPlugin, home, workspace)
    return PluginTree(plugins=tree.folders, notes=tree.notes, ignores_case=tree.ignores_case)


def read_plugin(
    plugin: DiscoveredPlugin, files: Mapping[str, bytes] | None = None
) -> tuple[DiscoveredPlugin, tuple[Note, ...]]:
    """Read the manifest of a plugin folder that was not refused.

    :param files: the bytes of the folder when they were read already; what was trusted is not read a second time.
    :return: the plugin with its manifest, or with the reason why it has none, and the note about that.
    """
    path = plugin.path / PLUGIN_MANIFEST
    try:
        manifest = parse_plugin_manifest(path, manifest_bytes(plugin, files))
        if isinstance(manifest, ModuleManifest) and manifest.enabled:
            require_module(plugin, manifest.module, manifest.enabled)
    except ManifestRefused as refused:
        return refused_manifest(plugin, refused)
    read = replace(plugin, manifest=manifest, enabled=manifest.enabled)
    if not manifest.enabled:
        return replace(read, skipped=plugin.skipped or DISABLED), ()
    if isinstance(manifest, CommandManifest):
        reason = "plugins made of a command are not in this version"
        text = (
            f"Plugin '{plugin.directory}' is skipped: {printable(str(path))} has the field command, and {reason}; "
            "write it as Python with the field module, or disable it."
        )
        note = Note(code=NoteCode.MANIFEST_UNSUPPORTED, text=text, source=printable(plugin.full_name))
        return replace(read, skipped=plugin.skipped or reason), (note,)
    return read, ()
