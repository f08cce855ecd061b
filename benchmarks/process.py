"""Runs commands: measured ones through the meter, installers plainly. A failure is a BenchmarkError."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

METER = Path(__file__).with_name("meter.py")
RUN_SECONDS = 180
PREPARE_SECONDS = 1_800
OUTPUT_TAIL = 2_000


class BenchmarkError(Exception):
    """A benchmark cannot be run; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to start: an absolute program with its arguments, the whole environment, the working directory."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    directory: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One finished process; `peak` is the resident memory of the largest process of its tree."""

    wall_ms: float
    peak_mib: float
    output: str


def measure(command: Command) -> Run:
    """Run a command once and measure it; anything but exit status 0 is an error."""
    with tempfile.NamedTemporaryFile("r", prefix="figures-", encoding="ascii") as figures:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(METER), figures.name, *command.arguments],
            env=command.environment,
            cwd=command.directory,
            text=True,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            output, errors = process.communicate(timeout=RUN_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise BenchmarkError(f"{command.arguments[0]} did not end within {RUN_SECONDS} s") from None
        wall, status, peak = (float(figure) for figure in (figures.read() or "0 1 0").split())
    if status:
        said = (errors + output)[-OUTPUT_TAIL:]
        raise BenchmarkError(f"{' '.join(command.arguments)}: status {status:.0f}\n{said}")
    return Run(wall_ms=wall * 1e3, peak_mib=peak / 2**20, output=output)


def alternate(commands: Mapping[str, Command], runs: int) -> dict[str, list[Run]]:
    """Measure every command once a pass, A B A B, after a pass that warms up and does not count."""
    passes = [{name: measure(command) for name, command in commands.items()} for _ in range(runs + 1)]
    return {name: [done[name] for done in passes[1:]] for name in commands}


def prepare(arguments: Sequence[str], directory: Path) -> str:
    """Run an installer in the caller's environment, less what would keep it from compiling modules."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        arguments,
        env=environment,
        cwd=directory,
        text=True,
        timeout=PREPARE_SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode:
        raise BenchmarkError(f"{' '.join(arguments)}: status {done.returncode}\n{done.stdout[-OUTPUT_TAIL:]}")
    return done.stdout
