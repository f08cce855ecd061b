"""The sets of ``examples/tools`` and of the guide work as they are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from crystal.host.manifests.toolset import ExecRunner, parse_tool_set
from crystal.testing.crystaler import Crystaler
from crystal.testing.result import RunResult
from crystal.types.items import ToolResultItem

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "tools"


@pytest.fixture(autouse=True)
def installed(crystaler: Crystaler) -> None:
    shutil.copytree(EXAMPLES, crystaler.home / "tools")
    crystaler.home.chmod(0o700)


def run(crystaler: Crystaler, name: str, **arguments: object) -> RunResult:
    crystaler.script([{"toolCalls": [{"name": name, "arguments": arguments}]}, {"text": "Done."}])
    result = crystaler.run("go", "--allow", name)
    assert result.notes == ()
    return result


def test_count_counts_files_of_the_workspace_and_no_others(crystaler: Crystaler) -> None:
    crystaler.makefile("a b.txt", "one two\n")
    crystaler.makefile("-l", "three\n")
    result = run(crystaler, "count", files=["a b.txt", "-l"])
    first, second, *_ = result.calls[0].output.splitlines()
    assert first.split(maxsplit=3) == ["1", "2", "8", f"{crystaler.workspace}/a b.txt"]
    assert second.split() == ["1", "1", "6", f"{crystaler.workspace}/-l"]
    assert run(crystaler, "count", files=["a b.txt", "/etc/hostname"]).exit_code == 4


def test_repository_reads_the_history(crystaler: Crystaler) -> None:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    for command in (["init", "-q"], [*identity, "commit", "-q", "--allow-empty", "-m", "First"]):
        subprocess.run(["git", *command], cwd=crystaler.workspace, check=True, timeout=60)
    assert run(crystaler, "commits", count=5).calls[0].output.split("\n")[0].endswith(" First")
    assert run(crystaler, "authors").calls[0].output.split("\n")[0].split() == ["1", "Ada"]
    assert run(crystaler, "commits", count=0).calls[0].failed


def test_a_failure_of_the_program_is_a_failed_call(crystaler: Crystaler) -> None:
    call = run(crystaler, "commits").calls[0]
    assert call.failed
    assert "not a git repository" in call.output
    assert "(exit 128)" in call.output


def test_words_has_two_tools(crystaler: Crystaler) -> None:
    crystaler.makefile("a.txt", "one two two\nthree\n")
    assert run(crystaler, "count_words", path="a.txt", most=1).calls[0].output == "2 two"
    assert run(crystaler, "longest_lines", path="a.txt", most=1).calls[0].output == "line 1: 11 characters"
    assert run(crystaler, "count_words", path="/etc/hostname").exit_code == 4


def test_chart_returns_an_image(crystaler: Crystaler) -> None:
    result = run(crystaler, "chart", numbers=[1, 2, 4])
    assert "3 bars, the highest stands for 4." in result.calls[0].output
    [image] = [image for item in result.requests[1].items if isinstance(item, ToolResultItem) for image in item.images]
    assert image.media_type == "image/png"
    assert run(crystaler, "chart", numbers=[]).calls[0].failed


def test_the_manifest_of_the_guide_is_one() -> None:
    text = (ROOT / "docs" / "tool-sets.md").read_text("utf-8")
    block = next(block for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL) if '"runner"' in block)
    json.loads(block)
    runner = parse_tool_set(Path("tools.json"), block.encode(), "count").runner
    assert isinstance(runner, ExecRunner)
    assert [tool.name for tool in runner.tools] == ["count"]
