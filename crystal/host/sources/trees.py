"""The folders of one kind of extension in the home and in a workspace: what is one, and which links count.

Reads no manifest and runs no code. Of the entries of a tree, a folder with an extension's name is an extension, or, for
a kind that says so, only when it holds a manifest; what begins with a dot is left alone, and what looks like an
extension and cannot be one gets a note.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from crystal.store.home import Home, describe
from crystal.types._frozen import Frozen
from crystal.types.environment import ExtensionSource
from crystal.types.notes import Note, NoteCode
from crystal.workspace.fence import Fence, printable

DIRECTORY_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
"""Name of a plugin's or tool set's folder; the whole name has to match."""

DISABLED = "its manifest says enabled: false"
_NAMED_IN_A_NOTE = 5


class ExtensionKind(Frozen):
    """What tells plugins and tool sets apart on disk.

    :param folder: name of the tree below the home and below ``.crystal``; entries of ``trust.json`` begin with it.
    :param manifest: name of the manifest in each folder.
    :param word: the kind in a sentence, such as ``tool set``.
    :param prefix: begins the name in the registry.
    :param by_manifest: whether only a folder with a manifest is one; else a folder without it is one that lacks it.
    :param loose: suffixes of files that people put into the tree instead of into a folder.
    """

    folder: str
    manifest: str
    word: str
    prefix: str
    by_manifest: bool
    loose: tuple[str, ...] = ()

    @property
    def hidden(self) -> str:
        """Why an extension of the home does not count."""
        return f"the project's {self.word} of the same name takes its place"

    @property
    def link(self) -> str:
        """Why a folder that is a link out of its tree does not count."""
        return f"a link that leaves the {self.folder} folder loads nothing; put the folder itself in its place"


class DiscoveredFolder(Frozen):
    """One extension's folder, whether or not it counts. Each kind adds its manifest.

    :param path: the folder; its real path unless the folder was refused.
    :param enabled: ``None`` when the manifest could not say.
    :param skipped: why it is not loaded; empty when it is to be loaded.
    """

    kind: ClassVar[ExtensionKind]

    directory: str
    source: ExtensionSource
    path: Path
    enabled: bool | None = None
    skipped: str = ""

    @property
    def full_name(self) -> str:
        """Its name in the registry."""
        return f"{self.kind.prefix}:{self.source.value}/{self.directory}"

    @property
    def entry(self) -> str:
        """Its name among what the operator trusts."""
        return f"{self.kind.folder}/{self.directory}"

    @property
    def effective(self) -> bool:
        """Whether it is to be loaded."""
        return not self.skipped

    @property
    def named(self) -> str:
        """It, at the beginning of a sentence."""
        return f"{self.kind.word.capitalize()} '{self.directory}'"


Discovered = TypeVar("Discovered", bound=DiscoveredFolder)


class Tree(Frozen, Generic[Discovered]):
    """The folders of one tree, sorted by name, their manifests unread.

    :param ignores_case: whether its file system takes names that differ only by case for one.
    """

    folders: tuple[Discovered, ...] = ()
    notes: tuple[Note, ...] = ()
    ignores_case: bool = False


def list_home_tree(found: type[Discovered], home: Home) -> Tree[Discovered]:
    """List the folders of the home; the tree may itself be a link."""
    folder = home.root / found.kind.folder
    return _list_tree(found, folder, os.path.realpath(folder), ExtensionSource.HOME)


def list_project_tree(found: type[Discovered], home: Home, workspace: Path) -> Tree[Discovered]:
    """List the folders of a workspace. There are none when its ``.crystal`` is the home itself.

    A tree that leads out of the workspace, or into the home, is left out with a note.
    """
    kind = found.kind
    folder = workspace / ".crystal" / kind.folder
    if not os.path.lexists(folder) or _same_file(workspace / ".crystal", home.root):
        return Tree()
    real = os.path.realpath(folder)
    if not Fence.at(workspace, home.root).contains(real):
        text = f"The project's {kind.word}s are left out: {printable(str(folder))} is a link that leaves the workspace."
        return Tree(notes=(_note(NoteCode.EXTENSION_FOLDER, f"{text} Put a folder in its place.", folder),))
    return _list_tree(found, folder, real, ExtensionSource.PROJECT)


def overlay(home: Sequence[Discovered], project: Sequence[Discovered], ignores_case: bool) -> tuple[Discovered, ...]:
    """Hide each extension of the home whose name one of the project has, whatever the state of the latter's manifest.

    :param project: those that count; one that is not trusted hides nothing.
    :param ignores_case: whether names that differ only by case are one.
    """
    taken = {_key(each.directory, ignores_case) for each in project}
    return tuple(
        replace(each, skipped=each.kind.hidden) if _key(each.directory, ignores_case) in taken else each
        for each in home
    )


def _list_tree(found: type[Discovered], folder: Path, real: str, source: ExtensionSource) -> Tree[Discovered]:
    kind = found.kind
    try:
        with os.scandir(real) as scanned:
            entries = sorted(scanned, key=lambda entry: entry.name)
    except FileNotFoundError:
        return Tree()
    except OSError as error:
        place = printable(str(folder))
        text = f"The {source.value}'s {kind.word}s are left out: {place} cannot be read: {describe(error)}."
        return Tree(notes=(_note(NoteCode.EXTENSION_FOLDER, text, folder),))
    folders: list[Discovered] = []
    ill_named: list[str] = []
    loose: list[str] = []
    for entry in entries:
        if entry.name.startswith(".") or entry.name == "__pycache__":
            continue
        if not _is_folder(entry):
            stem, suffix = os.path.splitext(entry.name)
            if suffix in kind.loose and DIRECTORY_NAME.fullmatch(stem):
                loose.append(entry.name)
            continue
        one = found(directory=entry.name, source=source, path=Path(entry.path))
        one = _follow(one, real) if entry.is_symlink() else one
        if kind.by_manifest and one.effective and not _may_hold(one.path, kind.manifest):
            continue
        if DIRECTORY_NAME.fullmatch(entry.name):
            folders.append(one)
        else:
            ill_named.append(entry.name)
    links = [one.directory for one in folders if one.skipped]
    return Tree(
        folders=tuple(folders),
        notes=_tree_notes(kind, folder, ill_named, loose, links),
        ignores_case=_ignores_case(real, [one.directory for one in folders]),
    )


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is to be taken for a folder; a link that leads nowhere is: it may lead somewhere tomorrow."""
    if not entry.is_symlink():
        return entry.is_dir()
    return os.path.isdir(entry.path) or not os.path.exists(entry.path)


