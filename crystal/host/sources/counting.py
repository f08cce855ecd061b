"""Which extensions of both trees count: discovery, trust and overlay put together, the same for every kind.

What a workspace brings counts only when the operator trusts it as it is; until then it is as good as absent, and hides
nothing of the home, since that could be what guards the operator. No code runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Generic, TypeAlias

from crystal.host.loading.snapshot import FolderRefused, FolderSnapshot, read_folder
from crystal.host.manifests.reading import ManifestRefused, manifest_missing, read_manifest
from crystal.host.sources.project_trust import NEVER_TRUSTED, EntryState, ProjectCode, ProjectEntry
from crystal.host.sources.trees import (
    Discovered,
    DiscoveredFolder,
    Tree,
    list_home_tree,
    list_project_tree,
    overlay,
)
from crystal.store.home import Home
from crystal.store.trust import remembered_entries, trusted_entries
from crystal.types._frozen import Frozen
from crystal.types.environment import ExtensionFacts
from crystal.types.notes import Note, NoteCode
from crystal.workspace.fence import printable

ReadFolder: TypeAlias = Callable[[Path], FolderSnapshot]

ReadManifest: TypeAlias = Callable[[Discovered, Mapping[str, bytes] | None], tuple[Discovered, tuple[Note, ...]]]
"""Reads the manifest of a folder that was not refused, from the bytes of a snapshot when there are some, and returns
the extension with its manifest, or with the reason why it has none, and what is to be said about that."""


class FoundExtensions(Frozen, Generic[Discovered]):
    """Every folder of one kind in both trees.

    :param folders: sorted by directory name, the home's before the project's.
    :param untrusted: what the operator is told about in one note; see :func:`untrusted_note`.
    :param snapshots: by full name, of the project's extensions that count.
    """

    folders: tuple[Discovered, ...]
    untrusted: tuple[ProjectEntry, ...]
    notes: tuple[Note, ...]
    snapshots: Mapping[str, FolderSnapshot]


def find_extensions(
    found: type[Discovered],
    home: Home,
    workspace: Path,
    project: ProjectCode,
    read_one: ReadManifest[Discovered],
    read: ReadFolder = read_folder,
) -> FoundExtensions[Discovered]:
    """Find the extensions of a kind in both trees and say which of them load.

    :param workspace: real path.
    :raises HomeFileError: when ``trust.json`` is broken.
    """
    mine, theirs = list_home_tree(found, home), list_project_tree(found, home, workspace)
    placed, untrusted, refusals, snapshots = _judge(home, workspace, theirs, project, read)
    counting = [each for each in placed if each.full_name in snapshots]
    notes = [*mine.notes, *(theirs.notes if project is not ProjectCode.NEVER else ()), *refusals]
    every: list[Discovered] = []
    for each in (*overlay(mine.folders, counting, mine.ignores_case or theirs.ignores_case), *placed):
        if each.effective:
            snapshot = snapshots.get(each.full_name)
            read_as, noted = read_one(each, None if snapshot is None else snapshot.files)
            notes += noted
            every.append(read_as)
        else:
            every.append(each)
    return FoundExtensions(
        folders=tuple(sorted(every, key=lambda each: each.directory)),
        untrusted=untrusted,
        notes=tuple(notes),
        snapshots=snapshots,
    )


def list_project_entries(
    found: type[Discovered],
    home: Home,
    workspace: Path,
    read_one: ReadManifest[Discovered],
    read: ReadFolder = read_folder,
) -> tuple[tuple[ProjectEntry, Discovered], ...]:
    """Return what of a kind a workspace brings and needs trust, with its manifest and its digest as they are now.

    :param workspace: real path.
    :raises HomeFileError: when ``trust.json`` is broken.
    """
    placed: list[Discovered] = []
    present: dict[str, str] = {}
    for each in list_project_tree(found, home, workspace).folders:
        if each.skipped:
            placed.append(each)
            continue
        try:
            snapshot = read(each.path)
        except FolderRefused as refused:
            placed.append(refused_folder(each, refused)[0])
            continue
        present[each.entry] = snapshot.digest
        placed.append(read_one(each, snapshot.files)[0])
    review = trusted_entries(remembered_entries(home, str(workspace)), present)
    states = {
        **dict.fromkeys(review.trusted, EntryState.TRUSTED),
        **dict.fromkeys(review.changed, EntryState.CHANGED),
        **dict.fromkeys(review.new, EntryState.NEW),
    }
    return tuple(
        (
            ProjectEntry(
                name=each.entry,
                state=states.get(each.entry, EntryState.REFUSED),
                digest=present.get(each.entry, ""),
            ),
            each,
        )
        for each in placed
    )


def extension_facts(
    folders: Sequence[DiscoveredFolder], display_names: Mapping[str, str], failures: Mapping[str, str]
) -> tuple[ExtensionFacts, ...]:
    """Return the rows of the catalog snapshot that ``attach`` receives.

    :param display_names: of the extensions that are loaded, by full name.
    :param failures: why others are not, by full name.
    """
    return tuple(
        ExtensionFacts(
            directory=each.directory,
            source=each.source,
            display_name=display_names.get(each.full_name, ""),
            enabled=each.enabled,
            effective=each.effective,
            loaded=each.full_name in display_names,
            skipped=each.skipped or failures.get(each.full_name, ""),
        )
        for each in folders
    )


def manifest_bytes(each: DiscoveredFolder, files: Mapping[str, bytes] | None) -> bytes:
    """Return the bytes of an extension's manifest.

    :param files: the bytes of the folder when they were read already; what was trusted is not read a second time.
    :raises ManifestRefused: when there is none or it cannot be read.
    """
    name = each.kind.manifest
    if files is None:
        return read_manifest(each.path, name).data
    if name not in files:
        raise manifest_missing(each.path / name)
    return files[name]


def refused_manifest(each: Discovered, refused: ManifestRefused) -> tuple[Discovered, tuple[Note, ...]]:
    """Skip an extension for its manifest, with the note about it."""
    reason = f"{each.kind.manifest}{refused.place}: {refused.message}"
    text = f"{each.named} is skipped: {printable(str(refused))}."
    note = Note(code=NoteCode.MANIFEST_INVALID, text=text, source=printable(each.full_name))
    return replace(each, enabled=refused.enabled, skipped=each.skipped or reason), (note,)


def refused_folder(each: Discovered, refused: FolderRefused) -> tuple[Discovered, Note]:
    """Skip an extension for what lies in its folder, with the note about it."""
    text = f"{each.named} is skipped: {printable(str(refused))}"
    note = Note(code=NoteCode.EXTENSION_FOLDER, text=text, source=each.full_name)
    return replace(each, skipped=str(refused)), note


def require_module(each: DiscoveredFolder, module: str, enabled: bool) -> None:
    """Refuse a manifest whose module is not there. What is loaded is decided on the bytes of the folder, not here.

    :param module: relative path, without ``.`` parts.
    :param enabled: what the manifest says.
    :raises ManifestRefused: when it is missing or a link that leaves the folder.
    """
    fault = _module_fault(each, module)
    if fault is not None:
        raise ManifestRefused(each.path / each.kind.manifest, fault, field="module", enabled=enabled)


def _module_fault(each: DiscoveredFolder, module: str) -> str | None:
    word = each.kind.word
    real = os.path.realpath(each.path / module)
    if not real.startswith(f"{each.path}{os.sep}"):
        return f"{module} is a link that leaves the {word}'s folder; put the file itself in its place"
    mend = f"write it, or name the {word}'s .py file or package folder"
    if module.endswith(".py"):
        return None if os.path.isfile(real) else f"there is no file {module} in the {word}'s folder; {mend}"
    if os.path.isfile(os.path.join(real, "__init__.py")):
        return None
    return f"{module} is no package folder, which holds __init__.py; {mend}"


def _judge(
    home: Home, workspace: Path, theirs: Tree[Discovered], project: ProjectCode, read: ReadFolder
) -> tuple[list[Discovered], tuple[ProjectEntry, ...], list[Note], dict[str, FolderSnapshot]]:
    """Say which of the project's extensions count: those alone have a snapshot."""
    placed: list[Discovered] = []
    untrusted: list[ProjectEntry] = []
    notes: list[Note] = []
    snapshots: dict[str, FolderSnapshot] = {}
    asks = project is ProjectCode.ASK
    remembered = remembered_entries(home, str(workspace)) if asks and theirs.folders else {}
    for each in theirs.folders:
        known = remembered.get(each.entry)
        if each.skipped:
            placed.append(each)
        elif project is ProjectCode.NEVER:
            placed.append(replace(each, skipped=NEVER_TRUSTED))
        elif asks and known is None:
            # Not even read: a stranger's folder may be large.
            untrusted.append(ProjectEntry(name=each.entry, state=EntryState.NEW))
            placed.append(_untrusted(each, EntryState.NEW))
        else:
            try:
                snapshot = read(each.path)
            except FolderRefused as refused:
                skipped, note = refused_folder(each, refused)
                notes.append(note)
                placed.append(skipped)
                continue
            if asks and snapshot.digest != known:
                untrusted.append(ProjectEntry(name=each.entry, state=EntryState.CHANGED, digest=snapshot.digest))
                placed.append(_untrusted(each, EntryState.CHANGED))
            else:
                snapshots[each.full_name] = snapshot
                placed.append(each)
    return placed, tuple(untrusted), notes, snapshots


def _untrusted(each: Discovered, state: EntryState) -> Discovered:
    changed = "it changed since it was trusted" if state is EntryState.CHANGED else "it is not trusted"
    return replace(each, skipped=f"{changed}; 'crystal trust' asks")
