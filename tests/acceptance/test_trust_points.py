"""What trust in a workspace's plugin covers, point by point, as a run shows it: the plugin counts, or it does not."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from crystal.host.sources.disk_plugins import project_entries
from crystal.store.home import Home
from crystal.store.trust import revoke_entries, trust_entries
from crystal.testing.crystaler import Crystaler
from tests.host.loading.folders import write_folder

SOURCE = """\
from crystal import Risk, hookimpl, tool

name = "Acme"


@tool(risk=Risk.READ)
def who():
    "Say whose tool this is."
    return "the workspace's"


@hookimpl
def contribute_tools():
    return [who]
"""

Change = Callable[[Path], object]


@pytest.fixture
def folder(crystaler: Crystaler) -> Path:
    """A project plugin that brings the tool ``who``, files of every kind, and the operator's trust."""
    made = write_folder(
        crystaler.workspace / ".crystal" / "plugins" / "Acme",
        {
            "plugin.json": '{"module": "acme.py"}',
            "acme.py": SOURCE,
            "helper.py": "",
            "data.bin": b"\0\1",
            ".hidden": "x",
            "pages/deep/page.txt": "a page\n",
            "lib/acme_lib/__init__.py": "",
            "run.sh": "#!/bin/sh\n",
        },
    )
    (made / "page").symlink_to("pages/deep/page.txt")
    crystaler.home.mkdir(mode=0o700)
    trust(crystaler)
    return made


def trust(crystaler: Crystaler, workspace: Path | None = None) -> None:
    """Trust what a workspace brings, as it is now."""
    place, home = (workspace or crystaler.workspace).resolve(), Home(root=crystaler.home)
    trust_entries(home, str(place), {entry.name: entry.digest for entry, _ in project_entries(home, place)})


def counts(crystaler: Crystaler, *options: str) -> bool:
    """Whether the tool of the plugin can be called, and, if not, the operator is told."""
    crystaler.script([{"toolCalls": [{"name": "who", "arguments": {}}]}, {"text": "Done."}])
    result = crystaler.run("go", *options)
    loaded = not result.calls[0].failed
    assert loaded or result.note_codes, "left out without a word"
    return loaded


def write(name: str, content: str | bytes) -> Change:
    return lambda folder: write_folder(folder, {name: content})


def link(name: str, target: str) -> Change:
    def change(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)

    return change


def flip_a_bit(folder: Path) -> None:
    (folder / "data.bin").write_bytes(b"\0\0")


COVERED: dict[str, Change] = {
    "one byte of code": write("acme.py", SOURCE.replace("the workspace's", "the workspace'S")),
    "a byte more": write("acme.py", f"{SOURCE}\n"),
    "a helper": write("helper.py", "x = 1\n"),
    "the manifest's spacing": write("plugin.json", '{"module":  "acme.py"}'),
    "one bit of data": flip_a_bit,
    "a hidden file": write(".hidden", "y"),
    "a library": write("lib/acme_lib/__init__.py", "x = 1\n"),
    "a file more": write("more.txt", ""),
    "a file more, deep": write("pages/deep/more.txt", ""),
    "a hidden file more": write(".more", ""),
    "bytecode without a source": write("helper.pyc", b"\0"),
    "compiled code more": write("helper.so", b"\0"),
    "a file less": lambda folder: (folder / "data.bin").unlink(),
    "an empty file less": lambda folder: (folder / "helper.py").unlink(),
    "a folder less": lambda folder: shutil.rmtree(folder / "pages"),
    "another name": lambda folder: (folder / "data.bin").rename(folder / "data2.bin"),
    "another place": lambda folder: (folder / "helper.py").rename(folder / "lib" / "helper.py"),
    "two names changed round": lambda folder: [
        (folder / "helper.py").rename(folder / "x"),
        (folder / ".hidden").rename(folder / "helper.py"),
        (folder / "x").rename(folder / ".hidden"),
    ],
    "a name's case": lambda folder: (folder / "data.bin").rename(folder / "DATA.bin"),
    "a program now": lambda folder: (folder / "run.sh").chmod(0o755),
    "another target": link("page", "run.sh"),
    "a link more": link("other", "run.sh"),
    "a link in place of a file": link("helper.py", "lib/acme_lib/__init__.py"),
    "a file in place of a link": lambda folder: [
        (folder / "page").unlink(),
        (folder / "page").write_bytes((folder / "pages/deep/page.txt").read_bytes()),
    ],
    "a link less": lambda folder: (folder / "page").unlink(),
    "a link that leaves": link("helper.py", "../../../a.txt"),
    "a folder in place of a file": lambda folder: [(folder / "run.sh").unlink(), write("run.sh/x", "")(folder)],
    "a pipe": lambda folder: os.mkfifo(folder / "pipe"),
}

