"""What a workspace brings counts only as the operator trusted it; until then it is as good as absent."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from crystal.host.loading.snapshot import FolderSnapshot, read_folder
from crystal.host.manifests.reading import ManifestRefused
from crystal.host.sources.disk import HIDDEN
from crystal.host.sources.disk_plugins import (
    DiskPlugins,
    find_disk_plugins,
    plan_loading,
    plugin_facts,
    project_entries,
)
from crystal.host.sources.project_trust import NEVER_TRUSTED, EntryState, ProjectCode, ProjectEntry, untrusted_note
from crystal.host.sources.switching import switch_plugin
from crystal.store.home import HomeFileError
from crystal.store.trust import load_trust, remembered_entries, trust_entries
from crystal.types.environment import ExtensionFacts, ExtensionSource
from crystal.types.notes import NoteCode
from tests.host.plugin_folders import make_plugin
from tests.host.test_disk import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


def trust(place: Place) -> None:
    """Trust everything of the workspace as it is now."""
    entries = {entry.name: entry.digest for entry, _ in project_entries(place.home, place.workspace)}
    trust_entries(place.home, str(place.workspace), entries)


def loading(found: DiskPlugins) -> list[str]:
    return [plugin.full_name for plugin in plan_loading(found).loadable]


def test_an_untrusted_plugin_is_absent_and_the_home_plugin_of_its_name_loads(place: Place) -> None:
    make_plugin(place.mine, "Guard")
    make_plugin(place.theirs, "Guard")
    make_plugin(place.theirs, "More")
    found = place.found(ProjectCode.ASK)
    assert loading(found) == ["plugin:home/Guard"]
    assert [plugin.skipped for plugin in found.plugins] == ["", *["it is not trusted; 'crystal trust' asks"] * 2]
    assert found.notes == ()
    note = untrusted_note(found.untrusted)
    assert note is not None
    assert note.code is NoteCode.PROJECT_UNTRUSTED
    assert "plugins/Guard, plugins/More. 'crystal trust' shows" in note.text


@pytest.mark.parametrize(
    "manifest", [b"", b"{", b'{"module": "acme.py", "enabled": false}', b'{"assembly": "x"}', b'{"module": "gone.py"}']
)
def test_an_untrusted_folder_that_loads_nothing_does_not_hide_a_home_plugin_either(
    place: Place, manifest: bytes
) -> None:
    make_plugin(place.mine, "Guard")
    make_plugin(place.theirs, "Guard", manifest)
    found = place.found(ProjectCode.ASK)
    assert loading(found) == ["plugin:home/Guard"]
    assert found.notes == ()
    trust(place)
    found = place.found(ProjectCode.ASK)
    assert loading(found) == []
    assert found.plugins[0].skipped == HIDDEN


def test_a_trusted_plugin_counts_until_anything_of_it_changes(place: Place) -> None:
    make_plugin(place.mine, "Acme")
    folder = make_plugin(place.theirs, "Acme")
    make_plugin(place.theirs, "Beta")
    trust(place)
    found = place.found(ProjectCode.ASK)
    assert loading(found) == ["plugin:project/Acme", "plugin:project/Beta"]
    assert untrusted_note(found.untrusted) is None
    (folder / "helper.py").write_text("x = 1\n")
    found = place.found(ProjectCode.ASK)
    assert loading(found) == ["plugin:home/Acme", "plugin:project/Beta"]
    note = untrusted_note(found.untrusted)
    assert note is not None
    assert "plugins/Acme (changed). 'crystal trust'" in note.text
    assert [plugin.skipped for plugin in found.plugins if plugin.skipped] == [
        "it changed since it was trusted; 'crystal trust' asks"
    ]


def test_the_same_folder_in_another_workspace_is_not_trusted(place: Place, tmp_path: Path) -> None:
    make_plugin(place.theirs, "Acme")
    trust(place)
    other = tmp_path.resolve() / "other"
    make_plugin(other / ".crystal" / "plugins", "Acme")
    assert loading(find_disk_plugins(place.home, other, ProjectCode.ASK)) == []


def test_one_process_may_trust_everything_and_remembers_nothing(place: Place) -> None:
    make_plugin(place.mine, "Acme")
    make_plugin(place.theirs, "Acme")
    assert loading(place.found(ProjectCode.THIS_PROCESS)) == ["plugin:project/Acme"]
    assert not place.home.trust_file.exists()
    assert loading(place.found(ProjectCode.ASK)) == ["plugin:home/Acme"]


def test_never_means_never_without_a_word(place: Place) -> None:
    make_plugin(place.mine, "Acme")
    make_plugin(place.theirs, "Acme")
    (place.theirs / "loose.json").write_text("{}")
    trust(place)
    found = place.found(ProjectCode.NEVER)
    assert loading(found) == ["plugin:home/Acme"]
    assert [plugin.skipped for plugin in found.plugins] == ["", NEVER_TRUSTED]
    assert (found.notes, found.untrusted) == ((), ())


def test_the_loaded_bytes_are_the_trusted_ones(place: Place) -> None:
    folder = make_plugin(place.theirs, "Acme")
    trust(place)
    found = place.found(ProjectCode.ASK)
    (folder / "acme.py").write_text("stolen = True\n")
    (folder / "plugin.json").write_text('{"module": "other.py"}')
    [plugin] = plan_loading(found).loadable
    assert plugin.manifest.module == "acme.py"
    assert plugin.snapshot.files["acme.py"] == b"name = 'Acme'\n"
    assert plugin.snapshot.digest == remembered_entries(place.home, str(place.workspace))["plugins/Acme"]


def test_a_manifest_that_comes_after_trust_does_not_count(place: Place) -> None:
    folder = make_plugin(place.theirs, "Acme")
    (folder / "plugin.json").unlink()
    trust(place)

    def read(path: Path) -> FolderSnapshot:
        snapshot = read_folder(path)
        (folder / "plugin.json").write_text('{"module": "acme.py"}')
        return snapshot

    found = find_disk_plugins(place.home, place.workspace, ProjectCode.ASK, read)
    assert loading(found) == []
    assert "there is no such file" in found.plugins[0].skipped


def test_a_folder_with_a_link_that_leaves_it_can_never_be_trusted(place: Place) -> None:
    make_plugin(place.mine, "Acme")
    folder = make_plugin(place.theirs, "Acme")
    trust(place)
    (place.workspace / "x.py").write_text("")
    (folder / "x.py").symlink_to("../../../x.py")
    [(entry, plugin)] = project_entries(place.home, place.workspace)
    assert (entry.state, entry.digest) == (EntryState.REFUSED, "")
    assert plugin.skipped
    found = place.found(ProjectCode.ASK)
    assert loading(found) == ["plugin:home/Acme"]
    assert [note.code for note in found.notes] == [NoteCode.EXTENSION_FOLDER]


def test_a_home_folder_with_a_link_that_leaves_it_is_skipped_with_a_note(place: Place) -> None:
    folder = make_plugin(place.mine, "Acme")
    make_plugin(place.mine, "Beta")
    (place.workspace / "x.py").write_text("")
    (folder / "x.py").symlink_to(place.workspace / "x.py")
    plan = plan_loading(place.found())
    assert [plugin.full_name for plugin in plan.loadable] == ["plugin:home/Beta"]
    assert [plugin.effective for plugin in plan.found.plugins] == [False, True]
    [note] = plan.found.notes
    assert (note.code, note.source) == (NoteCode.EXTENSION_FOLDER, "plugin:home/Acme")


def test_a_folder_nobody_trusted_is_not_read(place: Place) -> None:
    folder = make_plugin(place.theirs, "Acme")
    os.mkfifo(folder / "pipe.py")
    (folder / "plugin.json").unlink()
    os.mkfifo(folder / "plugin.json")
    found = place.found(ProjectCode.ASK)
    assert [entry.state for entry in found.untrusted] == [EntryState.NEW]
    assert found.plugins[0].manifest is None


def test_a_broken_trust_file_is_an_error_once_a_workspace_brings_something(place: Place) -> None:
    place.home.write_private(place.home.trust_file, b"{")
    make_plugin(place.theirs, "Acme")
    with pytest.raises(HomeFileError, match=r"trust\.json, line 1"):
        place.found(ProjectCode.ASK)
    assert place.home.trust_file.read_bytes() == b"{"


def test_the_entries_of_a_workspace_say_how_they_stand(place: Place) -> None:
    for name in ("Acme", "Beta"):
        make_plugin(place.theirs, name)
    trust(place)
    make_plugin(place.theirs, "Cece")
    (place.theirs / "Beta" / "acme.py").write_text("")
    (place.theirs / "Dede").symlink_to("/")
    assert [(entry.name, entry.state) for entry, _ in project_entries(place.home, place.workspace)] == [
        ("plugins/Acme", EntryState.TRUSTED),
        ("plugins/Beta", EntryState.CHANGED),
        ("plugins/Cece", EntryState.NEW),
        ("plugins/Dede", EntryState.REFUSED),
    ]


def test_the_note_about_untrusted_code_stays_short() -> None:
    entries = [ProjectEntry(name=f"plugins/p{number}", state=EntryState.NEW) for number in range(1000)]
    note = untrusted_note(entries)
    assert note is not None
    assert "plugins/p9 and 990 more." in note.text
    assert len(note.text) < 400


def test_the_rows_of_the_snapshot_tell_of_every_folder(place: Place) -> None:
    make_plugin(place.mine, "Acme")
    make_plugin(place.mine, "Beta")
    make_plugin(place.mine, "Cece", {"module": "a.py", "enabled": False})
    make_plugin(place.theirs, "Dede")
    rows = plugin_facts(
        place.found(ProjectCode.ASK).plugins, {"plugin:home/Acme": "The Acme"}, {"plugin:home/Beta": "it raised"}
    )
    assert [(row.directory, row.display_name, row.enabled, row.effective, row.loaded, row.skipped) for row in rows] == [
        ("Acme", "The Acme", True, True, True, ""),
        ("Beta", "", True, True, False, "it raised"),
        ("Cece", "", False, False, False, "its manifest says enabled: false"),
        ("Dede", "", None, False, False, "it is not trusted; 'crystal trust' asks"),
    ]
    assert rows[3] == ExtensionFacts(
        directory="Dede",
        source=ExtensionSource.PROJECT,
        display_name="",
        enabled=None,
        effective=False,
        loaded=False,
        skipped="it is not trusted; 'crystal trust' asks",
    )


def test_switching_a_trusted_plugin_keeps_it_trusted_and_touches_no_other_entry(place: Place) -> None:
    make_plugin(place.theirs, "Acme")
    make_plugin(place.theirs, "Beta")
    trust(place)
    before = load_trust(place.home)[str(place.workspace)]
    plugin = place.found(ProjectCode.ASK).plugins[0]
    switched = switch_plugin(place.home, place.workspace, plugin, enabled=False)
    assert (switched.changed, switched.trusted) == (True, True)
    after = load_trust(place.home)[str(place.workspace)]
    assert after["plugins/Beta"] == before["plugins/Beta"]
    assert after["plugins/Acme"] == read_folder(plugin.path).digest != before["plugins/Acme"]
    assert place.found(ProjectCode.ASK).untrusted == ()


@pytest.mark.parametrize("trusted_before", [True, False])
def test_switching_makes_nothing_trusted(place: Place, trusted_before: bool) -> None:
    folder = make_plugin(place.theirs, "Acme")
    if trusted_before:
        trust(place)
        (folder / "acme.py").write_text("changed = True\n")
    remembered = load_trust(place.home)
    [plugin] = place.found(ProjectCode.ASK).plugins
    switched = switch_plugin(place.home, place.workspace, plugin, enabled=False)
    assert (switched.changed, switched.trusted) == (True, False)
    assert load_trust(place.home) == remembered
    assert json.loads((folder / "plugin.json").read_text()) == {"enabled": False, "module": "acme.py"}


def test_what_changes_while_a_plugin_is_switched_does_not_become_trusted(place: Place) -> None:
    folder = make_plugin(place.theirs, "Acme")
    trust(place)

    def read(path: Path) -> FolderSnapshot:
        snapshot = read_folder(path)
        (folder / "acme.py").write_text("stolen = True\n")
        return snapshot

    [plugin] = place.found(ProjectCode.ASK).plugins
    switched = switch_plugin(place.home, place.workspace, plugin, False, read)
    assert (switched.changed, switched.trusted) == (True, False), "and the operator is told so"
    found = place.found(ProjectCode.ASK)
    assert [(entry.name, entry.state) for entry in found.untrusted] == [("plugins/Acme", EntryState.CHANGED)]


def test_a_manifest_that_changes_while_a_plugin_is_switched_is_left_and_not_trusted(place: Place) -> None:
    folder = make_plugin(place.theirs, "Acme")
    trust(place)
    remembered = load_trust(place.home)

    def read(path: Path) -> FolderSnapshot:
        (folder / "plugin.json").write_text('{"module": "other.py"}')
        return read_folder(path)

    [plugin] = place.found(ProjectCode.ASK).plugins
    with pytest.raises(ManifestRefused, match="it changed while it was being written"):
        switch_plugin(place.home, place.workspace, plugin, False, read)
    assert load_trust(place.home) == remembered
