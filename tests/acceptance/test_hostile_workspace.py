"""Opening a stranger's repository runs none of its code and changes none of what guards the operator."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from crystal.host.sources.disk_plugins import project_entries
from crystal.store.home import Home
from crystal.store.trust import trust_entries
from tests.acceptance.hostile_workspace import HostileWorkspace
from tests.host.plugin_folders import make_plugin

SECONDS = 60
GUARD = """\
from crystal import Risk, hookimpl, tool
name = "Guard"
@tool(risk=Risk.READ)
def who():
    "Say whose tool this is."
    return "the home's"
@hookimpl
def contribute_tools():
    return [who]
"""
KEPT = ("config.json", "permissions.json", "trust.json", "providers.json", "credentials.json", "plugins")
CALLS = (
    ("read", {"path": "a.txt"}),
    ("read", {"path": ".crystal/plugins/Acme/acme.py"}),
    ("list", {"path": "."}),
    ("tree", {}),
    ("glob", {"pattern": "**/*.py"}),
    ("grep", {"pattern": "needle"}),
    ("search", {"query": "needle"}),
    ("edit", {"path": "a.txt", "old_string": "hello", "new_string": "hallo"}),
    ("write", {"path": "new.txt", "content": "new\n"}),
)
"""What a model does in a repository without meaning harm."""


class Place:
    """The repository, a home of the operator, and the console script; commands run in the repository.

    :param folder: holds all of it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = folder / "workspace"
        self.hostile = HostileWorkspace(self.workspace, folder / "canaries")
        self.home = folder / "home"
        self.script = folder / "script.json"
        self.program = folder / "bin" / "crystal"
        self.hostile.write()
        self._write_home()
        self.program.parent.mkdir()
        self.program.write_text(
            f"#!{sys.executable}\nimport sys\nfrom crystal.cli.main import main\n"
            "if __name__ == '__main__':\n    sys.exit(main())\n"
        )
        self.program.chmod(0o755)

    def _write_home(self) -> None:
        make_plugin(self.home / "plugins", "Guard", {"module": "guard.py"}, guard_py=GUARD)
        self.home.chmod(0o700)
        grants = {"grants": [{"workspace": "/elsewhere", "origin": "builtin:files", "tool": "write"}]}
        trust = {"workspaces": {"/elsewhere": {"entries": {"plugins/Acme": "0" * 64}}}}
        for name, value in (("config.json", {}), ("permissions.json", grants), ("trust.json", trust)):
            (self.home / name).write_text(json.dumps(value))
            (self.home / name).chmod(0o600)

    def kept(self) -> dict[str, bytes]:
        """Return everything of the home that guards the operator, byte for byte."""
        found = {}
        for name in KEPT:
            top = self.home / name
            for path in [top, *top.rglob("*")] if top.is_dir() else [top]:
                if path.is_file():
                    found[str(path.relative_to(self.home))] = path.read_bytes()
        return found

    def brought(self) -> dict[str, bytes]:
        """Return the repository's own extensions, byte for byte."""
        top = self.workspace / ".crystal"
        return {str(path): path.read_bytes() for path in sorted(top.rglob("*")) if path.is_file()}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the repository, with its programs on the search path and its files named by variables."""
        users = self.folder / "user"
        users.mkdir(exist_ok=True)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CRYSTAL_")}
        environment |= {
            "CRYSTAL_HOME": str(self.home),
            "HOME": str(users),
            "PATH": f"{self.workspace}/bin:{self.workspace}::.:./bin:{os.environ['PATH']}",
            "RIPGREP_CONFIG_PATH": str(self.workspace / ".ripgreprc"),
        }
        return subprocess.run(
            [str(self.program), *arguments],
            cwd=self.workspace,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def trust(self) -> set[str]:
        """Trust everything of the repository as it is now and return the names."""
        home = Home(root=self.home)
        entries = {entry.name: entry.digest for entry, _ in project_entries(home, self.workspace) if entry.digest}
        trust_entries(home, str(self.workspace), entries)
        return set(entries)

    def play(self, *options: str, calls: Sequence[tuple[str, object]] = CALLS) -> list[dict[str, object]]:
        """Have a scripted model make calls and return the run's lines."""
        rounds: list[object] = [{"toolCalls": [{"name": name, "arguments": given}]} for name, given in calls]
        self.script.write_text(json.dumps({"rounds": [*rounds, {"text": "Done."}]}))
        finished = self.run("run", "look around", "--script", str(self.script), "--format", "json", *options)
        assert finished.stdout, finished.stderr
        return [json.loads(line) for line in finished.stdout.splitlines()]


