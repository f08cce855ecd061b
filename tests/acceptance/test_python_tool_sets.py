"""Sets of Python code: which names of a module are tools, what the manifest lays over them, and how a set fails."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from crystal.host.loading.names import PREFIX
from crystal.testing.crystaler import Crystaler
from crystal.testing.result import RunResult
from tests.host.tool_set_folders import make_tool_set

MODULE = '''\
import asyncio
from crystal import Risk, ToolDefinition, ToolOutput, tool
from helper import WORD, borrowed


@tool(risk=Risk.READ)
def greet(who: str, context) -> str:
    """Greet somebody."""
    (context.project_data / "greeted").touch()
    return f"{WORD}, {who}."


@tool
async def wait(path: str) -> str:
    """Wait for long."""
    await asyncio.sleep(3600)


@tool
def _private() -> str:
    """Not a tool."""


class Echo:
    definition = ToolDefinition(name="echo", description="Echo.", schema={"type": "object", "properties": {}})

    async def invoke(self, call, context):
        return ToolOutput(text="echoed")


class Needy:
    def __init__(self, something):
        pass
'''
HELPER = 'from crystal import tool\nWORD = "Hello"\n\n\n@tool\ndef borrowed() -> str:\n    """Elsewhere."""\n'


def make(crystaler: Crystaler, source: str = MODULE, tree: Path | None = None, **fields: Any) -> Path:
    manifest = {"runner": "python", "module": "words.py", **fields}
    crystaler.home.mkdir(mode=0o700, exist_ok=True)
    return make_tool_set((tree or crystaler.home) / "tools", "Words", manifest, words_py=source, helper_py=HELPER)


def run(crystaler: Crystaler, *options: str, name: str = "greet", **arguments: Any) -> RunResult:
    crystaler.script([{"toolCalls": [{"name": name, "arguments": arguments}]}, {"text": "Done."}])
    return crystaler.run("go", *options)


def offered(result: RunResult) -> set[str]:
    return {found.name for found in result.requests[0].tools} & {
        "greet",
        "wait",
        "_private",
        "echo",
        "borrowed",
    }


def test_the_public_tools_of_the_module_are_offered_and_run(crystaler: Crystaler) -> None:
    make(crystaler)
    before = {name for name in sys.modules if name.startswith(PREFIX)}
    result = run(crystaler, "--allow", "greet", who="you")
    assert offered(result) == {"greet", "wait", "echo"}
    assert [call.output for call in result.calls] == ["Hello, you."]
    assert (crystaler.workspace / ".crystal" / "data" / "tools" / "Words" / "greeted").is_file()
    assert result.notes == ()
    assert run(crystaler, "--allow", "echo", name="echo").calls[0].output == "echoed"
    assert {name for name in sys.modules if name.startswith(PREFIX)} == before


def test_code_of_a_set_is_never_less_than_a_write(crystaler: Crystaler) -> None:
    make(crystaler)
    result = run(crystaler, who="you")
    assert result.exit_code == 4
    assert result.calls[0].approval is not None
    assert result.calls[0].approval["class"] == "Write + Workspace"


def test_types_choose_and_the_map_lays_over(crystaler: Crystaler) -> None:
    make(
        crystaler,
        types=["greet", "Echo"],
        tools={"greet": {"catalogs": ["plan"], "approval": "always"}, "echo": {"approval": "always"}},
    )
    assert offered(run(crystaler, "--plan", who="you")) == {"greet", "echo"}
    result = run(crystaler, name="echo")
    assert (offered(result), result.exit_code) == ({"echo"}, 0)


def test_paths_and_time_are_limited_by_the_manifest(crystaler: Crystaler) -> None:
    make(crystaler, timeoutSeconds=1, tools={"wait": {"pathArguments": ["path"]}})
    assert run(crystaler, "--allow", "wait", name="wait", path="/etc/hostname").exit_code == 4
    call = run(crystaler, "--allow", "wait", name="wait", path="a").calls[0]
    assert (call.failed, call.output) == (True, "wait: timed out after 1 s; the call was ended")


@pytest.mark.parametrize(
    ("source", "fields", "told"),
    [
        ("x = (", {}, "words.py has a syntax error in line 1 of words.py"),
        ("import requests_of_nobody", {}, "No module named 'requests_of_nobody'"),
        ("x = 1", {}, "words.py defines no tool; write @tool above a function"),
        (MODULE, {"types": ["greet", "Gret"]}, "its field types names Gret, which is no public tool of words.py"),
        (MODULE, {"tools": {"gret": {}}}, "its field tools names gret, which is no tool of words.py"),
        (MODULE + "other = greet\n", {}, "words.py defines two tools named greet"),
        (f"{MODULE}\nEcho.__init__ = lambda self: 1 / 0\n", {}, "raised ZeroDivisionError in line"),
        ("raise SystemExit(3)", {}, "words.py ends the process when it is imported"),
    ],
)
def test_a_set_that_cannot_be_loaded_is_one_note(
    crystaler: Crystaler, source: str, fields: dict[str, Any], told: str
) -> None:
    make(crystaler, source, **fields)
    before = {name for name in sys.modules if name.startswith(PREFIX)}
    result = run(crystaler, name="read", path="a")
    assert offered(result) == set()
    [note] = result.notes
    assert note.text.startswith("Tool set 'Words' is not loaded: ")
    assert told in note.text
    assert {name for name in sys.modules if name.startswith(PREFIX)} == before


def test_code_of_a_repository_runs_only_as_it_was_trusted(crystaler: Crystaler) -> None:
    canary = crystaler.home.parent / "ran"
    source = f"{MODULE}\nimport pathlib\npathlib.Path({str(canary)!r}).touch()\n"
    folder = make(crystaler, source, tree=crystaler.workspace / ".crystal")
    assert offered(run(crystaler, who="you")) == set()
    shown = json.loads(crystaler.command("trust", "--list", "--format", "json").stdout)
    assert [row["entry"] for row in shown] == ["tools/Words"]
    assert not canary.exists()
    assert crystaler.command("trust", "--yes").exit_code == 0
    assert not canary.exists()
    assert "greet" in offered(run(crystaler, who="you"))
    assert canary.exists()
    canary.unlink()
    (folder / "helper.py").write_text(HELPER + "\n")
    assert offered(run(crystaler, who="you")) == set()
    assert not canary.exists()
