"""Tool sets as a kind of extension: how their folders are found, which count, and what their manifests say.

No program is started and no code runs. A folder of a ``tools`` folder is a tool set when it holds a ``tools.json``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar, TypeAlias

from crystal.host.loading.snapshot import read_folder
from crystal.host.manifests.reading import ManifestRefused
from crystal.host.manifests.remembered import RememberedManifests
from crystal.host.manifests.toolset import TOOLS_MANIFEST, PythonRunner, ToolSetManifest, parse_tool_set
from crystal.host.sources.counting import (
    FoundExtensions,
    ReadFolder,
    find_extensions,
    list_project_entries,
    manifest_bytes,
    refused_manifest,
    require_module,
)
from crystal.host.sources.project_trust import ProjectCode, ProjectEntry
from crystal.host.sources.trees import DISABLED, DiscoveredFolder, ExtensionKind
from crystal.store.home import Home
from crystal.types.notes import Note, NoteCode
from crystal.workspace.fence import printable

TOOL_SETS = ExtensionKind(folder="tools", manifest=TOOLS_MANIFEST, word="tool set", prefix="toolset", by_manifest=True)


class DiscoveredToolSet(DiscoveredFolder):
    """One tool set's folder, whether or not it counts.

    :param manifest: ``None`` when it was not read or cannot be used.
    """

    kind: ClassVar[ExtensionKind] = TOOL_SETS

    manifest: ToolSetManifest | None = None


FoundToolSets: TypeAlias = FoundExtensions[DiscoveredToolSet]


def find_tool_sets(home: Home, workspace: Path, project: ProjectCode, read: ReadFolder = read_folder) -> FoundToolSets:
    """Find the tool sets of both trees and say which of them load. Nothing of them runs.

    Which manifests were in order is remembered in the cache of the home.

    :param workspace: real path.
    :raises HomeFileError: when ``trust.json`` is broken.
    """
    remembered = RememberedManifests(home)
    read_one = partial(read_tool_set, remembered=remembered)
    found = find_extensions(DiscoveredToolSet, home, workspace, project, read_one, read)
    remembered.save()
    return found


def tool_set_entries(
    home: Home, workspace: Path, read: ReadFolder = read_folder
) -> tuple[tuple[ProjectEntry, DiscoveredToolSet], ...]:
    """Return every tool set of a workspace, with its manifest and its digest as they are now.

    :param workspace: real path.
    :raises HomeFileError: when ``trust.json`` is broken.
    """
    return list_project_entries(DiscoveredToolSet, home, workspace, read_tool_set, read)


def read_tool_set(
    tool_set: DiscoveredToolSet,
    files: Mapping[str, bytes] | None = None,
    remembered: RememberedManifests | None = None,
) -> tuple[DiscoveredToolSet, tuple[Note, ...]]:
    """Read the manifest of a tool set's folder that was not refused.

    :param files: the bytes of the folder when they were read already; what was trusted is not read a second time.
    :param remembered: what needs no check; a manifest that is in order is added.
    :return: the set with its manifest, or with the reason why it has none, and what is to be said about that.
    """
    path = tool_set.path / TOOLS_MANIFEST
    try:
        manifest = parse_tool_set(path, manifest_bytes(tool_set, files), tool_set.directory, remembered)
        if isinstance(manifest.runner, PythonRunner) and manifest.enabled:
            require_module(tool_set, manifest.runner.module, manifest.enabled)
    except ManifestRefused as refused:
        return refused_manifest(tool_set, refused)
    read = replace(tool_set, manifest=manifest, enabled=manifest.enabled)
    if not manifest.enabled:
        return replace(read, skipped=tool_set.skipped or DISABLED), ()
    return read, _omissions(tool_set, manifest, path)


def _omissions(tool_set: DiscoveredToolSet, manifest: ToolSetManifest, path: Path) -> tuple[Note, ...]:
    return tuple(
        Note(
            code=NoteCode.TOOL_CATALOG,
            text=f"Tool '{tool.name}' of tool set '{tool_set.directory}' is omitted: {printable(str(path))}, "
            f"line {tool.line}, field {tool.field}: {tool.message}.",
            source=tool_set.full_name,
        )
        for tool in manifest.omitted
    )
