"""Tool sets in a session: found, offered, approved, run and ended like every other tool."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from crystal import hookimpl
from crystal.engine.answers import Approve
from crystal.testing.crystaler import Crystaler
from crystal.testing.result import RunResult
from crystal.types.environment import Environment
from tests.engine.runs import Operator
from tests.host.tool_set_folders import make_tool_set, several, tool
from tests.plugins_builtin.process_marks import marked

SHOW = (
    f"#!{sys.executable}\n"
    """\
import json, os, sys
print(json.dumps({
    "stdin": json.loads(sys.stdin.read() or "null"),
    "argv": sys.argv[1:],
    "folder": os.getcwd(),
    "own": {name: os.environ.get(name) for name in (
        "CRYSTAL_WORKSPACE", "CRYSTAL_SESSION", "CRYSTAL_APPROVAL", "CRYSTAL_DATA_GLOBAL", "CRYSTAL_DATA_PROJECT")},
}))
"""
)


def manifest(*tools: Any, **fields: Any) -> dict[str, Any]:
    return several(*(tools or (tool("show"),)), **{"command": ["./show.py"], **fields})


def make(tree: Path, name: str = "Acme", value: Any = None) -> Path:
    folder = make_tool_set(tree / "tools", name, manifest() if value is None else value)
    (folder / "show.py").write_text(SHOW)
    (folder / "show.py").chmod(0o755)
    return folder


def run(crystaler: Crystaler, *options: str, name: str = "show", **arguments: Any) -> RunResult:
    crystaler.script([{"toolCalls": [{"name": name, "arguments": arguments}]}, {"text": "Done."}])
    crystaler.home.mkdir(exist_ok=True)
    crystaler.home.chmod(0o700)
    return crystaler.run("go", *options)


def offered(result: RunResult) -> set[str]:
    return {found.name for found in result.requests[0].tools}


def test_a_program_of_a_set_is_a_tool(crystaler: Crystaler) -> None:
    folder = make(crystaler.home, value=manifest(tool("show", command=["more"], argv={"environment": "--env"})))
    result = run(crystaler, "--allow", "show", environment="-prod")
    assert result.exit_code == 0
    assert "show" in offered(result)
    said = json.loads(result.calls[0].output.rpartition("\n(exit")[0] or result.calls[0].output)
    assert said["stdin"] == {"environment": "-prod"}
    assert said["argv"] == ["more", "--env", "-prod"]
    assert said["folder"] == str(crystaler.workspace)
    assert said["own"] == {
        "CRYSTAL_WORKSPACE": str(crystaler.workspace),
        "CRYSTAL_SESSION": result.session_id,
        "CRYSTAL_APPROVAL": "default",
        "CRYSTAL_DATA_GLOBAL": str(crystaler.home / "data" / "tools" / folder.name),
        "CRYSTAL_DATA_PROJECT": str(crystaler.workspace / ".crystal" / "data" / "tools" / folder.name),
    }
    assert (crystaler.workspace / ".crystal" / "data" / "tools" / folder.name).is_dir()


def test_a_path_argument_is_fenced_and_arrives_absolute(crystaler: Crystaler) -> None:
    make(crystaler.home, value=manifest(tool("show", pathArguments=["path"])))
    inside = run(crystaler, "--allow", "show", path="a/../b.txt")
    assert f'"path": "{crystaler.workspace}/b.txt"' in inside.calls[0].output
    outside = run(crystaler, "--allow", "show", path="../elsewhere")
    assert (outside.exit_code, outside.calls[0].failed) == (4, True)


@pytest.mark.parametrize(
    ("tree", "follows", "passes"),
    [
        ("home", None, True),
        ("home", {"home": "host"}, False),
        ("project", None, False),
        ("project", {"project": "author"}, True),
    ],
)
def test_the_authors_always_counts_where_the_operator_follows_authors(
    crystaler: Crystaler, tree: str, follows: dict[str, str] | None, passes: bool
) -> None:
    root = crystaler.home if tree == "home" else crystaler.workspace / ".crystal"
    make(root, value=manifest(tool("show"), tool("ask", approval="inherit"), approval="always"))
    if follows is not None:
        crystaler.makeconfig(externalToolApproval=follows)
    options = ["--trust-project"] if tree == "project" else []
    assert run(crystaler, *options).exit_code == (0 if passes else 4)
    assert run(crystaler, *options, name="ask").exit_code == 4


def test_a_call_is_asked_about_and_a_path_outside_is_even_for_always(crystaler: Crystaler) -> None:
    make(crystaler.home, value=manifest(tool("show", pathArguments=["path"], approval="always")))
    assert run(crystaler, path="../elsewhere").exit_code == 4
    operator = Operator(Approve())
    crystaler.script([{"toolCalls": [{"name": "show", "arguments": {"path": "../elsewhere"}}]}, {"text": "Done."}])
    result = crystaler.run("go", operator=operator)
    assert [call.failed for call in result.calls] == [False]


def test_catalogs_say_in_which_mode_a_tool_is_offered(crystaler: Crystaler) -> None:
    make(crystaler.home, value=manifest(tool("both"), tool("look", catalogs=["plan"]), tool("do", catalogs=["work"])))
    assert offered(run(crystaler, "--plan", name="both")) & {"both", "look", "do"} == {"both", "look"}
    assert offered(run(crystaler, name="both")) & {"both", "look", "do"} == {"both", "do"}


@pytest.mark.parametrize("way", ["config", "option"])
def test_switched_off_no_manifest_is_looked_at(crystaler: Crystaler, way: str) -> None:
    make(crystaler.home)
    make_tool_set(crystaler.home / "tools", "Broken", b"{")
    if way == "config":
        crystaler.makeconfig(externalTools=False)
    result = run(crystaler, *(["--external-tools", "off"] if way == "option" else []))
    assert "show" not in offered(result)
    assert [note for note in result.notes if "Broken" in note.text] == []
    if way == "config":
        assert "show" in offered(run(crystaler, "--external-tools", "on"))


def test_a_broken_set_and_a_taken_name_cost_themselves_only(crystaler: Crystaler) -> None:
    make(crystaler.home)
    make(crystaler.home, "Beta", manifest(tool("read"), tool("show"), tool("other")))
    make_tool_set(crystaler.home / "tools", "Broken", b'{"runner": 5}')
    result = run(crystaler, "--allow", "other", name="other")
    assert result.exit_code == 0
    told = [note.text for note in result.notes]
    assert len(told) == 3
    assert any("Broken" in text and "runner" in text for text in told)
    assert any("'toolset:home/Beta' is omitted (number 1 of its list, named 'read')" in text for text in told)
    assert any("named 'show'" in text and "toolset:home/Acme has that tool" in text for text in told)


def test_a_repositorys_set_is_absent_until_it_is_trusted(crystaler: Crystaler) -> None:
    make(crystaler.home, value=manifest(tool("mine")))
    folder = make(crystaler.workspace / ".crystal", value=manifest(tool("theirs")))
    result = run(crystaler, name="mine")
    assert offered(result) & {"mine", "theirs"} == {"mine"}
    assert ["tools/Acme" in note.text for note in result.notes] == [True]
    shown = crystaler.command("trust", "--yes")
    assert "tools/Acme" in shown.stdout
    assert offered(run(crystaler, name="mine")) & {"mine", "theirs"} == {"theirs"}
    (folder / "show.py").write_text("raise SystemExit\n")
    assert offered(run(crystaler, name="mine")) & {"mine", "theirs"} == {"mine"}


def test_what_a_program_left_running_ends_with_the_session(crystaler: Crystaler, tmp_path: Path) -> None:
    mark = str(tmp_path)
    make(crystaler.home, value=manifest(command=["bash", "-c", "setsid sleep 60 >/dev/null 2>&1 & echo up", mark]))
    crystaler.environ["MARK"] = mark
    result = run(crystaler, "--allow", "show")
    assert "up" in result.calls[0].output
    assert marked(mark) == {}


def test_plugins_are_told_which_sets_and_tools_there_are(crystaler: Crystaler) -> None:
    make(crystaler.home)
    make_tool_set(crystaler.home / "tools", "Off", {**manifest(), "enabled": False})
    heard: list[Environment] = []

    class Watcher:
        name = "watcher"

        @hookimpl
        def attach(self, environment: Environment) -> None:
            heard.append(environment)

    crystaler.makeplugin("watcher", Watcher())
    run(crystaler)
    [told] = heard
    assert [(each.directory, each.enabled, each.loaded) for each in told.tool_sets] == [
        ("Acme", True, True),
        ("Off", False, False),
    ]
    assert [(each.name, each.tool_set) for each in told.external_tools] == [("show", "Acme")]