def real_folder(place: Place) -> None:
    place.hostile.write_crystal(place.workspace / ".crystal")


def link_to_elsewhere(place: Place) -> None:
    place.hostile.write_crystal(place.folder / "elsewhere")
    (place.workspace / ".crystal").symlink_to(place.folder / "elsewhere")


def link_inside(place: Place) -> None:
    place.hostile.write_crystal(place.workspace / "docs" / "dot")
    (place.workspace / ".crystal").symlink_to("docs/dot")


def linked_plugins_folder(place: Place) -> None:
    place.hostile.write_crystal(place.folder / "elsewhere")
    (place.workspace / ".crystal").mkdir()
    (place.workspace / ".crystal" / "plugins").symlink_to(place.folder / "elsewhere" / "plugins")


def linked_plugins(place: Place) -> None:
    place.hostile.write_crystal(place.folder / "elsewhere")
    tree = place.workspace / ".crystal" / "plugins"
    tree.mkdir(parents=True)
    (tree / "Acme").symlink_to(place.folder / "elsewhere" / "plugins" / "Acme")
    (tree / "Guard").symlink_to(place.home / "plugins" / "Guard")
    place.hostile.write_crystal(place.workspace / "docs")
    (tree / "Library").symlink_to(place.workspace / "docs" / "plugins" / "Library")
    (place.workspace / ".crystal" / "config.json").symlink_to(place.home / "config.json")


Shape = Callable[[Place], None]
SHAPES: tuple[Shape, ...] = (real_folder, link_to_elsewhere, link_inside, linked_plugins_folder, linked_plugins)


@pytest.fixture(params=SHAPES, ids=lambda shape: shape.__name__)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """The repository with its ``.crystal`` in every shape."""
    made = Place(tmp_path.resolve())
    request.param(made)
    return made


@pytest.fixture
def plain(tmp_path: Path) -> Place:
    """The repository with a plain ``.crystal``."""
    made = Place(tmp_path.resolve())
    real_folder(made)
    return made


READING = (
    ("--version",),
    ("--help",),
    ("version",),
    ("doctor",),
    ("hooks",),
    ("hooks", "on_prompt"),
    ("plugins", "list", "--format", "json"),
    ("plugins", "show", "Acme"),
    ("plugins", "show", "Guard"),
    ("trust",),
    ("trust", "--list"),
    ("permissions", "list"),
    ("sessions", "list"),
    ("schema", "plugin"),
    ("schema", "script"),
)


def test_no_command_that_shows_something_runs_or_changes_anything(place: Place) -> None:
    kept, brought = place.kept(), place.brought()
    for arguments in READING:
        finished = place.run(*arguments)
        assert finished.returncode in (0, 1), finished.stderr
        assert "Traceback" not in finished.stderr
        assert (arguments, place.hostile.ran) == (arguments, [])
        assert place.kept() == kept, arguments
        assert place.brought() == brought, arguments


@pytest.mark.parametrize("options", [(), ("--approval", "edit"), ("--plan",), ("--trace-hooks",)])
def test_a_run_and_what_shows_it_run_none_of_the_code(plain: Place, options: tuple[str, ...]) -> None:
    kept, brought = plain.kept(), plain.brought()
    lines = plain.play(*options)
    calls = {str(line["name"]): line for line in lines if line["type"] == "tool_use"}
    worked = {name for name, line in calls.items() if line["status"] != "failure"}
    assert worked == {
        "read",
        "list",
        "tree",
        "glob",
        "grep",
        "search",
        *(("edit", "write") if "edit" in options else ()),
    }
    assert "a.txt" in str(calls["grep"]["output"])
    assert "b.py" in str(calls["search"]["output"])
    session, call = str(lines[0]["sessionID"]), str(calls["grep"]["callId"])
    for arguments in (("sessions", "list"), ("sessions", "show", session), ("why", call), ("why", f"{session}/{call}")):
        shown = plain.run(*arguments)
        assert shown.returncode == 0, shown.stderr
    assert plain.hostile.ran == []
    assert plain.kept() == kept
    assert plain.brought() == brought


def test_whatever_shape_it_has_a_run_loads_nothing_of_it_and_the_guards_stand(place: Place) -> None:
    kept, brought = place.kept(), place.brought()
    lines = place.play(calls=(*CALLS, ("who", {}), ("own", {})))
    calls = {str(line["name"]): line for line in lines if line["type"] == "tool_use"}
    assert place.hostile.ran == []
    assert place.kept() == kept
    assert place.brought() == brought
    # The repository's permissions.json and config.json would let these pass.
    assert calls["write"]["status"] == calls["edit"]["status"] == "failure"
    assert not (place.workspace / "new.txt").exists()
    # The home's plugin of the same name stands, and the repository's tools are not there.
    if (place.workspace / ".crystal").is_symlink():
        assert "is a link; put a folder in its place" in str(calls["who"]["output"])
    else:
        assert calls["who"]["output"] == "the home's"
    assert calls["own"]["status"] == "failure"


