"""What the command line says about itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

from crystal._version import VERSION
from crystal.cli.app import COMMANDS, run_command_line

RUN_OPTIONS = (
    "-p, --provider",
    "-m, --model",
    "-w, --workspace",
    "--home",
    "--approval",
    "--allow",
    "--ask",
    "--plan",
    "--work",
    "--disable-tool",
    "--approval-model",
    "--approval-provider",
    "--approval-model-id",
    "--plugins",
    "--external-tools",
    "--no-plugin",
    "--trust-project",
    "--model-calls",
    "--tool-calls",
    "--token-budget",
    "--duration",
    "--bash-timeout",
    "--image",
    "--show-thinking",
    "--format",
    "--quiet",
    "--verbose",
    "--trace-hooks",
    "--script",
    "-r, --resume",
    "-c, --continue",
)


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_lists_every_command_with_its_line(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line([flag]) == 0
    shown = capsys.readouterr().out
    for name, (_, summary) in COMMANDS.items():
        assert name in shown
        assert summary.split(".")[0][:40] in shown


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_help_of_its_own(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line([name, "--help"]) == 0
    assert f"crystal {name}" in capsys.readouterr().out


def test_the_help_of_run_lists_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["run", "--help"]) == 0
    shown = capsys.readouterr().out
    assert [option for option in RUN_OPTIONS if option not in shown] == []
    for choice in ("default|edit|review|audit|full", "default|json|final"):
        assert choice in shown


@pytest.mark.parametrize("arguments", [["--version"], ["version"]])
def test_the_version_is_printed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(arguments) == 0
    assert capsys.readouterr().out.startswith(f"crystal {VERSION}")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rnu", "x"], "rnu"),
        (["run", "--aproval", "full", "x"], "--aproval"),
        (["run", "--approval", "yolo", "x"], "yolo"),
        (["run", "--duration", "soon", "x"], "soon"),
        (["run", "--model-calls", "-3", "x"], "-3"),
        (["run", "one", "two"], "two"),
        (["schema", "nothing"], "nothing"),
        ([], "crystal run TASK"),
    ],
)
def test_a_usage_error_is_one_line_on_stderr_and_exit_1(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(arguments) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert words in shown.err
    assert shown.err.startswith("crystal: ")
    assert shown.err.count("\n") == 1


def test_help_imports_no_command_and_no_engine() -> None:
    code = (
        "import sys; from crystal.cli.app import run_command_line; run_command_line(['--help']);"
        "print([name for name in sys.modules if name.startswith(('crystal.cli.run', 'crystal.engine'))])"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert finished.stdout.endswith("[]\n")
