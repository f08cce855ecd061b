"""Which tool sets are found, which of them count, what is said about the others, and how one is switched."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from crystal.engine.project_code import find_project_code
from crystal.host.loading.snapshot import read_folder
from crystal.host.manifests.reading import ManifestRefused
from crystal.host.manifests.toolset import ExecRunner
from crystal.host.sources.counting import extension_facts
from crystal.host.sources.disk_plugins import find_disk_plugins
from crystal.host.sources.project_trust import NEVER_TRUSTED, EntryState, ProjectCode, untrusted_note
from crystal.host.sources.switching import switch_tool_set
from crystal.host.sources.tool_sets import TOOL_SETS, FoundToolSets, find_tool_sets, tool_set_entries
from crystal.host.sources.trees import DISABLED
from crystal.store.home import Home
from crystal.store.trust import remembered_entries, trust_entries
from crystal.types.environment import ExtensionSource
from crystal.types.notes import NoteCode
from tests.host.plugin_folders import make_plugin
from tests.host.tool_set_folders import PYTHON, SHORT, make_tool_set, several, tool

UNTRUSTED = "it is not trusted; 'crystal trust' asks"


class Place:
    """A home and a workspace with their trees of tool sets."""

    def __init__(self, folder: Path) -> None:
        self.home = Home(root=folder / "home")
        self.workspace = folder / "ws"
        self.mine = self.home.root / "tools"
        self.theirs = self.workspace / ".crystal" / "tools"
        self.workspace.mkdir()

    def found(self, project: ProjectCode = ProjectCode.THIS_PROCESS) -> FoundToolSets:
        return find_tool_sets(self.home, self.workspace, project)

    def rows(self, project: ProjectCode = ProjectCode.THIS_PROCESS) -> list[tuple[str, str, str]]:
        """Return source, directory and the reason of each set."""
        return [(each.source.value, each.directory, each.skipped) for each in self.found(project).folders]

    def noted(self) -> list[tuple[NoteCode, str]]:
        return [(note.code, note.text) for note in self.found().notes]

    def trust(self) -> None:
        """Trust every set of the workspace as it is now."""
        entries = {entry.name: entry.digest for entry, _ in tool_set_entries(self.home, self.workspace)}
        trust_entries(self.home, str(self.workspace), entries)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


def test_nothing_is_found_where_nothing_is_and_nothing_is_made(place: Place) -> None:
    assert place.found() == FoundToolSets(folders=(), untrusted=(), notes=(), snapshots={})
    assert not place.home.root.exists()
    assert os.listdir(place.workspace) == []


def test_both_trees_are_found_in_the_order_of_the_names(place: Place) -> None:
    for name in ("Zed", "acme", "Beta", "a" * 64, "x_-9"):
        make_tool_set(place.mine, name)
    make_tool_set(place.mine, "Acme.Tools", several(tool("t")))
    make_tool_set(place.theirs, "Mid")
    assert [each.directory for each in place.found().folders] == [
        *("Acme.Tools", "Beta", "Mid", "Zed", "a" * 64, "acme", "x_-9"),
    ]
    assert place.noted() == []


def test_a_found_set_says_what_its_manifest_says(place: Place) -> None:
    folder = make_tool_set(place.mine, "Acme")
    [found] = place.found().folders
    assert (found.full_name, found.entry, found.path) == ("toolset:home/Acme", "tools/Acme", folder)
    assert (found.enabled, found.effective, found.skipped) == (True, True, "")
    assert found.manifest is not None
    assert isinstance(found.manifest.runner, ExecRunner)
    assert [each.name for each in found.manifest.runner.tools] == ["Acme"]


def test_only_a_folder_that_holds_a_manifest_is_a_candidate(place: Place) -> None:
    make_tool_set(place.mine, "Acme")
    make_tool_set(place.mine / "deeper", "Beta")
    (place.mine / "empty").mkdir()
    (place.mine / "no name").mkdir()
    (place.mine / "other").mkdir()
    (place.mine / "other" / "plugin.json").write_text("{}")
    (place.mine / "tools.json").write_text(json.dumps(SHORT))
    (place.mine / "loose.json").write_text(json.dumps(SHORT))
    (place.mine / "file").write_text("")
    make_tool_set(place.mine, ".hidden")
    assert place.rows() == [("home", "Acme", "")]
    assert place.noted() == []


@pytest.mark.parametrize("kind", ["folder", "pipe", "loop", "dangling", "outside"])
def test_whatever_is_named_like_a_manifest_makes_a_candidate(place: Place, kind: str) -> None:
    make_tool_set(place.mine, "Acme")
    path = place.theirs / "Acme" / "tools.json"
    path.parent.mkdir(parents=True)
    match kind:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "loop":
            path.symlink_to(path)
        case "dangling":
            path.symlink_to("gone.json")
        case "outside":
            path.symlink_to(place.mine / "Acme" / "tools.json")
    found = place.found()
    assert all(note.code in (NoteCode.MANIFEST_INVALID, NoteCode.EXTENSION_FOLDER) for note in found.notes)
    assert len(found.notes) == 1
    assert [each.effective for each in found.folders if each.source is ExtensionSource.PROJECT] == [False]


def test_a_project_set_takes_the_place_of_the_home_set_as_a_whole(place: Place) -> None:
    make_tool_set(place.mine, "Acme", several(tool("a"), tool("b")))
    make_tool_set(place.theirs, "Acme", several(tool("c")))
    assert place.rows() == [("home", "Acme", TOOL_SETS.hidden), ("project", "Acme", "")]


@pytest.mark.parametrize("manifest", [b"{", b"", b'{"runner": "dotnet"}', b'{"runner": "python", "module": "x.py"}'])
def test_a_broken_project_manifest_hides_the_home_set_all_the_same(place: Place, manifest: bytes) -> None:
    make_tool_set(place.mine, "Acme")
    make_tool_set(place.theirs, "Acme", manifest)
    [mine, theirs] = place.found().folders
    assert mine.skipped == TOOL_SETS.hidden
    assert theirs.skipped.startswith("tools.json")
    [(code, text)] = place.noted()
    assert code is NoteCode.MANIFEST_INVALID
    assert text.startswith(f"Tool set 'Acme' is skipped: {place.theirs / 'Acme' / 'tools.json'}")


def test_a_project_folder_without_a_manifest_hides_nothing(place: Place) -> None:
    make_tool_set(place.mine, "Acme")
    (place.theirs / "Acme").mkdir(parents=True)
    assert place.rows() == [("home", "Acme", "")]


def test_a_note_names_file_line_field_what_was_found_and_what_was_expected(place: Place) -> None:
    folder = make_tool_set(place.mine, "Acme", json.dumps({**SHORT, "stdin": "no"}, indent=1).encode())
    [(code, text)] = place.noted()
    line = 1 + next(at for at, part in enumerate((folder / "tools.json").read_text().splitlines()) if "stdin" in part)
    assert code is NoteCode.MANIFEST_INVALID
    assert text == (
        f"Tool set 'Acme' is skipped: {folder}/tools.json, line {line}, field stdin: "
        'expected true or false, found "no".'
    )


def test_a_note_holds_no_control_character(place: Place) -> None:
    make_tool_set(place.mine, "Acme", {**SHORT, "argv": {"\x1b[2J\u202e": "--x"}})
    [(_, text)] = place.noted()
    assert text.isprintable()


def test_a_disabled_set_is_left_out_without_a_note_and_disables_the_home_set(place: Place) -> None:
    make_tool_set(place.mine, "Acme")
    make_tool_set(place.theirs, "Acme", {**SHORT, "enabled": False})
    make_tool_set(place.theirs, "Gone", {**PYTHON, "enabled": False})
    assert place.rows() == [
        ("home", "Acme", TOOL_SETS.hidden),
        ("project", "Acme", DISABLED),
        ("project", "Gone", DISABLED),
    ]
    assert place.noted() == []


def test_an_invalid_manifest_that_is_disabled_is_still_a_note(place: Place) -> None:
    make_tool_set(place.mine, "Acme", {"enabled": False})
    [found] = place.found().folders
    assert found.enabled is False
    assert [code for code, _ in place.noted()] == [NoteCode.MANIFEST_INVALID]


def test_a_tool_with_ill_formed_catalogs_is_a_note_and_takes_no_other_with_it(place: Place) -> None:
    make_tool_set(place.mine, "Acme", several(tool("a"), tool("b", catalogs=[])))
    [found] = place.found().folders
    assert found.effective
    [(code, text)] = place.noted()
    assert code is NoteCode.TOOL_CATALOG
    assert text.startswith("Tool 'b' of tool set 'Acme' is omitted: ")
    assert "tools.json, line 1, field tools[1].catalogs: the list is empty" in text


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("gone.py", "there is no file gone.py in the tool set's folder"),
        ("package", "package is no package folder, which holds __init__.py"),
        ("out.py", "out.py is a link that leaves the tool set's folder"),
    ],
)
def test_a_module_that_is_not_there_omits_the_set(place: Place, module: str, words: str) -> None:
    folder = make_tool_set(place.mine, "Acme", {**PYTHON, "module": module})
    (folder / "package").mkdir()
    (place.workspace / "x.py").write_text("")
    (folder / "out.py").symlink_to(place.workspace / "x.py")
    [(code, text)] = place.noted()
    assert code is NoteCode.MANIFEST_INVALID
    assert f"field module: {words}" in text


def test_a_module_that_is_there_is_enough(place: Place) -> None:
    folder = make_tool_set(place.mine, "Acme", {**PYTHON, "module": "package"})
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text("raise SystemExit\n")
    make_tool_set(place.mine, "Beta", PYTHON, acme_py="raise SystemExit\n")
    assert place.rows() == [("home", "Acme", ""), ("home", "Beta", "")]


def test_ill_named_sets_are_one_note(place: Place) -> None:
    for name in ("9lives", "a b", "é", "a" * 65, "_x", "x\ny"):
        make_tool_set(place.mine, name)
    assert place.rows() == []
    [(code, text)] = place.noted()
    assert code is NoteCode.EXTENSION_NAME
    assert "folders that cannot be tool sets: '9lives', '_x', 'a b'" in text


@pytest.mark.parametrize("target", ["/", "../../elsewhere", "gone", "Acme"])
def test_a_folder_that_is_a_link_out_of_its_tree_is_refused(place: Place, target: str) -> None:
    make_tool_set(place.workspace, "elsewhere")
    make_tool_set(place.mine, "Acme")
    place.theirs.mkdir(parents=True)
    (place.theirs / "Acme").symlink_to(target)
    assert place.rows() == [("home", "Acme", ""), ("project", "Acme", TOOL_SETS.link)]
    assert [code for code, _ in place.noted()] == [NoteCode.EXTENSION_FOLDER]


def test_a_link_inside_the_tree_is_a_set_with_the_name_of_the_link(place: Place) -> None:
    folder = make_tool_set(place.mine, "Acme")
    (place.mine / "twin").symlink_to("Acme")
    found = place.found().folders
    assert [(each.directory, each.path) for each in found] == [("Acme", folder), ("twin", folder)]
    names = [
        each.manifest.runner.tools[0].name
        for each in found
        if each.manifest and isinstance(each.manifest.runner, ExecRunner)
    ]
    assert names == ["Acme", "twin"]


def test_a_tools_folder_of_the_project_that_leads_out_of_the_workspace_is_left_out(place: Place) -> None:
    make_tool_set(place.workspace.parent / "elsewhere", "Acme")
    place.theirs.parent.mkdir()
    place.theirs.symlink_to("../../elsewhere")
    assert place.rows() == []
    [(code, text)] = place.noted()
    assert code is NoteCode.EXTENSION_FOLDER
    assert text.startswith("The project's tool sets are left out: ")


def test_a_project_set_is_absent_until_it_is_trusted_as_it_is(place: Place) -> None:
    make_tool_set(place.mine, "Acme")
    folder = make_tool_set(place.theirs, "Acme", run_py="x = 1\n")
    assert place.rows(ProjectCode.ASK) == [("home", "Acme", ""), ("project", "Acme", UNTRUSTED)]
    place.trust()
    assert place.rows(ProjectCode.ASK) == [("home", "Acme", TOOL_SETS.hidden), ("project", "Acme", "")]
    assert list(remembered_entries(place.home, str(place.workspace))) == ["tools/Acme"]
    (folder / "run.py").write_text("x = 2\n")
    found = place.found(ProjectCode.ASK)
    assert [(entry.name, entry.state) for entry in found.untrusted] == [("tools/Acme", EntryState.CHANGED)]
    assert [each.effective for each in found.folders] == [True, False]
    assert found.notes == ()


def test_a_manifest_is_that_of_the_trusted_bytes(place: Place) -> None:
    folder = make_tool_set(place.theirs, "Acme")
    place.trust()

    def read(path: Path) -> Any:
        snapshot = read_folder(path)
        (folder / "tools.json").write_text(json.dumps({**SHORT, "command": ["stolen"]}))
        return snapshot

    found = find_tool_sets(place.home, place.workspace, ProjectCode.ASK, read)
    [each] = found.folders
    assert each.manifest is not None
    assert isinstance(each.manifest.runner, ExecRunner)
    assert each.manifest.runner.tools[0].command == ("deploy", "release")
    assert found.snapshots[each.full_name].files["tools.json"] == json.dumps(SHORT).encode()


def test_an_untrusted_set_is_not_read(place: Place) -> None:
    folder = make_tool_set(place.theirs, "Acme")
    (folder / "tools.json").unlink()
    os.mkfifo(folder / "tools.json")
    found = place.found(ProjectCode.ASK)
    assert [entry.state for entry in found.untrusted] == [EntryState.NEW]
    assert found.folders[0].manifest is None


def test_plugins_and_tool_sets_are_told_of_in_one_note(place: Place) -> None:
    make_plugin(place.workspace / ".crystal" / "plugins", "Guard")
    make_tool_set(place.theirs, "Acme")
    plugins = find_disk_plugins(place.home, place.workspace, ProjectCode.ASK).untrusted
    note = untrusted_note([*plugins, *place.found(ProjectCode.ASK).untrusted])
    assert note is not None
    assert "does not count: plugins/Guard, tools/Acme. 'crystal trust' shows" in note.text


def test_never_means_never_without_a_word(place: Place) -> None:
    make_tool_set(place.theirs, "Acme")
    place.trust()
    found = place.found(ProjectCode.NEVER)
    assert [each.skipped for each in found.folders] == [NEVER_TRUSTED]
    assert (found.notes, found.untrusted) == ((), ())


def test_trust_shows_what_a_set_would_run(place: Place) -> None:
    make_tool_set(place.mine, "Acme")
    make_tool_set(place.theirs, "Acme")
    make_tool_set(place.theirs, "Broken", b"{")
    make_tool_set(place.theirs, "Py", {**PYTHON, "tools": {"t": {"approval": "always"}}}, acme_py="")
    tools = [tool(f"t{number}", command=["a b", "x" * 200]) for number in range(5)]
    make_tool_set(place.theirs, "Several", several(*tools, approval="always"))
    effects = {thing.entry.name: thing.effect for thing in find_project_code(place.home, place.workspace)}
    assert effects["tools/Acme"] == "takes the place of the home's tool set and runs deploy release as the tool Acme"
    assert effects["tools/Broken"].startswith("is not loaded, tools.json, line 1")
    always = "; its author asks for calls without a question"
    assert effects["tools/Py"] == f"runs acme.py for the tools in it{always}"
    assert effects["tools/Several"].startswith("runs acme 'a b' xxx")
    assert effects["tools/Several"].endswith(f"… as the tool t2 and 2 more commands{always}")


def test_the_rows_of_the_snapshot_tell_of_every_folder(place: Place) -> None:
    for name in ("Acme", "Beta"):
        make_tool_set(place.mine, name)
    make_tool_set(place.theirs, "Cece")
    rows = extension_facts(
        place.found(ProjectCode.ASK).folders, {"toolset:home/Acme": "Acme"}, {"toolset:home/Beta": "it raised"}
    )
    assert [(row.directory, row.enabled, row.effective, row.loaded, row.skipped) for row in rows] == [
        ("Acme", True, True, True, ""),
        ("Beta", True, True, False, "it raised"),
        ("Cece", None, False, False, UNTRUSTED),
    ]


def test_a_changed_manifest_is_read_anew(place: Place) -> None:
    folder = make_tool_set(place.mine, "Acme")
    for stdin in (True, False, True):
        (folder / "tools.json").write_text(json.dumps({**SHORT, "stdin": stdin}))
        [found] = place.found().folders
        assert found.manifest is not None
        assert isinstance(found.manifest.runner, ExecRunner)
        assert found.manifest.runner.stdin is stdin
    (folder / "tools.json").write_text(json.dumps({**SHORT, "stdin": 1}))
    assert [code for code, _ in place.noted()] == [NoteCode.MANIFEST_INVALID]


def test_switching_changes_enabled_alone_and_keeps_trust(place: Place) -> None:
    folder = make_tool_set(place.theirs, "Acme")
    place.trust()
    [found] = place.found(ProjectCode.ASK).folders
    switched = switch_tool_set(place.home, place.workspace, found, enabled=False)
    assert (switched.path, switched.changed, switched.trusted) == (folder / "tools.json", True, True)
    assert json.loads((folder / "tools.json").read_text()) == {"enabled": False, **SHORT}
    assert place.rows(ProjectCode.ASK) == [("project", "Acme", DISABLED)]
    [found] = place.found(ProjectCode.ASK).folders
    assert switch_tool_set(place.home, place.workspace, found, enabled=True).changed
    assert place.rows(ProjectCode.ASK) == [("project", "Acme", "")]
    assert not switch_tool_set(place.home, place.workspace, found, enabled=True).changed


def test_switching_makes_nothing_trusted(place: Place) -> None:
    make_tool_set(place.theirs, "Acme")
    [found] = place.found(ProjectCode.ASK).folders
    assert switch_tool_set(place.home, place.workspace, found, enabled=False).trusted is False
    assert place.rows(ProjectCode.ASK) == [("project", "Acme", UNTRUSTED)]


@pytest.mark.parametrize("manifest", [b"{", b'{"runner": "dotnet"}', b'{"enabled": false}'])
def test_switching_leaves_a_broken_manifest_as_it_is(place: Place, manifest: bytes) -> None:
    folder = make_tool_set(place.mine, "Acme", manifest)
    [found] = place.found().folders
    with pytest.raises(ManifestRefused):
        switch_tool_set(place.home, place.workspace, found, enabled=True)
    assert (folder / "tools.json").read_bytes() == manifest


def test_a_linked_set_is_not_switched(place: Place) -> None:
    folder = make_tool_set(place.workspace, "elsewhere")
    place.mine.mkdir(parents=True)
    (place.mine / "Acme").symlink_to(folder)
    [found] = place.found().folders
    with pytest.raises(ManifestRefused, match="a link that leaves the tools folder"):
        switch_tool_set(place.home, place.workspace, found, enabled=False)
    assert json.loads((folder / "tools.json").read_text()) == SHORT
