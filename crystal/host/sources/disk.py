"""Find disk plugins: the folders of the home and of the project, which of them count, and what their manifests say.

No code of a plugin is run or imported here. Of the entries of a ``plugins`` folder, a folder with a plugin's name is a
plugin; other folders, and loose ``.json`` and ``.py`` files, get a note; what begins with a dot and any other file is
left alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from crystal.host.manifests.plugin import (
    PLUGIN_MANIFEST,
    CommandManifest,
    ModuleManifest,
    PluginManifest,
    parse_plugin_manifest,
)
from crystal.host.manifests.reading import ManifestRefused, manifest_missing, read_manifest
from crystal.store.home import Home, describe
from crystal.types._frozen import Frozen
from crystal.types.environment import ExtensionSource
from crystal.types.notes import Note, NoteCode
from crystal.workspace.fence import Fence, printable

DIRECTORY_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
"""Name of a plugin's or tool set's folder; the whole name has to match."""

HIDDEN = "the project's plugin of the same name takes its place"
DISABLED = "its manifest says enabled: false"
LINK = "a link that leaves the plugins folder loads nothing; put the folder itself in its place"

_LOOSE = (".json", ".py")
_NAMED_IN_A_NOTE = 5


class DiscoveredPlugin(Frozen):
    """One plugin folder, whether or not it counts.

    :param path: the folder; its real path unless the folder was refused.
    :param manifest: ``None`` when it was not read or cannot be used.
    :param enabled: ``None`` when the manifest could not say.
    :param skipped: why the plugin is not loaded; empty when it is to be loaded.
    """

    directory: str
    source: ExtensionSource
    path: Path
    manifest: PluginManifest | None = None
    enabled: bool | None = None
    skipped: str = ""

    @property
    def full_name(self) -> str:
        """Its name in the registry."""
        return f"plugin:{self.source.value}/{self.directory}"

    @property
    def entry(self) -> str:
        """Its name among what the operator trusts."""
        return f"plugins/{self.directory}"

    @property
    def effective(self) -> bool:
        """Whether it is to be loaded."""
        return not self.skipped


class Tree(Frozen):
    """The plugin folders of one ``plugins`` folder, sorted by name, their manifests unread.

    :param ignores_case: whether its file system takes names that differ only by case for one.
    """

    plugins: tuple[DiscoveredPlugin, ...] = ()
    notes: tuple[Note, ...] = ()
    ignores_case: bool = False


def home_tree(home: Home) -> Tree:
    """List the plugin folders of the home; its ``plugins`` folder may itself be a link."""
    folder = home.root / "plugins"
    return _list_tree(folder, os.path.realpath(folder), ExtensionSource.HOME)


def project_tree(home: Home, workspace: Path) -> Tree:
    """List the plugin folders of a workspace. There are none when its ``.crystal`` is the home itself.

    A ``plugins`` folder that leads out of the workspace, or into the home, is left out with a note.
    """
    folder = workspace / ".crystal" / "plugins"
    if not os.path.lexists(folder) or _same_file(workspace / ".crystal", home.root):
        return Tree()
    real = os.path.realpath(folder)
    if not Fence.at(workspace, home.root).contains(real):
        text = f"The project's plugins are left out: {printable(str(folder))} is a link that leaves the workspace."
        return Tree(notes=(_note(NoteCode.EXTENSION_FOLDER, f"{text} Put a folder in its place.", str(folder)),))
    return _list_tree(folder, real, ExtensionSource.PROJECT)


def overlay(
    home: Sequence[DiscoveredPlugin], project: Sequence[DiscoveredPlugin], ignores_case: bool
) -> tuple[DiscoveredPlugin, ...]:
    """Hide each home plugin whose name a project plugin has, whatever the state of the latter's manifest.

    :param project: those that count; one that is not trusted hides nothing.
    :param ignores_case: whether names that differ only by case are one.
    """
    taken = {_key(plugin.directory, ignores_case) for plugin in project}
    return tuple(
        replace(plugin, skipped=HIDDEN) if _key(plugin.directory, ignores_case) in taken else plugin for plugin in home
    )


def read_plugin(
    plugin: DiscoveredPlugin, files: Mapping[str, bytes] | None = None
) -> tuple[DiscoveredPlugin, tuple[Note, ...]]:
    """Read the manifest of a plugin folder that was not refused.

    :param files: the bytes of the folder when they were read already; what was trusted is not read a second time.
    :return: the plugin with its manifest, or with the reason why it has none, and the note about that.
    """
    path = plugin.path / PLUGIN_MANIFEST
    try:
        if files is None:
            data = read_manifest(plugin.path, PLUGIN_MANIFEST).data
        elif PLUGIN_MANIFEST in files:
            data = files[PLUGIN_MANIFEST]
        else:
            raise manifest_missing(path)
        manifest = parse_plugin_manifest(path, data)
        if isinstance(manifest, ModuleManifest) and manifest.enabled:
            _require_module(path, manifest)
    except ManifestRefused as refused:
        reason = f"{PLUGIN_MANIFEST}{refused.place}: {refused.message}"
        text = f"Plugin '{plugin.directory}' is skipped: {printable(str(refused))}."
        note = _note(NoteCode.MANIFEST_INVALID, text, plugin.full_name)
        return replace(plugin, enabled=refused.enabled, skipped=plugin.skipped or reason), (note,)
    read = replace(plugin, manifest=manifest, enabled=manifest.enabled)
    if not manifest.enabled:
        return replace(read, skipped=plugin.skipped or DISABLED), ()
    if isinstance(manifest, CommandManifest):
        reason = "plugins made of a command are not in this version"
        text = (
            f"Plugin '{plugin.directory}' is skipped: {printable(str(path))} has the field command, and {reason}; "
            "write it as Python with the field module, or disable it."
        )
        note = _note(NoteCode.MANIFEST_UNSUPPORTED, text, plugin.full_name)
        return replace(read, skipped=plugin.skipped or reason), (note,)
    return read, ()


def _require_module(path: Path, manifest: ModuleManifest) -> None:
    """Refuse a module that is not there. What is loaded is decided on the bytes of the folder, not here.

    :raises ManifestRefused: when it is missing or a link that leaves the folder.
    """
    folder = str(path.parent)
    real = os.path.realpath(path.parent / manifest.module)
    if not real.startswith(f"{folder}{os.sep}"):
        message = f"{manifest.module} is a link that leaves the plugin's folder; put the file itself in its place"
        raise ManifestRefused(path, message, field="module", enabled=manifest.enabled)
    if manifest.module.endswith(".py"):
        fault = None if os.path.isfile(real) else f"there is no file {manifest.module} in the plugin's folder"
    elif os.path.isfile(os.path.join(real, "__init__.py")):
        fault = None
    else:
        fault = f"{manifest.module} is no package folder, which holds __init__.py"
    if fault is not None:
        message = f"{fault}; write it, or name the plugin's .py file or package folder"
        raise ManifestRefused(path, message, field="module", enabled=manifest.enabled)


def _list_tree(folder: Path, real: str, source: ExtensionSource) -> Tree:
    try:
        with os.scandir(real) as scanned:
            entries = sorted(scanned, key=lambda entry: entry.name)
    except FileNotFoundError:
        return Tree()
    except OSError as error:
        text = f"The {source.value}'s plugins are left out: {printable(str(folder))} cannot be read: {describe(error)}."
        return Tree(notes=(_note(NoteCode.EXTENSION_FOLDER, text, str(folder)),))
    plugins: list[DiscoveredPlugin] = []
    ill_named: list[str] = []
    loose: list[str] = []
    for entry in entries:
        stem, suffix = os.path.splitext(entry.name)
        if entry.name.startswith(".") or entry.name == "__pycache__":
            continue
        if not _is_folder(entry):
            if suffix in _LOOSE and DIRECTORY_NAME.fullmatch(stem):
                loose.append(entry.name)
        elif DIRECTORY_NAME.fullmatch(entry.name):
            plugins.append(_follow(DiscoveredPlugin(directory=entry.name, source=source, path=Path(entry.path)), real))
        else:
            ill_named.append(entry.name)
    names = [plugin.directory for plugin in plugins]
    return Tree(
        plugins=tuple(plugins),
        notes=_tree_notes(folder, ill_named, loose, [plugin.directory for plugin in plugins if plugin.skipped]),
        ignores_case=_ignores_case(real, names),
    )


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is to be taken for a folder; a link that leads nowhere is: it may lead somewhere tomorrow."""
    return os.path.isdir(entry.path) or (entry.is_symlink() and not os.path.exists(entry.path))


