"""``crystal plugins list|show|enable|disable``: manifests only, every folder, hostile names and all."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from crystal.cli.app import run_command_line
from crystal.testing.crystaler import Crystaler
from tests.host.plugin_folders import make_plugin

FORMATS = ("table", "text", "json")


class Commands:
    """Runs commands in this process with a home and a workspace of their own."""

    def __init__(self, crystaler: Crystaler, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = crystaler.home
        self.workspace = crystaler.workspace
        self.mine = crystaler.home / "plugins"
        self.theirs = crystaler.workspace / ".crystal" / "plugins"
        self._capsys = capsys
        self.errors = ""

    def run(self, *arguments: str, code: int = 0) -> str:
        """Run one command; what it printed cannot steer a terminal, and an error is one line."""
        self._capsys.readouterr()
        place = ["--home", str(self.home), "-w", str(self.workspace)]
        assert run_command_line([*arguments, *place]) == code
        shown = self._capsys.readouterr()
        self.errors = shown.err
        for unsafe in ("\x1b", "\x07", "\u202e", "\x9b", "\r"):
            assert unsafe not in shown.out + shown.err
        if code:
            assert shown.out == ""
            assert shown.err.count("\n") == 1
        return shown.out

    def rows(self, *options: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads(self.run("plugins", "list", "--format", "json", *options))
        return rows

    def trust(self) -> None:
        self.run("trust", "--yes")


@pytest.fixture
def commands(crystaler: Crystaler, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(crystaler, capsys)


def test_the_list_has_a_row_for_every_folder_and_says_why_one_is_not_loaded(commands: Commands) -> None:
    make_plugin(commands.mine, "Acme")
    make_plugin(commands.mine, "Beta", b'{"module": "a.py",}')
    make_plugin(commands.mine, "Cece", {"module": "a.py", "enabled": False})
    make_plugin(commands.theirs, "Acme")
    make_plugin(commands.theirs, "Dede", {"module": "a.py", "enabled": False})
    assert [
        (row["plugin"], row["source"], row["enabled"], row["effective"], row["reason"]) for row in commands.rows()
    ] == [
        ("Acme", "home", True, True, ""),
        ("Acme", "project", True, False, "it is not trusted; 'crystal trust' asks"),
        (
            "Beta",
            "home",
            None,
            False,
            "plugin.json, line 1, column 18: a comma must not stand before a closing bracket",
        ),
        ("Cece", "home", False, False, "its manifest says enabled: false"),
        ("Dede", "project", False, False, "it is not trusted; 'crystal trust' asks"),
    ]
    commands.trust()
    assert [(row["source"], row["effective"]) for row in commands.rows() if row["plugin"] == "Acme"] == [
        ("home", False),
        ("project", True),
    ]
    assert [row["plugin"] for row in commands.rows("--source", "project")] == ["Acme", "Dede"]
    assert {row["source"] for row in commands.rows("--source", "home")} == {"home"}


def test_text_and_table_have_the_fields_of_the_json(commands: Commands) -> None:
    make_plugin(commands.mine, "Acme")
    [row] = commands.rows()
    text = commands.run("plugins", "list", "--format", "text").splitlines()
    assert text[0].split() == list(row)
    assert text[1].split() == ["Acme", "home", "yes", "yes"]
    table = commands.run("plugins", "list")
    for field in row:
        assert field in table
    assert "Acme" in table


def test_an_empty_place_is_an_empty_list_and_nothing_is_made(commands: Commands) -> None:
    assert commands.rows() == []
    assert commands.run("plugins", "list", "--format", "text").split() == [
        "plugin",
        "source",
        "enabled",
        "effective",
        "reason",
    ]
    assert not commands.home.exists()
    assert os.listdir(commands.workspace) == []


def test_what_lies_there_without_being_a_plugin_is_said_on_stderr(commands: Commands) -> None:
    (commands.mine / "9 lives").mkdir(parents=True)
    (commands.mine / "acme.json").write_text("{}")
    assert commands.rows() == []
    assert "'9 lives'" in commands.errors
    assert "acme.json (as acme/plugin.json)" in commands.errors


def test_switches_of_the_configuration_are_reasons(commands: Commands, crystaler: Crystaler) -> None:
    make_plugin(commands.mine, "Acme")
    make_plugin(commands.theirs, "Beta")
    commands.trust()
    crystaler.makeconfig(plugins=False, projectTrust="never")
    assert [(row["effective"], row["reason"]) for row in commands.rows()] == [
        (False, "plugins is false in config.json"),
        (False, "projectTrust is never in config.json, so the project's own code does not count"),
    ]
    assert "Nothing is loaded all the same" in commands.run("plugins", "enable", "Acme")
    assert json.loads((commands.home / "config.json").read_text()) == {"plugins": False, "projectTrust": "never"}


def test_show_tells_everything_of_one_and_the_project_wins(commands: Commands) -> None:
    make_plugin(commands.mine, "Acme", {"module": "home.py"}, home_py="")
    folder = make_plugin(commands.theirs, "Acme", {"module": "acme", "type": "A", "shared": ["numpy", "x"]})
    shown = json.loads(commands.run("plugins", "show", "Acme", "--format", "json"))
    assert (shown["source"], shown["path"]) == ("project", str(folder.resolve()))
    shown = json.loads(commands.run("plugins", "show", "Acme", "--source", "home", "--format", "json"))
    assert (shown["module"], shown["effective"]) == ("home.py", True)
    for form in ("text", "table"):
        lines = commands.run("plugins", "show", "Acme", "--source", "home", "--format", form).splitlines()
        assert ["module", "home.py"] in [line.split() for line in lines]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "Acne"], "did you mean Acme?"),
        (["enable", "nothing"], "'crystal plugins list' lists what there is"),
        (["disable", "../Acme"], "no plugin folder"),
        (["disable", "x\x1b[2J"], "no plugin folder"),
        (["disable", "Acme", "--source", "project"], "among the project plugins"),
    ],
)
def test_a_name_that_is_not_there_is_an_error_and_nothing_is_made(
    commands: Commands, arguments: list[str], words: str
) -> None:
    make_plugin(commands.mine, "Acme")
    commands.run("plugins", *arguments, code=1)
    assert words in commands.errors
    assert os.listdir(commands.mine) == ["Acme"]
    assert not commands.theirs.exists()


def test_disable_and_enable_change_the_manifest_and_nothing_else(commands: Commands) -> None:
    text = '{\n    "x": 1.0,\n    "module": "acme.py",\n    "\\u0079": [ ]\n}\n'
    folder = make_plugin(commands.mine, "Acme", text.encode(), acme_py="")
    said = commands.run("plugins", "disable", "Acme")
    assert said == f"home/Acme is disabled: {folder / 'plugin.json'}\n"
    assert (folder / "plugin.json").read_text() == text.replace('{\n    "x"', '{\n    "enabled": false,\n    "x"')
    assert commands.rows()[0]["enabled"] is False
    assert "disabled already" in commands.run("plugins", "disable", "Acme")
    commands.run("plugins", "enable", "Acme")
    assert (folder / "plugin.json").read_text() == text.replace('{\n    "x"', '{\n    "enabled": true,\n    "x"')
    assert sorted(os.listdir(folder)) == ["acme.py", "plugin.json"]
    assert sorted(os.listdir(commands.home)) == ["plugins"]


def test_without_a_source_the_project_folder_is_switched(commands: Commands) -> None:
    make_plugin(commands.mine, "Acme")
    make_plugin(commands.theirs, "Acme")
    said = commands.run("plugins", "disable", "Acme")
    assert said.startswith("project/Acme is disabled")
    assert "is not trusted and does not count; 'crystal trust' asks" in said
    assert [row["enabled"] for row in commands.rows()] == [True, False]
    commands.run("plugins", "disable", "Acme", "--source", "home")
    assert [row["enabled"] for row in commands.rows()] == [False, False]


def test_switching_a_trusted_plugin_leaves_it_trusted(commands: Commands) -> None:
    make_plugin(commands.theirs, "Acme")
    commands.trust()
    assert "not trusted" not in commands.run("plugins", "disable", "Acme")
    commands.run("plugins", "enable", "Acme")
    assert commands.rows()[0]["effective"] is True


@pytest.mark.parametrize(
    "manifest", [b"{", b'{"module": "a.py",}', b'{"assembly": "a.dll"}', b'{"enabled": false}', b"", b"\xff"]
)
def test_a_broken_manifest_is_left_as_it_is(commands: Commands, manifest: bytes) -> None:
    folder = make_plugin(commands.mine, "Acme", manifest)
    for verb in ("enable", "disable"):
        commands.run("plugins", verb, "Acme", code=1)
        assert "plugin.json" in commands.errors
        assert (folder / "plugin.json").read_bytes() == manifest


def test_a_manifest_behind_a_link_that_leaves_is_never_written(commands: Commands) -> None:
    outside = commands.workspace / "outside.json"
    outside.write_text('{"module": "a.py"}')
    commands.mine.mkdir(parents=True)
    (commands.mine / "Acme").mkdir()
    (commands.mine / "Acme" / "plugin.json").symlink_to(outside)
    make_plugin(commands.workspace, "folder")
    (commands.mine / "Beta").symlink_to(commands.workspace / "folder")
    before = (commands.workspace / "folder" / "plugin.json").read_bytes()
    for name in ("Acme", "Beta"):
        commands.run("plugins", "disable", name, code=1)
    assert outside.read_text() == '{"module": "a.py"}'
    assert (commands.workspace / "folder" / "plugin.json").read_bytes() == before


@pytest.mark.parametrize("form", FORMATS)
def test_a_hostile_workspace_cannot_steer_the_terminal(commands: Commands, form: str) -> None:
    commands.theirs.mkdir(parents=True)
    for name in ("\x1b[2Jx", "a\nb", "\x9b31m", "\udcff", "\u202eevil"):
        (commands.theirs / name).mkdir()
        (commands.theirs / f"{name}.json").write_text("{}")
    make_plugin(commands.mine, "Acme", {"module": "\x1b]0;owned\x07.py"})
    make_plugin(commands.mine, "Beta", {"module": "a.py", "type": "\u202e\x1b[31m"})
    command = {"name": "say", "description": "\x1b[2J\u202e", "schema": {}, "command": "echo \x07"}
    make_plugin(commands.mine, "Cece", command)
    os.mkfifo(make_plugin(commands.mine, "Dede") / "pipe.py")
    commands.run("plugins", "list", "--format", form)
    for name in ("Acme", "Beta", "Cece", "Dede"):
        commands.run("plugins", "show", name, "--format", form)


def test_no_code_of_a_plugin_or_package_runs(
    commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "ran"
    source = f"import pathlib\npathlib.Path({str(mark)!r}).write_text('x')\n"
    for tree in (commands.mine, commands.theirs):
        make_plugin(tree, "Acme", {"module": "acme.py"}, acme_py=source)
    site = tmp_path / "site"
    (site / "acme_pkg-1.0.dist-info").mkdir(parents=True)
    (site / "acme_pkg-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-pkg\nVersion: 1.0\n")
    (site / "acme_pkg-1.0.dist-info" / "entry_points.txt").write_text("[crystal]\nacme = acme_pkg\n")
    (site / "acme_pkg.py").write_text(source)
    monkeypatch.syspath_prepend(str(site))
    commands.trust()
    rows = commands.rows()
    assert [(row["plugin"], row["source"]) for row in rows] == [
        ("Acme", "home"),
        ("Acme", "project"),
        ("acme", "package"),
    ]
    shown = json.loads(commands.run("plugins", "show", "acme", "--format", "json"))
    assert (shown["distribution"], shown["entry point"]) == ("acme-pkg 1.0", "acme_pkg")
    commands.run("plugins", "disable", "acme", code=1)
    assert "disabledPlugins in config.json" in commands.errors
    commands.home.joinpath("config.json").write_text('{"disabledPlugins": ["acme"]}')
    assert commands.rows()[-1]["reason"] == "disabledPlugins in config.json names it"
    assert not mark.exists()
    assert "acme_pkg" not in sys.modules
