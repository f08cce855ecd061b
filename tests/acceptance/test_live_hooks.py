"""No dead hooks: every specification is called by a run, or stands in the list of those whose stage is not built."""

from __future__ import annotations

import pytest

from crystal.hookspecs import hookimpl
from crystal.hookspecs.pending import PENDING
from crystal.host.manager import read_specifications
from crystal.testing.crystaler import Crystaler
from crystal.types.commands import StatusField

SPECIFICATIONS = read_specifications()
RESULTS = {"contribute_status_fields": [StatusField(name="heard", description="what was called")]}
"""What a stage depends on: without an admitted field no sink is handed out."""


def make_listener(called: set[str]) -> object:
    """Return a plugin that implements every hook, takes every argument, and only notes that it was called."""
    methods: dict[str, object] = {"name": "listener"}
    for name, specification in SPECIFICATIONS.items():
        arguments = ", ".join(("self", *specification.arguments))
        scope: dict[str, object] = {"called": called, "name": name, "result": RESULTS.get(name)}
        exec(f"def {name}({arguments}):\n    called.add('{name}')\n    return result", scope)
        methods[name] = hookimpl(scope[name])  # type: ignore[arg-type]
    return type("Listener", (), methods)


def test_every_hook_is_called_by_a_run_or_stands_in_the_list(crystaler: Crystaler) -> None:
    called: set[str] = set()
    crystaler.makefile("a.txt", "hello\n")
    crystaler.makeplugin("listener", make_listener(called))
    crystaler.script([{"toolCalls": [{"name": "read", "arguments": {"path": "a.txt"}}]}, {"text": "Done."}])
    result = crystaler.run()
    assert result.exit_code == 0, result.stderr
    assert set(SPECIFICATIONS) - called == set(PENDING), "the list of pending hooks is not the truth"


def test_a_resumed_session_calls_the_same_hooks(crystaler: Crystaler) -> None:
    crystaler.makefile("a.txt", "hello\n")
    rounds = [{"toolCalls": [{"name": "read", "arguments": {"path": "a.txt"}}]}, {"text": "Done."}]
    crystaler.script(rounds)
    session_id = crystaler.run().session_id
    called: set[str] = set()
    crystaler.makeplugin("listener", make_listener(called))
    assert crystaler.run("again", "-r", session_id).exit_code == 0
    assert set(SPECIFICATIONS) - called == set(PENDING)


def test_crystal_hooks_lists_every_hook_with_its_implementations_in_order(crystaler: Crystaler) -> None:
    listed = crystaler.command("hooks", "--format", "text")
    assert listed.exit_code == 0
    lines = listed.stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(SPECIFICATIONS)
    [tools] = [line for line in lines if line.startswith("contribute_tools")]
    assert tools.index("builtin:files") < tools.index("builtin:search") < tools.index("builtin:shell")


@pytest.mark.parametrize("name", sorted(SPECIFICATIONS))
def test_crystal_hooks_name_shows_one_in_full(crystaler: Crystaler, name: str) -> None:
    from click.testing import CliRunner

    from crystal.cli.hooks import command

    shown = CliRunner().invoke(command, [name]).output
    specification = SPECIFICATIONS[name]
    assert shown.startswith(f"{name}(")
    assert specification.declaration.kind.value in shown
    assert specification.declaration.contract in shown
    assert (specification.function.__doc__ or "").strip().splitlines()[0] in shown


def test_a_misspelt_hook_name_gets_the_nearest_right_one(crystaler: Crystaler) -> None:
    shown = crystaler.command("hooks", "on_tool_cal")
    assert shown.exit_code == 1
    assert "on_tool_call" in shown.stderr
