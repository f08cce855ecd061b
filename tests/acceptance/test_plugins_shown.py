"""What shows the host shows it as a run would load it; switches of one run hold for that run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crystal.testing.crystaler import Crystaler
from tests.host.plugin_folders import make_plugin

SOURCE = """
from crystal import hookimpl

name = "{name}"
print("printed while it loads")

@hookimpl
def on_user_message(message):
    return message.text
"""


def put(folder: Path, name: str, source: str = SOURCE) -> None:
    make_plugin(folder, name, {"module": "code.py"})
    (folder / name / "code.py").write_text(source.replace("{name}", name))


def test_crystal_hooks_lists_plugins_in_call_order(crystaler: Crystaler) -> None:
    put(crystaler.home / "plugins", "Beta")
    put(crystaler.home / "plugins", "Acme")
    put(crystaler.workspace / ".crystal" / "plugins", "Theirs")
    listed = crystaler.command("hooks", "on_user_message", "--format", "json")
    assert listed.exit_code == 0
    assert [found["plugin"] for found in json.loads(listed.stdout)["implementations"]] == [
        "plugin:home/Acme",
        "plugin:home/Beta",
    ]
    assert "plugins/Theirs" in listed.stderr
    assert crystaler.command("trust", "--yes").exit_code == 0
    rows = json.loads(crystaler.command("hooks", "--format", "json").stdout)
    [row] = [row for row in rows if row["hook"] == "on_user_message"]
    assert row["implementations"] == "plugin:home/Acme, plugin:home/Beta, plugin:project/Theirs"


def test_the_doctor_names_a_plugin_that_is_broken_and_not_one_that_is_untrusted(crystaler: Crystaler) -> None:
    put(crystaler.home / "plugins", "Acme")
    put(crystaler.workspace / ".crystal" / "plugins", "Theirs")
    healthy = crystaler.command("doctor")
    assert healthy.exit_code == 0, healthy.stdout
    assert "plugins/Theirs" in healthy.stdout
    put(crystaler.home / "plugins", "Beta", "x = (\n")
    broken = crystaler.command("doctor")
    assert broken.exit_code == 1
    [line] = [line for line in broken.stdout.splitlines() if line.startswith("(broken)")]
    assert "plugin:home/Beta" in line
    assert "line 1" in line


@pytest.mark.parametrize("file", ["trust.json", "config.json"])
def test_the_doctor_goes_on_past_a_broken_file(crystaler: Crystaler, file: str) -> None:
    put(crystaler.workspace / ".crystal" / "plugins", "Theirs")
    crystaler.home.mkdir(exist_ok=True)
    (crystaler.home / file).write_text('{"a": ')
    shown = crystaler.command("doctor")
    assert shown.exit_code == 1
    assert f"{file}, line 1" in shown.stdout
    assert "(ok) python" in shown.stdout


def test_plugins_can_be_left_out_of_one_run_or_looked_for_in_one(crystaler: Crystaler) -> None:
    put(crystaler.home / "plugins", "Acme")
    crystaler.script([{"text": "Done."}])

    def loaded(*options: str) -> list[str]:
        result = crystaler.run("do it", "--format", "json", *options, in_process=False)
        assert result.exit_code == 0
        return [plugin["name"] for plugin in result.lines[0]["plugins"] if plugin["name"].startswith("plugin:")]

    assert loaded() == ["plugin:home/Acme"]
    assert loaded("--plugins", "off") == []
    (crystaler.home / "config.json").write_text('{"plugins": false}')
    assert loaded() == []
    assert loaded("--plugins", "on") == ["plugin:home/Acme"]
    assert json.loads((crystaler.home / "config.json").read_text()) == {"plugins": False}


def test_one_run_can_be_told_to_let_the_workspaces_code_count(crystaler: Crystaler) -> None:
    put(crystaler.workspace / ".crystal" / "plugins", "Theirs")
    crystaler.script([{"text": "Done."}])
    for options, expected in ((["--trust-project"], ["plugin:project/Theirs"]), ([], [])):
        result = crystaler.run("do it", "--format", "json", *options, in_process=False)
        names = [plugin["name"] for plugin in result.lines[0]["plugins"]]
        assert [name for name in names if name.startswith("plugin:")] == expected
    assert not (crystaler.home / "trust.json").exists()


def test_the_list_gives_the_reason_for_each_plugin_that_is_left_out(crystaler: Crystaler) -> None:
    put(crystaler.home / "plugins", "Acme")
    put(crystaler.home / "plugins", "Beta", SOURCE.replace("{name}", "Acme"))
    put(crystaler.home / "plugins", "Gamma")
    crystaler.script([{"text": "Done."}])
    result = crystaler.run("go", "--no-plugin", "Gamma", "--format", "json", in_process=False)
    assert result.exit_code == 0, result.stderr
    assert [plugin["name"] for plugin in result.lines[0]["plugins"] if plugin["name"].startswith("plugin:")] == [
        "plugin:home/Acme"
    ]
    assert "plugin:home/Beta' is not loaded: 'plugin:home/Acme' has the name 'Acme' already" in result.stderr


@pytest.mark.parametrize("state", ["disabled", "broken", "untrusted", "plugins off"])
def test_a_plugin_that_would_not_load_anyway_may_be_left_out_by_name(crystaler: Crystaler, state: str) -> None:
    folder = (crystaler.workspace / ".crystal" if state == "untrusted" else crystaler.home) / "plugins"
    put(folder, "Acme")
    match state:
        case "disabled":
            (folder / "Acme" / "plugin.json").write_text('{"module": "code.py", "enabled": false}')
        case "broken":
            (folder / "Acme" / "plugin.json").write_text("{")
    options = ["--plugins", "off"] if state == "plugins off" else []
    crystaler.script([{"text": "Done."}])
    result = crystaler.run("go", "--no-plugin", "Acme", *options, in_process=False)
    assert result.exit_code == 0, result.stderr


TOOL = """
from crystal import Risk, hookimpl, tool

name = "{name}"


@tool(risk=Risk.READ)
def keep(context) -> str:
    "Keep something."
    context.project_data.mkdir(parents=True, exist_ok=True)
    (context.project_data / "kept").touch()
    return "kept"


@hookimpl
def contribute_tools():
    return [keep]
"""


@pytest.mark.parametrize("place", [".crystal", ".crystal/data", ".crystal/data/plugins", ".crystal/data/plugins/Acme"])
def test_no_tool_of_a_plugin_runs_when_a_link_stands_where_its_data_would_go(crystaler: Crystaler, place: str) -> None:
    put(crystaler.home / "plugins", "Acme", TOOL)
    elsewhere = crystaler.home.parent / "elsewhere"
    elsewhere.mkdir()
    crystaler.script([{"toolCalls": [{"name": "keep", "arguments": {}}]}, {"text": "Done."}])
    link = crystaler.workspace / place
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(elsewhere)
    refused = crystaler.run("go")
    assert [call.failed for call in refused.calls] == [True]
    assert (
        f"{link}, on the way to its data directories, is a link; put a folder in its place" in refused.calls[0].output
    )
    assert list(elsewhere.iterdir()) == []
    link.unlink()
    assert [call.output for call in crystaler.run("go").calls] == ["kept"]
    assert (crystaler.workspace / ".crystal/data/plugins/Acme/kept").is_file()