NOT_COVERED: dict[str, Change] = {
    "nothing": lambda folder: None,
    "bytecode in its own folder": write("__pycache__/acme.cpython-311.pyc", b"\0"),
    "bytecode deep below": write("lib/acme_lib/__pycache__/x.pyc", b"\0"),
    "times": lambda folder: [os.utime(path, (1, 1)) for path in folder.rglob("*") if not path.is_symlink()],
    "who else may read": lambda folder: (folder / "acme.py").chmod(0o600),
    "who may enter": lambda folder: (folder / "pages").chmod(0o700),
    "an empty folder": lambda folder: (folder / "empty").mkdir(),
    "another plugin": write("../Beta/plugin.json", '{"module": "beta.py"}'),
    "a file beside the plugins": write("../loose.py", ""),
    "the workspace's own files": write("../../../src/acme.py", "x = 1\n"),
    "data of plugins": write("../../data/Acme/x.json", "{}"),
    "prompts": write("../../prompts/work.md", "x"),
    "the same content again": lambda folder: [
        shutil.copytree(folder, folder.with_name("copy"), symlinks=True),
        shutil.rmtree(folder),
        folder.with_name("copy").rename(folder),
    ],
}


@pytest.mark.parametrize("change", COVERED.values(), ids=COVERED)
def test_whatever_of_the_folder_changes_takes_the_trust_away(
    crystaler: Crystaler, folder: Path, change: Change
) -> None:
    assert counts(crystaler)
    change(folder)
    assert not counts(crystaler)


@pytest.mark.parametrize("change", NOT_COVERED.values(), ids=NOT_COVERED)
def test_what_cannot_decide_what_runs_does_not(crystaler: Crystaler, folder: Path, change: Change) -> None:
    change(folder)
    assert counts(crystaler)


def test_what_is_as_it_was_again_counts_again(crystaler: Crystaler, folder: Path) -> None:
    write("acme.py", "stolen = True\n")(folder)
    assert not counts(crystaler)
    write("acme.py", SOURCE)(folder)
    assert counts(crystaler)


def test_another_path_inherits_nothing(crystaler: Crystaler, folder: Path) -> None:
    moved = crystaler.workspace.with_name("moved")
    shutil.copytree(crystaler.workspace, moved, symlinks=True)
    assert not counts(crystaler, "-w", str(moved))
    crystaler.workspace.rename(crystaler.workspace.with_name("gone"))
    moved.rename(crystaler.workspace)
    assert counts(crystaler), "the path and the content are what was trusted"


@pytest.mark.parametrize("inner", ["src", ".crystal"])
def test_a_folder_of_a_trusted_workspace_inherits_nothing(crystaler: Crystaler, folder: Path, inner: str) -> None:
    below = crystaler.workspace / inner / "part"
    shutil.copytree(folder, below / ".crystal" / "plugins" / "Acme", symlinks=True)
    assert not counts(crystaler, "-w", str(below))


def test_another_way_to_the_same_path_is_the_same_workspace(crystaler: Crystaler, folder: Path) -> None:
    other = crystaler.workspace.with_name("other")
    other.symlink_to(crystaler.workspace)
    assert counts(crystaler, "-w", str(other))


def test_the_same_content_under_another_name_is_not_trusted(crystaler: Crystaler, folder: Path) -> None:
    folder.rename(folder.with_name("Other"))
    assert not counts(crystaler)


def test_trust_of_one_plugin_is_no_trust_of_a_second(crystaler: Crystaler, folder: Path) -> None:
    source = SOURCE.replace("who", "second").replace("Acme", "Second")
    write_folder(folder.with_name("Second"), {"plugin.json": '{"module": "second.py"}', "second.py": source})
    crystaler.script([{"toolCalls": [{"name": name, "arguments": {}}]} for name in ("who", "second")] + [{"text": "x"}])
    result = crystaler.run()
    assert [call.failed for call in result.calls] == [False, True]
    assert [note.text for note in result.notes if "plugins/Second" in note.text]
    assert not [note.text for note in result.notes if "plugins/Acme" in note.text]


def test_trust_taken_back_is_gone(crystaler: Crystaler, folder: Path) -> None:
    revoke_entries(Home(root=crystaler.home), str(crystaler.workspace.resolve()))
    assert not counts(crystaler)


def test_a_plugin_of_the_home_needs_none_however_it_changes(crystaler: Crystaler, folder: Path) -> None:
    home = crystaler.home / "plugins" / "Acme"
    home.parent.mkdir()
    folder.rename(home)
    (crystaler.home / "trust.json").unlink()
    assert counts(crystaler)
    write("acme.py", f"{SOURCE}\nx = 1\n")(home)
    assert counts(crystaler)


@pytest.mark.parametrize("change", [COVERED["one byte of code"], COVERED["a link that leaves"]])
def test_a_changed_plugin_hides_no_plugin_of_the_home(crystaler: Crystaler, folder: Path, change: Change) -> None:
    home = crystaler.home / "plugins" / "Acme"
    shutil.copytree(folder, home, symlinks=True)
    write("acme.py", SOURCE.replace("the workspace's", "the home's"))(home)
    crystaler.script([{"toolCalls": [{"name": "who", "arguments": {}}]}, {"text": "Done."}])
    assert crystaler.run().calls[0].output == "the workspace's"
    change(folder)
    assert crystaler.run().calls[0].output == "the home's"
