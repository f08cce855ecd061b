"""Every example of the README and the docs is executed: Python as code, JSON against its schema, commands by name."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from crystal.cli.app import COMMANDS
from crystal.cli.run import command as run_command
from crystal.testing.crystaler import Crystaler

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
GENERATED = ROOT / "docs" / "hooks.md"


def blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall(page.read_text("utf-8")) if kind == language]


def pages_with(language: str) -> list[Path]:
    return [page for page in PAGES if page != GENERATED and blocks(page, language)]


@pytest.mark.parametrize("page", pages_with("python"), ids=lambda page: page.name)
def test_python_examples_run(page: Path, crystaler: Crystaler) -> None:
    """A block that is a plugin is saved under its ``name``; a block with tests is run with the fixture."""
    folder = crystaler.workspace
    ran = 0
    for source in blocks(page, "python"):
        scope: dict[str, Any] = {"__file__": str(folder / "test_example.py")}
        exec(compile(source, page.name, "exec"), scope)
        if "name" in scope:
            (folder / f"{scope['name']}.py").write_text(source, "utf-8")
        for name, function in list(scope.items()):
            if name.startswith("test_"):
                function(crystaler)
                ran += 1
    assert ran > 0, "no example of the page is a test"


def test_the_script_example_plays(crystaler: Crystaler) -> None:
    [script] = [text for text in blocks(ROOT / "docs" / "cli.md", "json") if '"rounds"' in text]
    crystaler.makefile("a.py", "def main():\n    pass\n")
    path = crystaler.makefile("script.json", script)
    assert crystaler.run("look", "--script", str(path)).exit_code == 0


def test_the_provider_example_is_accepted(crystaler: Crystaler) -> None:
    [providers] = blocks(ROOT / "README.md", "json")
    crystaler.makeproviders(**json.loads(providers))
    shown = crystaler.command("doctor")
    assert shown.exit_code == 0, shown.stdout
    assert "configuration" in shown.stdout


def test_every_command_that_the_pages_name_exists() -> None:
    named = {match for page in PAGES for match in re.findall(r"`crystal ([a-z]+)", page.read_text("utf-8"))}
    assert named <= set(COMMANDS), named - set(COMMANDS)


def test_every_option_that_the_pages_name_exists() -> None:
    known = {option for parameter in run_command.params for option in parameter.opts}
    page = (ROOT / "docs" / "cli.md").read_text("utf-8")
    section = page[page.index("## `crystal run`") : page.index("## Home")]
    named = set(re.findall(r"`(--[a-z-]+)", section)) - {"--help", "--format"}
    assert named <= known, named - known


def test_the_readme_has_exactly_two_commands_under_quick_start() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    section = text[text.index("## Quick start") : text.index("## Use a model")]
    commands = [line for line in section.splitlines() if line.startswith("    ")]
    assert len(commands) == 2
    assert "crystal demo" in commands[0]
    assert "pytest" in commands[1]


def test_the_hook_reference_is_current() -> None:
    import importlib.util

    spec = importlib.util.spec_from_file_location("hook_reference", ROOT / "docs" / "hook_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert GENERATED.read_text("utf-8") == module.reference(), "run: python docs/hook_reference.py"
