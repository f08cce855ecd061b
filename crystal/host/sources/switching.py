"""Switch a plugin folder on or off at the operator's command; what was trusted stays trusted with the new manifest."""

from __future__ import annotations

from pathlib import Path

from crystal.host.loading.snapshot import FolderRefused, FolderSnapshot, read_folder
from crystal.host.manifests.plugin import PLUGIN_MANIFEST, parse_plugin_manifest
from crystal.host.manifests.reading import ManifestFile, ManifestRefused, read_manifest
from crystal.host.manifests.switch import switched, write_manifest
from crystal.host.sources.disk import LINK, DiscoveredPlugin
from crystal.host.sources.disk_plugins import ReadFolder
from crystal.store.home import Home
from crystal.store.trust import remembered_entries, update_entry
from crystal.types._frozen import Frozen
from crystal.types.environment import ExtensionSource


class Switched(Frozen):
    """What became of a command to switch a plugin.

    :param path: the manifest.
    :param changed: whether it had to be written.
    :param trusted: whether the plugin counts: a project's that the operator trusts, or any of the home.
    """

    path: Path
    changed: bool
    trusted: bool


def switch_plugin(
    home: Home, workspace: Path, plugin: DiscoveredPlugin, enabled: bool, read: ReadFolder = read_folder
) -> Switched:
    """Set ``enabled`` in a plugin's manifest and write nothing else, but for the digest of one that is trusted.

    :param workspace: real path.
    :raises ManifestRefused: when the folder or the manifest is broken, which leaves it untouched, or cannot be written.
    :raises HomeFileError: when ``trust.json`` is broken or cannot be written.
    """
    path = plugin.path / PLUGIN_MANIFEST
    if plugin.skipped == LINK:
        raise ManifestRefused(path, LINK)
    file = read_manifest(plugin.path, PLUGIN_MANIFEST)
    parse_plugin_manifest(path, file.data)
    data = switched(file, enabled)
    if parse_plugin_manifest(path, data).enabled is not enabled:
        raise ManifestRefused(path, "its field enabled cannot be set; set it by hand")
    trusted_as = _trusted_snapshot(home, workspace, plugin, file, read)
    trusted = plugin.source is ExtensionSource.HOME or trusted_as is not None
    if data == file.data:
        return Switched(path=path, changed=False, trusted=trusted)
    write_manifest(file, data)
    if trusted_as is not None:
        # Our own change alone becomes trusted: another file may have changed at the same time.
        after = trusted_as.digest_with(PLUGIN_MANIFEST, data)
        trusted = _digest(plugin, read) == after and update_entry(
            home, str(workspace), plugin.entry, trusted_as.digest, after
        )
    return Switched(path=path, changed=True, trusted=trusted)


def _trusted_snapshot(
    home: Home, workspace: Path, plugin: DiscoveredPlugin, file: ManifestFile, read: ReadFolder
) -> FolderSnapshot | None:
    """Return the content of a project plugin that is trusted as it is; its manifest has to be the one that was read."""
    if plugin.source is not ExtensionSource.PROJECT:
        return None
    known = remembered_entries(home, str(workspace)).get(plugin.entry)
    if known is None:
        return None
    snapshot = _snapshot(plugin, read)
    if snapshot is None:
        return None
    as_read = snapshot.digest == known and snapshot.files.get(PLUGIN_MANIFEST) == file.data
    return snapshot if as_read else None


def _digest(plugin: DiscoveredPlugin, read: ReadFolder) -> str:
    snapshot = _snapshot(plugin, read)
    return "" if snapshot is None else snapshot.digest


def _snapshot(plugin: DiscoveredPlugin, read: ReadFolder) -> FolderSnapshot | None:
    try:
        return read(plugin.path)
    except FolderRefused:
        return None
