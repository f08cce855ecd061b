"""What start-up imports: exact lists, since times differ from machine to machine."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from crystal.testing.crystaler import Crystaler

MAIN = "from crystal.cli.main import main; main()"
HEAVY = {"httpx", "pydantic", "rich", "jsonschema", "sqlite3", "textual", "mcp", "pathspec", "asyncio"}


def imported(crystaler: Crystaler, *arguments: str) -> set[str]:
    """Run a command under ``-X importtime`` and return the names of the packages it imported."""
    finished = subprocess.run(
        [sys.executable, "-X", "importtime", "-P", "-c", MAIN, *arguments],
        env={**crystaler.environ, "CRYSTAL_HOME": str(crystaler.home)},
        cwd=crystaler.workspace,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert finished.returncode == 0, finished.stderr.decode()[-500:]
    names = re.findall(r"^import time:.*\| +([\w.]+)$", finished.stderr.decode(), re.MULTILINE)
    assert "crystal" in names
    return {name.partition(".")[0] for name in names}


def test_version_imports_next_to_nothing(crystaler: Crystaler) -> None:
    names = imported(crystaler, "--version")
    assert not names & (HEAVY | {"click", "pluggy", "typing", "json", "logging"})


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"]])
def test_help_imports_no_heavy_library(crystaler: Crystaler, arguments: list[str]) -> None:
    assert not imported(crystaler, *arguments) & {"httpx", "pydantic", "rich", "jsonschema", "textual", "mcp"}


def test_a_scripted_run_imports_no_heavy_library(crystaler: Crystaler) -> None:
    crystaler.makefile("a.txt", "hello\n")
    script = crystaler.script([{"toolCalls": [{"name": "read", "arguments": {"path": "a.txt"}}]}, {"text": "Done."}])
    names = imported(crystaler, "run", "read it", "--script", str(script))
    assert not names & {"httpx", "pydantic", "rich", "jsonschema", "textual", "mcp", "pathspec"}


def test_an_unchanged_configuration_needs_no_pydantic(crystaler: Crystaler) -> None:
    crystaler.makeconfig(approval="edit")
    crystaler.makeproviders(here={"protocol": "scripted", "models": {"m": {"contextWindow": 1000}}})
    script = crystaler.script([{"text": "Done."}])
    assert "pydantic" in imported(crystaler, "run", "do it", "--script", str(script))
    assert "pydantic" not in imported(crystaler, "run", "do it", "--script", str(script))