def _follow(plugin: DiscoveredPlugin, tree: str) -> DiscoveredPlugin:
    """Give a plugin the real path of its folder; a link that leaves the tree refuses it."""
    real = os.path.realpath(plugin.path)
    if real.startswith(f"{tree}{os.sep}") and os.path.isdir(real):
        return replace(plugin, path=Path(real))
    return replace(plugin, skipped=LINK)


def _tree_notes(folder: Path, ill_named: list[str], loose: list[str], links: list[str]) -> tuple[Note, ...]:
    """Say what of a ``plugins`` folder cannot be a plugin: one note a kind, however many a stranger put there."""
    place = printable(str(folder))
    notes = []
    if ill_named:
        text = (
            f"{place} holds folders that cannot be plugins: {_listed(map(repr, ill_named))}. The name of a plugin's "
            "folder is a letter, then letters, digits, _ . or -, at most 64; rename them."
        )
        notes.append(_note(NoteCode.EXTENSION_NAME, text, str(folder)))
    if loose:
        text = f"{place} holds files that belong in a plugin's folder: {_listed(map(_home_of, loose))}."
        notes.append(_note(NoteCode.EXTENSION_NAME, text, str(folder)))
    if links:
        text = f"Plugins of {place} are skipped ({_listed(links)}): {LINK}."
        notes.append(_note(NoteCode.EXTENSION_FOLDER, text, str(folder)))
    return tuple(notes)


def _home_of(name: str) -> str:
    stem, suffix = os.path.splitext(name)
    place = f"{stem}/{PLUGIN_MANIFEST}" if suffix == ".json" else f"{stem}/{name} beside a {PLUGIN_MANIFEST}"
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


def _note(code: NoteCode, text: str, source: str) -> Note:
    return Note(code=code, text=text, source=printable(source))