def test_what_a_repository_brings_is_named_in_one_note(plain: Place) -> None:
    notes = [line for line in plain.play(calls=()) if line["type"] == "note"]
    [note] = [line for line in notes if line["code"] == "project-untrusted"]
    assert "does not count: plugins/Acme, plugins/Guard, plugins/Library" in str(note["text"])


def test_a_bash_call_is_run_by_no_program_of_the_repository(plain: Place) -> None:
    kept = plain.kept()
    lines = plain.play("--approval", "full", calls=[("bash", {"command": "printf hi"})])
    [call] = [line for line in lines if line["type"] == "tool_use"]
    assert call["status"] != "failure"
    assert plain.hostile.ran == []
    assert plain.kept() == kept


@pytest.mark.parametrize("verb", ["disable", "enable"])
def test_switching_a_plugin_writes_its_manifest_alone(place: Place, verb: str) -> None:
    kept, brought = place.kept(), place.brought()
    switched = place.run("plugins", verb, "Acme")
    assert place.hostile.ran == []
    assert place.kept() == kept
    now = place.brought()
    changed = [path for path in now if brought.get(path) != now[path]]
    assert changed in ([], [str(place.workspace / ".crystal" / "plugins" / "Acme" / "plugin.json")])
    assert bool(changed) <= (switched.returncode == 0)


def test_a_new_project_plugin_is_not_written_through_a_link_that_leaves(place: Place) -> None:
    elsewhere = place.folder / "elsewhere"
    before = sorted(map(str, elsewhere.rglob("*")))
    place.run("plugins", "new", "Fresh", "--source", "project")
    assert sorted(map(str, elsewhere.rglob("*"))) == before
    assert place.hostile.ran == []


def test_bytecode_beside_trusted_code_and_modules_of_the_workspace_stay_unread(plain: Place) -> None:
    assert plain.trust() == {"plugins/Acme", "plugins/Guard", "plugins/Library"}
    plain.play()
    sources = {f"plugin-{name}{tail}" for name in ("acme", "guard", "library") for tail in ("", "-helper")}
    # The shared library is loaded once, from the first that brings it.
    assert set(plain.hostile.ran) == {*sources, "plugin-acme-library"}, "the sources that were digested and no others"


def test_a_workspace_of_another_path_and_a_copy_inherit_no_trust(plain: Place) -> None:
    plain.trust()
    moved = plain.folder / "moved"
    shutil.copytree(plain.workspace, moved, symlinks=True)
    finished = subprocess.run(
        [str(plain.program), "run", "x", "--script", str(write_script(plain)), "-w", str(moved)],
        env={**os.environ, "CRYSTAL_HOME": str(plain.home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert "not trusted" in finished.stderr
    assert plain.hostile.ran == []


def write_script(place: Place) -> Path:
    place.script.write_text(json.dumps({"rounds": [{"text": "Done."}]}))
    return place.script


# A canary that cannot sing proves nothing.


@pytest.mark.parametrize(
    ("code", "canary"),
    [
        ("import pluggy", "root-pluggy"),
        ("import click", "bytecode-.-click"),
        ("import crystal.cli.main", "root-crystal-__init__.py"),
        ("import b", "bytecode-.-b"),
        (
            "import sys; sys.path.insert(0, '.crystal/plugins/Acme'); import helper",
            "bytecode-.crystal-plugins-Acme-helper",
        ),
    ],
)
def test_the_modules_would_leave_their_canary_if_the_workspace_were_searched(
    plain: Place, code: str, canary: str
) -> None:
    subprocess.run([sys.executable, "-c", code], cwd=plain.workspace, capture_output=True, check=False)
    assert canary in plain.hostile.ran


@pytest.mark.parametrize(
    ("command", "canary"),
    [
        (["./rg", "x"], "program-rg"),
        (["rg", "needle", "a.txt"], "ripgrep-pre"),
        (["git", "status"], "git-fsmonitor"),
        (["git", "-p", "x"], "git-alias"),
    ],
)
def test_the_programs_would_leave_their_canary_if_they_were_started(
    plain: Place, command: list[str], canary: str
) -> None:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "RIPGREP_CONFIG_PATH": str(plain.workspace / ".ripgreprc"),
    }
    subprocess.run(command, cwd=plain.workspace, env=environment, capture_output=True, check=False)
    assert canary in plain.hostile.ran