def _follow(found: Discovered, tree: str) -> Discovered:
    """Give a linked extension the real path of its folder; a link that leaves the tree refuses it."""
    real = os.path.realpath(found.path)
    if real.startswith(f"{tree}{os.sep}") and os.path.isdir(real):
        return replace(found, path=Path(real))
    return replace(found, skipped=found.kind.link)


def _may_hold(folder: Path, manifest: str) -> bool:
    """Whether there is something of that name, or nobody can tell; what it is shows when it is read."""
    try:
        os.lstat(folder / manifest)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _tree_notes(
    kind: ExtensionKind, folder: Path, ill_named: list[str], loose: list[str], links: list[str]
) -> tuple[Note, ...]:
    """Say what of a tree cannot be an extension: one note a kind of fault, however many a stranger put there."""
    place = printable(str(folder))
    notes = []
    if ill_named:
        text = (
            f"{place} holds folders that cannot be {kind.word}s: {_listed(map(repr, ill_named))}. The name of a "
            f"{kind.word}'s folder is a letter, then letters, digits, _ . or -, at most 64; rename them."
        )
        notes.append(_note(NoteCode.EXTENSION_NAME, text, folder))
    if loose:
        names = _listed(_home_of(name, kind.manifest) for name in loose)
        text = f"{place} holds files that belong in a {kind.word}'s folder: {names}."
        notes.append(_note(NoteCode.EXTENSION_NAME, text, folder))
    if links:
        text = f"{kind.word.capitalize()}s of {place} are skipped ({_listed(links)}): {kind.link}."
        notes.append(_note(NoteCode.EXTENSION_FOLDER, text, folder))
    return tuple(notes)


def _home_of(name: str, manifest: str) -> str:
    stem, suffix = os.path.splitext(name)
    place = f"{stem}/{manifest}" if suffix == ".json" else f"{stem}/{name} beside a {manifest}"
    return f"{name} (as {place})"


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    more = len(every) - _NAMED_IN_A_NOTE
    return ", ".join(every[:_NAMED_IN_A_NOTE]) + (f" and {more} more" if more > 0 else "")


def _key(directory: str, ignores_case: bool) -> str:
    return directory.lower() if ignores_case else directory


def _ignores_case(tree: str, names: Sequence[str]) -> bool:
    for name in names[:1]:
        try:
            one, other = (os.lstat(os.path.join(tree, spelling)) for spelling in (name, name.swapcase()))
        except OSError:
            return False
        return os.path.samestat(one, other)
    return False


def _same_file(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _note(code: NoteCode, text: str, folder: Path) -> Note:
    return Note(code=code, text=text, source=printable(str(folder)))
