"""Long runs. CI runs the small sample of each; ``tox -e soak`` runs the full counts."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from crystal.testing.crystaler import Crystaler
from crystal.types.items import ToolCallItem, ToolResultItem
from tests.acceptance.test_kill import assert_valid, stored_items

FULL = pytest.mark.soak


def notes(crystaler: Crystaler, count: int) -> list[dict[str, object]]:
    """Write ``count`` files and return the rounds that read them one by one."""
    for number in range(count):
        crystaler.makefile(f"notes/{number:04}.txt", f"note {number}\n")
    return [
        {"toolCalls": [{"name": "read", "arguments": {"path": f"notes/{number:04}.txt"}, "id": f"c{number}"}]}
        for number in range(count)
    ]


@pytest.mark.parametrize("rounds", [100, pytest.param(5_000, marks=FULL)])
def test_a_long_session_is_whole_and_goes_on(crystaler: Crystaler, rounds: int) -> None:
    crystaler.script([*notes(crystaler, rounds), {"text": "Done."}])
    result = crystaler.run("read them all", "--model-calls", "unlimited")
    assert result.exit_code == 0, result.stderr
    _, items = stored_items(crystaler)
    assert len([item for item in items if isinstance(item, ToolCallItem)]) == rounds
    assert len([item for item in items if isinstance(item, ToolResultItem)]) == rounds
    assert_valid(items)
    crystaler.script([{"text": "Still here.", "expect": {"contains": f"note {rounds - 1}"}}])
    assert crystaler.run("and?", "-r", result.session_id).exit_code == 0


@pytest.mark.parametrize("kills", [3, pytest.param(200, marks=FULL)])
def test_kills_at_any_moment_lose_nothing_that_was_said(crystaler: Crystaler, kills: int) -> None:
    """Each run resumes the same session and is killed after some lines of its output, wherever it then is."""
    chance = random.Random(kills)
    script = crystaler.script([*notes(crystaler, 30), {"text": "Done."}])
    session_id = ""
    said: set[str] = set()
    for number in range(kills):
        resume = ["-r", session_id] if session_id else []
        process = subprocess.Popen(
            [
                *(sys.executable, "-P", "-c", "from crystal.cli.main import main; main()", "run", f"task {number}"),
                *("--script", str(script), "--format", "json", *resume),
            ],
            cwd=crystaler.workspace,
            env={**crystaler.environ, "CRYSTAL_HOME": str(crystaler.home)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        for _ in range(chance.randrange(1, 60)):
            line = json.loads(process.stdout.readline())
            session_id = line["sessionID"]
            if line["type"] == "tool_use":
                said.add(line["callId"])
        process.kill()
        process.stdout.close()
        process.wait()
    _, items = stored_items(crystaler)
    assert said <= {item.call_id for item in items if isinstance(item, ToolResultItem)}
    crystaler.script([{"text": "Whole again."}])
    resumed = crystaler.run("go on", "-r", session_id)
    assert resumed.exit_code == 0, resumed.stderr
    assert_valid(tuple(item for item in resumed.requests[0].items if item.id != "system"))


def test_the_full_counts_have_a_place() -> None:
    """The tox environment that runs them exists and asks for the marker."""
    text = (Path(__file__).parents[2] / "tox.ini").read_text("utf-8")
    assert "[testenv:soak]" in text
    assert "-m soak" in text
