"""``bash`` as a whole session offers it: what a model may send, what an operator sees live, what is left afterwards."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from crystal.engine.answers import Approve
from crystal.testing.crystaler import Crystaler
from crystal.testing.result import RunResult
from crystal.types.events import ToolCallFinished, ToolProgressed
from crystal.workspace.programs.live_output import LIVE_LINES, LIVE_SECONDS
from tests.engine.runs import DONE, Operator, bash, calls, of
from tests.plugins_builtin.process_marks import MARK, marked, still_marked

pytestmark = pytest.mark.usefixtures("no_login_files")

ROOT = Path(__file__).parents[2]
KEY = "sk-acme-0123456789-abcdef"


@pytest.fixture
def mark(crystaler: Crystaler, mark: str) -> str:
    """A text that every process of the test carries in its environment."""
    crystaler.environ[MARK] = mark
    return mark


def run(crystaler: Crystaler, **options: Any) -> RunResult:
    """Run a task whose operator approves every call; what a command may do is judged elsewhere."""
    return crystaler.run("go", operator=Operator(Approve()), **options)


def snapshot(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, ["command", "required"]),
        ({"command": None}, ["command", "string"]),
        ({"command": 1}, ["command", "string"]),
        ({"command": ["touch", "made"]}, ["command", "string"]),
        ({"command": {"run": "touch made"}}, ["command", "string"]),
        ({"command": ""}, ["command is empty"]),
        ({"command": " \t\n"}, ["command is empty"]),
        ({"command": "touch made\0"}, ["NUL"]),
        ({"command": "touch made #" + "x" * 150_000}, ["longer than the system allows", "file"]),
        ({"command": "touch made", "workdir": "/"}, ["workdir"]),
        ({"command": "touch made", "run_in_background": True}, ["run_in_background"]),
        ({"command": "touch made", "timeout": None}, ["timeout"]),
        ({"command": "touch made", "timeout": [1]}, ["timeout"]),
        ({"command": "touch made", "timeout": True}, ["timeout"]),
        ({"command": "touch made", "timeout": "120"}, ["timeout", "unlimited"]),
        ({"command": "touch made", "timeout": "Unlimited "}, ["timeout", "unlimited"]),
        ({"command": "touch made", "timeout": 0}, ["timeout", "above 0"]),
        ({"command": "touch made", "timeout": -0.5}, ["timeout", "above 0"]),
        ({"command": "touch made", "timeout": 1e308}, ["timeout", "seven days"]),
        ({"command": "touch made", "timeout": 120_000_000}, ["timeout", "seven days"]),
        ({"command": "touch made", "description": 7}, ["description", "string"]),
        ('{"command": "touch made", "timeout": NaN}', ["NaN"]),
        ('{"command": "touch made", "timeout": Infinity}', ["Infinity"]),
        ('{"command": "touch made"', ["JSON"]),
        ('["touch made"]', ["object"]),
        ('"touch made"', ["JSON"]),
    ],
)
def test_bad_input_is_a_failed_result_that_names_the_argument_and_nothing_changes(
    crystaler: Crystaler, arguments: Any, said: list[str]
) -> None:
    crystaler.script([calls(("bash", arguments)), DONE])
    before = snapshot(crystaler.workspace)
    result = run(crystaler)
    assert result.exit_code == 0, result.stderr
    (finished,) = of(result, ToolCallFinished)
    assert finished.failed
    for word in said:
        assert word in finished.output
    assert len(finished.output) < 1_000
    assert snapshot(crystaler.workspace) == before


@pytest.mark.parametrize("timeout", [1e-6, 0.25, 30, 604_800, "unlimited"])
def test_every_usable_timeout_works(crystaler: Crystaler, timeout: object) -> None:
    crystaler.script([calls(("bash", {"command": "echo ran", "timeout": timeout})), DONE])
    (finished,) = of(run(crystaler), ToolCallFinished)
    if timeout == 1e-6:
        assert finished.output.endswith("everything it started were ended)")
    elif timeout != 0.25:
        assert finished.output == "ran\n(exit 0)"


def test_the_default_limit_is_two_minutes(crystaler: Crystaler) -> None:
    from crystal.types.tools import ToolContext

    assert ToolContext.__dataclass_fields__["program_timeout"].default == 120.0
    crystaler.makeconfig(bashTimeoutSeconds=0.3)
    crystaler.script([calls(bash("sleep 60")), DONE])
    (finished,) = of(run(crystaler), ToolCallFinished)
    assert finished.output.startswith("(timed out after 0.3 s")


def test_a_secret_that_is_printed_in_two_parts_is_never_shown_in_parts(crystaler: Crystaler) -> None:
    crystaler.makeproviders(
        acme={
            "protocol": "openai",
            "baseUri": "http://127.0.0.1:9/v1",
            "apiKey": KEY,
            "models": {"m": {"contextWindow": 1000}},
        }
    )
    halves = KEY[:11], KEY[11:]
    os.mkfifo(crystaler.workspace / "seen")
    # The line before the first half is shown before the second half is written: the fifo waits for the test's listener.
    command = (
        f"echo before; printf %s {halves[0]}; read -r x < seen; echo {halves[1]}; "
        f"printf '%s\\033[1m%s\\033[0m\\n' {halves[0]} {halves[1]}; printf '%s' {KEY} >&2"
    )
    told: list[str] = []

    def listen(event: object) -> None:
        if isinstance(event, ToolProgressed):
            told.append(event.text)
            if event.text == "before":
                with open(crystaler.workspace / "seen", "w") as fifo:
                    fifo.write("go\n")

    crystaler.script([calls(bash(command)), DONE])
    result = run(crystaler, listener=listen)
    (finished,) = of(result, ToolCallFinished)
    hidden = "[redacted:acme.apiKey]"
    assert told == ["before", hidden, hidden, hidden]
    assert finished.output == f"before\n{hidden}\n{hidden}\n{hidden}\n(exit 0)"
    for half in halves:
        assert half not in "".join(told) + finished.output


@pytest.mark.parametrize(
    "flood",
    [
        "yes | head -c 300000000",
        "head -c 300000000 /dev/zero",
        "seq 3000000",
        "yes $'1%\\r' | tr -d '\\n' | head -c 99999999",
    ],
)
def test_a_flood_is_shown_by_few_events(crystaler: Crystaler, flood: str) -> None:
    crystaler.script([calls(bash(flood)), DONE])
    begun = time.monotonic()
    result = run(crystaler)
    showings = (time.monotonic() - begun) / LIVE_SECONDS + 2
    assert result.exit_code == 0
    assert 0 < len(of(result, ToolProgressed)) <= showings * LIVE_LINES
    (finished,) = of(result, ToolCallFinished)
    assert finished.output.endswith("(exit 0)")


def test_what_was_left_running_ends_with_the_run(crystaler: Crystaler, mark: str) -> None:
    jobs = (
        "sleep 60 & setsid sleep 60 & (nohup sleep 60 >/dev/null 2>&1 &); env -i setsid bash -c 'exec -a {} sleep 60' &"
    )
    alive: list[dict[int, str]] = []

    def listen(event: object) -> None:
        if isinstance(event, ToolCallFinished):
            alive.append(marked(mark))

    crystaler.script([calls(bash(jobs.format(mark))), calls(bash("echo next")), DONE])
    result = run(crystaler, listener=listen)
    assert result.exit_code == 0
    during, after = alive
    assert len(after) == 4
    assert after.keys() <= during.keys()  # a shell of the first call may just be ending
    assert marked(mark) == {}


KILLED = """
import asyncio, dataclasses, io, os, sys
from crystal.cli.run import parse_run
from crystal.cli.task import run_task
from crystal.engine.answers import Approve
from tests.engine.runs import Operator
home, workspace, script = sys.argv[1:]
arguments = ["go", "--home", home, "-w", workspace, "--script", script]
request = parse_run(arguments, io.StringIO(), sys.stderr, os.environ)
asyncio.run(run_task(dataclasses.replace(request, operator=Operator(Approve()))))
"""


@pytest.mark.parametrize(
    "command",
    [
        "echo up > up; sleep 60; touch late",
        "echo up > up; exec sleep 60",
        "trap '' TERM INT HUP PIPE; echo up > up; while :; do sleep 1; echo x; done",
        "setsid bash -c 'echo up > up; sleep 60; touch late' & wait",
        "(setsid bash -c 'sleep 60; touch late' &); env -i bash -c 'exec -a {} sleep 60' & echo up > up; sleep 60",
    ],
)
@pytest.mark.parametrize("left", [False, True])
def test_nothing_goes_on_after_crystal_was_killed(crystaler: Crystaler, mark: str, command: str, left: bool) -> None:
    """SIGKILL lets Crystal do nothing any more; running commands and jobs of earlier calls end all the same."""
    os.mkfifo(crystaler.workspace / "up")
    rounds = [calls(bash("sleep 61 & setsid sleep 62 &"))] if left else []
    script = crystaler.script([*rounds, calls(bash(command.format(mark)))])
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(crystaler.home), str(crystaler.workspace), str(script)],
        cwd=ROOT,
        env=crystaler.environ,
        stdout=subprocess.DEVNULL,
    )
    try:
        up = os.open(crystaler.workspace / "up", os.O_RDONLY | os.O_NONBLOCK)
        assert select.select([up], [], [], 30)[0]
        os.close(up)
        assert marked(mark)
    finally:
        process.kill()
        process.wait()
    assert still_marked(mark) == {}
    assert not (crystaler.workspace / "late").exists()


def test_an_interrupt_ends_the_command_and_the_jobs(crystaler: Crystaler, mark: str) -> None:
    def listen(event: object) -> None:
        if isinstance(event, ToolProgressed):
            signal.raise_signal(signal.SIGINT)

    crystaler.script(
        [calls(bash("setsid sleep 60 &")), calls(bash("trap '' TERM INT; echo up; setsid sleep 61 & sleep 62"))]
    )
    result = run(crystaler, listener=listen)
    assert result.exit_code == 5
    assert marked(mark) == {}
