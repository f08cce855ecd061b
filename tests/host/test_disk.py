"""Which plugin folders are found, which of them count, and what is said about the others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from crystal.host.sources.disk import DISABLED, HIDDEN, LINK, DiscoveredPlugin, home_tree, overlay, project_tree
from crystal.host.sources.disk_plugins import DiskPlugins, find_disk_plugins
from crystal.host.sources.project_trust import ProjectCode
from crystal.store.home import Home
from crystal.types.environment import ExtensionSource
from crystal.types.notes import NoteCode
from tests.host.plugin_folders import make_plugin


class Place:
    """A home and a workspace with their trees."""

    def __init__(self, folder: Path) -> None:
        self.home = Home(root=folder / "home")
        self.workspace = folder / "ws"
        self.mine = self.home.root / "plugins"
        self.theirs = self.workspace / ".crystal" / "plugins"
        self.workspace.mkdir()

    def found(self, project: ProjectCode = ProjectCode.THIS_PROCESS) -> DiskPlugins:
        return find_disk_plugins(self.home, self.workspace, project)

    def rows(self) -> list[tuple[str, str, str]]:
        """Return source, directory and the reason of each plugin."""
        return [(plugin.source.value, plugin.directory, plugin.skipped) for plugin in self.found().plugins]

    def noted(self) -> list[tuple[NoteCode, str]]:
        return [(note.code, note.text) for note in self.found().notes]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


def test_nothing_is_found_where_nothing_is_and_nothing_is_made(place: Place) -> None:
    assert place.found() == DiskPlugins(plugins=(), untrusted=(), notes=(), snapshots={})
    assert not place.home.root.exists()
    assert os.listdir(place.workspace) == []


def test_both_trees_are_found_in_the_order_of_the_names(place: Place) -> None:
    for name in ("Zed", "acme", "Beta", "a" * 64, "x_.-9"):
        make_plugin(place.mine, name)
    make_plugin(place.theirs, "Mid")
    assert [plugin.directory for plugin in place.found().plugins] == ["Beta", "Mid", "Zed", "a" * 64, "acme", "x_.-9"]
    assert place.noted() == []


def test_a_found_plugin_says_what_its_manifest_says(place: Place) -> None:
    folder = make_plugin(place.mine, "Acme")
    [plugin] = place.found().plugins
    assert (plugin.full_name, plugin.entry, plugin.path) == ("plugin:home/Acme", "plugins/Acme", folder)
    assert (plugin.enabled, plugin.effective, plugin.skipped) == (True, True, "")


def test_a_project_folder_takes_the_place_of_the_home_plugin_as_a_whole(place: Place) -> None:
    make_plugin(place.mine, "Acme")
    make_plugin(place.theirs, "Acme")
    assert place.rows() == [("home", "Acme", HIDDEN), ("project", "Acme", "")]


@pytest.mark.parametrize("manifest", [b"{", b"", b'{"module": "gone.py"}', b'{"assembly": "a.dll"}'])
def test_a_broken_project_manifest_hides_the_home_plugin_all_the_same(place: Place, manifest: bytes) -> None:
    make_plugin(place.mine, "Acme")
    make_plugin(place.theirs, "Acme", manifest)
    [mine, theirs] = place.found().plugins
    assert mine.skipped == HIDDEN
    assert theirs.skipped.startswith("plugin.json")
    [(code, text)] = place.noted()
    assert code is NoteCode.MANIFEST_INVALID
    assert "Plugin 'Acme' is skipped: " in text
    assert str(place.theirs / "Acme" / "plugin.json") in text


def test_a_folder_without_a_manifest_is_a_note(place: Place) -> None:
    (place.mine / "Acme").mkdir(parents=True)
    [(code, text)] = place.noted()
    assert code is NoteCode.MANIFEST_INVALID
    assert text.endswith("plugin.json: there is no such file; write a plugin.json or remove the folder.")


def test_the_manifest_of_a_hidden_home_plugin_is_not_spoken_of(place: Place) -> None:
    make_plugin(place.mine, "Acme", b"{")
    make_plugin(place.theirs, "Acme")
    assert place.noted() == []


def test_a_disabled_plugin_is_left_out_without_a_note_and_still_hides(place: Place) -> None:
    make_plugin(place.mine, "Acme")
    make_plugin(place.theirs, "Acme", {"module": "not/there.py", "enabled": False})
    assert place.rows() == [("home", "Acme", HIDDEN), ("project", "Acme", DISABLED)]
    assert place.noted() == []


def test_an_invalid_manifest_that_is_disabled_is_still_a_note(place: Place) -> None:
    make_plugin(place.mine, "Acme", {"enabled": False})
    [plugin] = place.found().plugins
    assert plugin.enabled is False
    assert [code for code, _ in place.noted()] == [NoteCode.MANIFEST_INVALID]


def test_a_plugin_made_of_a_command_has_a_note_of_its_own(place: Place) -> None:
    make_plugin(place.mine, "say", {"name": "say", "description": "d", "schema": {}, "command": "echo"})
    [(code, text)] = place.noted()
    assert code is NoteCode.MANIFEST_UNSUPPORTED
    assert "field command" in text
    assert place.found().plugins[0].enabled is True


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("gone.py", "there is no file gone.py"),
        ("package", "package is no package folder, which holds __init__.py"),
        ("folder.py", "there is no file folder.py"),
        ("out.py", "out.py is a link that leaves the plugin's folder"),
        ("away/x.py", "away/x.py is a link that leaves the plugin's folder"),
    ],
)
def test_a_module_that_is_not_there_is_named(place: Place, module: str, words: str) -> None:
    folder = make_plugin(place.mine, "Acme", {"module": module})
    (folder / "package").mkdir()
    (folder / "folder.py").mkdir()
    (place.workspace / "x.py").write_text("")
    (folder / "out.py").symlink_to(place.workspace / "x.py")
    (folder / "away").symlink_to(place.workspace)
    [(code, text)] = place.noted()
    assert code is NoteCode.MANIFEST_INVALID
    assert f"field module: {words}" in text


def test_ill_named_folders_and_loose_files_are_one_note_each(place: Place) -> None:
    place.mine.mkdir(parents=True)
    for name in ("9lives", "a b", "é", "a" * 65, "_x", "x\ny"):
        (place.mine / name).mkdir()
    for name in ("acme.json", "Beta.py", "README.md", ".hidden", "9.json"):
        (place.mine / name).write_text("{}")
    (place.mine / ".git").mkdir()
    (place.mine / "__pycache__").mkdir()
    assert place.rows() == []
    [(ill, text), (loose, places)] = place.noted()
    assert (ill, loose) == (NoteCode.EXTENSION_NAME, NoteCode.EXTENSION_NAME)
    assert "'9lives', '_x', 'a b'" in text
    assert "and 1 more" in text
    assert "Beta.py (as Beta/Beta.py beside a plugin.json), acme.json (as acme/plugin.json)" in places
    assert "README" not in places


def test_a_folder_of_ten_thousand_odd_things_is_three_notes(place: Place) -> None:
    place.theirs.mkdir(parents=True)
    for number in range(3000):
        (place.theirs / f"a{number}").symlink_to("/")
        (place.theirs / f"b{number}.json").write_text("")
        (place.theirs / f"{number}").mkdir()
    assert [code for code, _ in place.noted()] == [
        NoteCode.EXTENSION_NAME,
        NoteCode.EXTENSION_NAME,
        NoteCode.EXTENSION_FOLDER,
    ]


@pytest.mark.parametrize("target", ["/", "../../elsewhere", "gone", "Acme"])
def test_a_plugin_folder_that_is_a_link_out_of_its_tree_is_refused(place: Place, target: str) -> None:
    (place.workspace / "elsewhere").mkdir()
    make_plugin(place.mine, "Acme")
    place.theirs.mkdir(parents=True)
    (place.theirs / "Acme").symlink_to(target)
    assert place.rows() == [("home", "Acme", ""), ("project", "Acme", LINK)]
    [(code, text)] = place.noted()
    assert code is NoteCode.EXTENSION_FOLDER
    assert "(Acme)" in text


def test_a_plugins_folder_of_the_project_that_leads_out_of_the_workspace_is_left_out(place: Place) -> None:
    make_plugin(place.workspace.parent / "elsewhere", "Acme")
    place.theirs.parent.mkdir()
    place.theirs.symlink_to("../../elsewhere")
    [(code, text)] = place.noted()
    assert code is NoteCode.EXTENSION_FOLDER
    assert "leaves the workspace" in text
    assert place.rows() == []


def test_a_plugins_folder_of_the_project_that_leads_into_the_home_is_left_out(place: Place) -> None:
    make_plugin(place.mine, "Acme")
    place.theirs.parent.mkdir()
    place.theirs.symlink_to(place.mine)
    assert place.rows() == [("home", "Acme", "")]
    assert [code for code, _ in place.noted()] == [NoteCode.EXTENSION_FOLDER]


@pytest.mark.parametrize("linked", [False, True])
def test_there_is_no_project_tree_when_it_is_the_home_itself(tmp_path: Path, linked: bool) -> None:
    folder = tmp_path.resolve()
    root = folder / "elsewhere" if linked else folder / ".crystal"
    make_plugin(root / "plugins", "Acme")
    if linked:
        (folder / ".crystal").symlink_to("elsewhere")
    home = Home(root=root)
    assert project_tree(home, folder).plugins == ()
    assert project_tree(home, folder).notes == ()
    found = find_disk_plugins(home, folder, ProjectCode.THIS_PROCESS)
    assert [plugin.full_name for plugin in found.plugins] == ["plugin:home/Acme"]


def test_a_home_tree_kept_elsewhere_is_followed(place: Place) -> None:
    make_plugin(place.workspace.parent / "dotfiles", "Acme")
    place.home.root.mkdir()
    place.mine.symlink_to("../dotfiles")
    assert place.rows() == [("home", "Acme", "")]


@pytest.mark.parametrize("source", ["mine", "theirs"])
def test_a_tree_that_is_no_folder_is_a_note(place: Place, source: str) -> None:
    tree: Path = getattr(place, source)
    tree.parent.mkdir(parents=True)
    tree.write_text("")
    [(code, text)] = place.noted()
    assert code is NoteCode.EXTENSION_FOLDER
    assert str(tree) in text
    assert "cannot be read: not a directory" in text


def test_names_that_differ_only_by_case_are_one_where_the_file_system_says_so(place: Place) -> None:
    def folder(name: str, source: ExtensionSource) -> DiscoveredPlugin:
        return DiscoveredPlugin(directory=name, source=source, path=Path(name))

    mine = [folder("Acme", ExtensionSource.HOME), folder("Beta", ExtensionSource.HOME)]
    theirs = [folder("aCME", ExtensionSource.PROJECT)]
    assert [plugin.skipped for plugin in overlay(mine, theirs, True)] == [HIDDEN, ""]
    assert [plugin.skipped for plugin in overlay(mine, theirs, False)] == ["", ""]
    make_plugin(place.mine, "Acme")
    (place.mine / "aCME").symlink_to("Acme")
    assert home_tree(place.home).ignores_case is False


def test_no_code_runs_and_nothing_is_imported(place: Place, capfd: pytest.CaptureFixture[str]) -> None:
    mark = place.workspace / "ran"
    source = f"import pathlib, sys\npathlib.Path({str(mark)!r}).write_text('x')\nsys.exit(3)\n"
    for tree in (place.mine, place.theirs):
        make_plugin(tree, "Acme", {"module": "acme.py"}, acme_py=source, sitecustomize_py=source)
    place.rows()
    assert not mark.exists()
    assert capfd.readouterr() == ("", "")
