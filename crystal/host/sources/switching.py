"""Switch a plugin or a tool set on or off at the operator's command; what was trusted stays trusted as it then is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from crystal.host.loading.snapshot import FolderRefused, FolderSnapshot, read_folder
from crystal.host.manifests.plugin import parse_plugin_manifest
from crystal.host.manifests.reading import ManifestFile, ManifestRefused, read_manifest
from crystal.host.manifests.switch import switched, write_manifest
from crystal.host.manifests.toolset import parse_tool_set
from crystal.host.sources.counting import ReadFolder
from crystal.host.sources.disk import DiscoveredPlugin
from crystal.host.sources.tool_sets import DiscoveredToolSet
from crystal.host.sources.trees import DiscoveredFolder
from crystal.store.home import Home
from crystal.store.trust import remembered_entries, update_entry
from crystal.types._frozen import Frozen
from crystal.types.environment import ExtensionSource


class Switched(Frozen):
    """What became of a command to switch an extension.

    :param path: the manifest.
    :param changed: whether it had to be written.
    :param trusted: whether the extension counts: a project's that the operator trusts, or any of the home.
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
    return _switch(home, workspace, plugin, enabled, lambda path, data: parse_plugin_manifest(path, data).enabled, read)


def switch_tool_set(
    home: Home, workspace: Path, tool_set: DiscoveredToolSet, enabled: bool, read: ReadFolder = read_folder
) -> Switched:
    """Set ``enabled`` in a tool set's manifest and write nothing else, but for the digest of one that is trusted.

    :param workspace: real path.
    :raises ManifestRefused: when the folder or the manifest is broken, which leaves it untouched, or cannot be written.
    :raises HomeFileError: when ``trust.json`` is broken or cannot be written.
    """

    def says(path: Path, data: bytes) -> bool:
        return parse_tool_set(path, data, tool_set.directory).enabled

    return _switch(home, workspace, tool_set, enabled, says, read)


def _switch(
    home: Home,
    workspace: Path,
    found: DiscoveredFolder,
    enabled: bool,
    says: Callable[[Path, bytes], bool],
    read: ReadFolder,
) -> Switched:
    name = found.kind.manifest
    path = found.path / name
    if found.skipped == found.kind.link:
        raise ManifestRefused(path, found.skipped)
    file = read_manifest(found.path, name)
    says(path, file.data)
    data = switched(file, enabled)
    if says(path, data) is not enabled:
        raise ManifestRefused(path, "its field enabled cannot be set; set it by hand")
    trusted_as = _trusted_snapshot(home, workspace, found, file, read)
    trusted = found.source is ExtensionSource.HOME or trusted_as is not None
    if data == file.data:
        return Switched(path=path, changed=False, trusted=trusted)
    write_manifest(file, data)
    if trusted_as is not None:
        # Our own change alone becomes trusted: another file may have changed at the same time.
        after = trusted_as.digest_with(name, data)
        trusted = _digest(found, read) == after and update_entry(
            home, str(workspace), found.entry, trusted_as.digest, after
        )
    return Switched(path=path, changed=True, trusted=trusted)


def _trusted_snapshot(
    home: Home, workspace: Path, found: DiscoveredFolder, file: ManifestFile, read: ReadFolder
) -> FolderSnapshot | None:
    """Return the content of a project's extension that is trusted as it is, with the manifest that was read."""
    if found.source is not ExtensionSource.PROJECT:
        return None
    known = remembered_entries(home, str(workspace)).get(found.entry)
    if known is None:
        return None
    snapshot = _snapshot(found, read)
    if snapshot is None:
        return None
    as_read = snapshot.digest == known and snapshot.files.get(found.kind.manifest) == file.data
    return snapshot if as_read else None


def _digest(found: DiscoveredFolder, read: ReadFolder) -> str:
    snapshot = _snapshot(found, read)
    return "" if snapshot is None else snapshot.digest


def _snapshot(found: DiscoveredFolder, read: ReadFolder) -> FolderSnapshot | None:
    try:
        return read(found.path)
    except FolderRefused:
        return None
