"""``crystal tools list|show|enable|disable``: every set with its state, and switches that keep trust as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crystal.testing.crystaler import Crystaler
from tests.host.tool_set_folders import PYTHON, make_tool_set, several, tool


def rows(crystaler: Crystaler, *options: str) -> list[dict[str, Any]]:
    listed = crystaler.command("tools", "list", "--format", "json", *options)
    assert listed.exit_code == 0, listed.stderr
    found: list[dict[str, Any]] = json.loads(listed.stdout)
    return found


@pytest.fixture(autouse=True)
def home(crystaler: Crystaler) -> Path:
    crystaler.home.mkdir(mode=0o700, exist_ok=True)
    return crystaler.home / "tools"


def theirs(crystaler: Crystaler) -> Path:
    return crystaler.workspace / ".crystal" / "tools"


def test_the_list_says_why_a_set_is_not_loaded(crystaler: Crystaler, home: Path) -> None:
    make_tool_set(home, "Acme")
    make_tool_set(home, "Bad", b'{"runner": 5}')
    make_tool_set(home, "Code", PYTHON, acme_py="")
    make_tool_set(home, "Off", several(tool("off"), enabled=False))
    make_tool_set(theirs(crystaler), "Theirs")
    found = {row["tool set"]: (row["source"], row["enabled"], row["reason"]) for row in rows(crystaler)}
    assert found["Acme"] == ("home", True, "")
    assert "field runner" in found["Bad"][2]
    assert found["Code"] == ("home", True, "")
    assert found["Off"] == ("home", False, "its manifest says enabled: false")
    assert found["Theirs"][0] == "project"
    assert "crystal trust" in found["Theirs"][2]
    assert [row["tool set"] for row in rows(crystaler, "--source", "project")] == ["Theirs"]


def test_show_names_the_programs(crystaler: Crystaler, home: Path) -> None:
    make_tool_set(home, "Acme", several(tool("ship", command=["--now", "a b"]), tool("stop"), timeoutSeconds=5))
    shown = crystaler.command("tools", "show", "Acme", "--format", "text").stdout
    for text in ("exec", "ship, stop", "acme --now 'a b'", "5", str(home / "Acme")):
        assert text in shown
    told = crystaler.command("tools", "show", "Acm")
    assert told.exit_code == 1
    assert "there is no tool set folder 'Acm' among the tool sets; did you mean Acme?" in told.stderr


def test_a_switch_changes_enabled_and_keeps_a_trusted_set_trusted(crystaler: Crystaler) -> None:
    folder = make_tool_set(theirs(crystaler), "Theirs", several(tool("theirs"), unknown=[1, 2]))
    assert crystaler.command("trust", "--yes").exit_code == 0
    off = crystaler.command("tools", "disable", "Theirs")
    assert off.stdout.startswith("project/Theirs is disabled: ")
    assert json.loads((folder / "tools.json").read_text())["unknown"] == [1, 2]
    assert [(row["enabled"], row["effective"]) for row in rows(crystaler)] == [(False, False)]
    assert "already" in crystaler.command("tools", "disable", "Theirs").stdout
    crystaler.command("tools", "enable", "Theirs")
    assert [(row["enabled"], row["effective"]) for row in rows(crystaler)] == [(True, True)]


def test_a_broken_manifest_is_left_as_it_is(crystaler: Crystaler, home: Path) -> None:
    folder = make_tool_set(home, "Bad", b'{"runner": "exec",}')
    refused = crystaler.command("tools", "disable", "Bad")
    assert refused.exit_code == 1
    assert "tools.json" in refused.stderr
    assert (folder / "tools.json").read_bytes() == b'{"runner": "exec",}'


def test_enabling_says_when_the_whole_feature_is_off(crystaler: Crystaler, home: Path) -> None:
    make_tool_set(home, "Acme")
    crystaler.makeconfig(externalTools=False)
    assert (
        "Nothing is loaded all the same: externalTools is false" in crystaler.command("tools", "enable", "Acme").stdout
    )
    assert [row["reason"] for row in rows(crystaler)] == ["externalTools is false in config.json"]


@pytest.mark.parametrize("runner", ["exec", "python"])
@pytest.mark.parametrize("name", ["acme", "Acme.Tools", "read", "json", "class"])
def test_a_new_set_works_where_it_is_made(crystaler: Crystaler, home: Path, runner: str, name: str) -> None:
    home.mkdir()
    made = crystaler.command("tools", "new", str(home / name), "--runner", runner)
    assert made.exit_code == 0, made.stderr
    greet = made.stdout.strip().rpartition(" ")[2].rstrip(".")
    crystaler.script([{"toolCalls": [{"name": greet, "arguments": {"who": "you"}}]}, {"text": "Done."}])
    result = crystaler.run("go", "--allow", greet)
    assert result.notes == ()
    assert result.calls[0].output.startswith("Hello, you.")
    again = crystaler.command("tools", "new", str(home / name), "--runner", runner)
    assert (again.exit_code, "is there already" in again.stderr) == (1, True)


def test_a_folder_whose_name_no_set_may_have_is_not_made(crystaler: Crystaler) -> None:
    refused = crystaler.command("tools", "new", "a b")
    assert refused.exit_code == 1
    assert "'a b' cannot name a tool set's folder" in refused.stderr
    assert not (crystaler.workspace / "a b").exists()
