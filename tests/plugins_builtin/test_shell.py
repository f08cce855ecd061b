"""The ``bash`` tool runs real commands: what it answers, and what it never leaves behind."""

from __future__ import annotations

import asyncio
import json
import os
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crystal.types._readonly import read_only
from crystal.types.approval import ApprovalMode
from crystal.types.capabilities import BuiltinContext
from crystal.types.tools import Catalog, ToolCall, ToolOutput
from plugins_builtin import shell
from plugins_builtin.shell import BashTool

ROOT = Path(__file__).parents[2]


def make_context(workspace: Path, progress: Callable[[str], None] = lambda line: None) -> BuiltinContext:
    async def no_calls(name: str, arguments: Any) -> ToolOutput:
        raise AssertionError(f"{name} was called")

    return BuiltinContext(
        workspace=workspace,
        home=workspace / "crystal-home",
        session_id="session",
        call_id="call",
        approval=ApprovalMode.DEFAULT,
        mode=Catalog.WORK,
        global_data=workspace / "global",
        project_data=workspace / "project",
        accepts_images=False,
        permitted_paths=frozenset(),
        progress=progress,
        tools=(),
        call=no_calls,
    )


def make_call(command: str, **arguments: Any) -> ToolCall:
    return ToolCall(id="call", name="bash", arguments=read_only({"command": command, **arguments}))


def run(
    workspace: Path, command: str, progress: Callable[[str], None] = lambda line: None, **arguments: Any
) -> ToolOutput:
    return asyncio.run(BashTool().invoke(make_call(command, **arguments), make_context(workspace, progress)))


def wait_until_gone(pids: list[int]) -> list[int]:
    """Wait for the ends of processes that are no children of ours; return those that live on after ten seconds."""
    alive = []
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            if not select.select([descriptor], [], [], 10)[0]:
                alive.append(pid)
        finally:
            os.close(descriptor)
    return alive


def read_pids(folder: Path) -> list[int]:
    return [int(file.read_text()) for file in sorted(folder.glob("*.pid"))]


@pytest.mark.parametrize(
    ("command", "text", "failed"),
    [
        ("true", "(exit 0)", False),
        ("echo out; echo err >&2; echo more", "out\nmore\nerr\n(exit 0)", False),
        ("printf 'no newline'", "no newline\n(exit 0)", False),
        ("echo x; exit 3", "x\n(exit 3)", True),
        ("kill -KILL $$", "(ended by SIGKILL)", True),
        ("kill -TERM $$", "(ended by SIGTERM)", True),
        ("pwd -P | sed 's,.*/,,'", "{workspace}\n(exit 0)", False),
        ("read x; echo got:$x", "got:\n(exit 0)", False),
        ("printf 'a\\xffb\\xe4\\xb8\\xad'", "a\ufffdb中\n(exit 0)", False),
        ("printf 'a\\0b'", "a\0b\n(exit 0)", False),
    ],
)
def test_output_and_exit_status_are_answered(tmp_path: Path, command: str, text: str, failed: bool) -> None:
    assert run(tmp_path, command) == ToolOutput(text=text.format(workspace=tmp_path.name), failed=failed)


@pytest.mark.parametrize(
    "arguments",
    [
        {"timeout": 0},
        {"timeout": -1},
        {"timeout": True},
        {"timeout": "soon"},
        {"timeout": "120"},
        {"timeout": float("nan")},
        {"timeout": float("inf")},
        {"timeout": 10**400},
        {"timeout": 7 * 24 * 3600 + 1},
    ],
)
def test_an_unusable_timeout_is_a_failed_answer_and_nothing_runs(tmp_path: Path, arguments: dict[str, Any]) -> None:
    output = run(tmp_path, "touch ran", **arguments)
    assert output.failed
    assert "timeout must be a number of seconds above 0" in output.text
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("timeout", [0.5, 30, "unlimited"])
def test_usable_timeouts_run_the_command(tmp_path: Path, timeout: object) -> None:
    assert shell.time_limit(timeout, 120.0) == (None if timeout == "unlimited" else timeout)
    if timeout != 0.5:
        assert run(tmp_path, "echo ran", timeout=timeout).text == "ran\n(exit 0)"


@pytest.mark.parametrize(
    ("command", "said"),
    [("", "empty"), (" \n", "empty"), ("touch ran\0", "NUL"), ("touch ran \ud800", "surrogate")],
)
def test_what_no_program_can_be_given_is_refused(tmp_path: Path, command: str, said: str) -> None:
    output = run(tmp_path, command)
    assert output.failed
    assert said in output.text
    assert not (tmp_path / "ran").exists()


def test_a_command_beyond_the_systems_length_is_a_failed_answer_that_names_the_mend(tmp_path: Path) -> None:
    output = run(tmp_path, "#" * (8 << 20))
    assert output.failed
    assert "write it to a file" in output.text


def test_a_workspace_that_is_gone_is_a_failed_answer_that_names_it(tmp_path: Path) -> None:
    output = run(tmp_path / "gone", "true")
    assert output.failed
    assert str(tmp_path / "gone") in output.text


def test_a_missing_bash_is_a_failed_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    output = run(tmp_path, "true")
    assert output == ToolOutput(text=output.text, failed=True)
    assert "bash was not found" in output.text


@pytest.mark.parametrize(
    "job",
    [
        "(while :; do echo tick; sleep 0.05; done) &",
        "setsid sleep 60 &",
        "sleep 60 &",
        "sleep 60 >/dev/null 2>&1 &",
    ],
)
def test_a_job_left_in_the_background_does_not_hold_the_call_open(tmp_path: Path, job: str) -> None:
    output = run(tmp_path, f"{job} echo $! > job.pid; echo done", timeout=20)
    assert not output.failed
    lines = output.text.splitlines()
    assert lines[-1] == "(exit 0)"
    assert [line for line in lines[:-1] if line != "tick"] == ["done"]
    for pid in read_pids(tmp_path):
        try:
            os.kill(pid, 9)
        except ProcessLookupError:
            continue
    assert wait_until_gone(read_pids(tmp_path)) == []


def test_a_silent_job_left_in_the_background_lives_on(tmp_path: Path) -> None:
    run(tmp_path, "sleep 60 >/dev/null 2>&1 & echo $! > job.pid")
    (pid,) = read_pids(tmp_path)
    os.kill(pid, 9)
    assert wait_until_gone([pid]) == []


FAMILY = """
note() { echo $BASHPID > "$1.tmp"; mv "$1.tmp" "$1.pid"; }
(note plain; trap '' TERM INT HUP; sleep 60; touch late) &
setsid bash -c 'echo $$ > session.tmp; mv session.tmp session.pid; sleep 60; touch late' &
(setsid bash -c '(echo $BASHPID > orphan.tmp; mv orphan.tmp orphan.pid; sleep 60; touch late) & exit' &)
(nohup bash -c 'echo $$ > nohup.tmp; mv nohup.tmp nohup.pid; sleep 60; touch late' >/dev/null 2>&1 & disown)
until [ -f plain.pid ] && [ -f session.pid ] && [ -f orphan.pid ] && [ -f nohup.pid ]; do sleep 0.01; done
echo ready
sleep 60; touch late
"""


def test_a_timeout_ends_the_whole_tree_and_keeps_the_output_so_far(tmp_path: Path) -> None:
    output = run(tmp_path, FAMILY, timeout=3)
    assert output == ToolOutput(
        text="ready\n(timed out after 3 s; the command and everything it started were ended)", failed=True
    )
    pids = read_pids(tmp_path)
    assert len(pids) == 4
    assert wait_until_gone(pids) == []
    assert not (tmp_path / "late").exists()


@pytest.mark.parametrize("with_descriptors", [True, False])
def test_a_cancelled_call_ends_the_whole_tree_and_stays_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_descriptors: bool
) -> None:
    async def cancel_when_ready() -> None:
        ready = asyncio.Event()
        call = asyncio.create_task(
            BashTool().invoke(make_call(FAMILY), make_context(tmp_path, lambda line: ready.set()))
        )
        await ready.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    with monkeypatch.context() as patch:
        if not with_descriptors:
            patch.delattr(os, "pidfd_open")
        asyncio.run(cancel_when_ready())
    pids = read_pids(tmp_path)
    assert len(pids) == 4
    assert wait_until_gone(pids) == []
    assert not (tmp_path / "late").exists()


def test_a_call_leaves_no_descriptor_and_no_thread_behind(tmp_path: Path) -> None:
    import threading

    async def calls() -> tuple[int, int]:
        tool = BashTool()
        await tool.invoke(make_call("true"), make_context(tmp_path))
        before = len(os.listdir("/dev/fd"))
        for command in ("echo x", "sleep 60 & kill $!", "exit 3", "kill -9 $$"):
            await tool.invoke(make_call(command), make_context(tmp_path))
        await tool.invoke(make_call("sleep 60", timeout=0.05), make_context(tmp_path))
        return before, len(os.listdir("/dev/fd"))

    threads = threading.active_count()
    before, after = asyncio.run(calls())
    assert (after, threading.active_count()) == (before, threads)


TERMINAL = """
import asyncio, json, sys
from pathlib import Path
from tests.plugins_builtin.test_shell import run
own = True
try:
    open("/dev/tty").close()
except OSError:
    own = False
workspace = Path(sys.argv[1])
commands = ["exec 3<>/dev/tty", "test -t 0 || test -t 1 || test -t 2", "git init -q . && git commit --allow-empty"]
Path(sys.argv[2]).write_text(json.dumps([own, [run(workspace, each, timeout=20).text for each in commands]]))
"""


def test_a_command_cannot_reach_the_operators_terminal(tmp_path: Path) -> None:
    master, slave = os.openpty()
    report = tmp_path / "report.json"
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    subprocess.run(
        [sys.executable, "-c", TERMINAL, str(workspace), str(report)],
        cwd=ROOT,
        check=True,
        timeout=60,
        preexec_fn=lambda: os.login_tty(slave),
    )
    os.close(master)
    os.close(slave)
    own, (tty, standard, editor) = json.loads(report.read_text())
    assert own, "the test itself must have a terminal to protect"
    assert "/dev/tty" in tty
    assert tty.endswith("(exit 1)")
    assert standard == "(exit 1)"
    assert "timed out" not in editor
    assert not editor.endswith("(exit 0)")


FLOOD = """
import json, resource, sys
from pathlib import Path
from tests.plugins_builtin.test_shell import run
workspace = Path(sys.argv[1])
run(workspace, "seq 1000")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
output = run(workspace, sys.argv[2], timeout=100)
grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
left_out = [line for line in output.text.splitlines() if "left out" in line]
print(json.dumps([grown, len(output.text), output.text[-8:], output.failed, left_out]))
"""


@pytest.mark.parametrize(
    ("command", "total"),
    [
        ("head -c 200000000 /dev/zero | tr '\\0' y", 200_000_000),
        ("yes | head -n 100000000", 200_000_000),
        ("head -c 200000000 /dev/zero | tr '\\0' y >&2", 200_000_000),
    ],
)
def test_a_flood_of_output_is_cut_in_the_middle_within_little_memory(tmp_path: Path, command: str, total: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FLOOD, str(tmp_path), command],
        cwd=ROOT,
        check=True,
        timeout=120,
        capture_output=True,
        text=True,
    )
    grown_mebibytes, length, end, failed, cuts = json.loads(done.stdout)
    assert grown_mebibytes < 32
    assert 90_000 < length <= 100_000
    assert (end, failed) == ("(exit 0)", False)
    (cut,) = cuts
    left_out = int(cut.removeprefix("[... ").partition(" bytes")[0].replace(",", ""))
    assert total - 100_000 <= left_out < total - 90_000


def test_lines_are_shown_live_and_safe_for_a_terminal(tmp_path: Path) -> None:
    shown: list[str] = []
    run(tmp_path, "printf 'one\\n\\033[31mred\\a\\n10%%\\r20%%\\n'; echo err >&2; printf last", shown.append)
    assert sorted(shown) == sorted(["one", " [31mred ", "20%", "err", "last"])


def test_a_line_is_shown_before_the_command_ends(tmp_path: Path) -> None:
    def answer(line: str) -> None:
        (tmp_path / "seen").write_text(line)

    output = run(tmp_path, "echo first; until [ -f seen ]; do sleep 0.01; done; cat seen", answer, timeout=30)
    assert output.text == "first\nfirst\n(exit 0)"


def test_what_the_model_is_told_is_small_and_plan_does_not_offer_it() -> None:
    (contribution,) = shell.Plugin().contribute_tools()
    definition = contribution.tool.definition
    sent = {
        "name": definition.name,
        "description": definition.description,
        "parameters": dict(definition.schema),
    }
    assert len(json.dumps(sent)) < 700
    assert contribution.name == definition.name == "bash"
    assert contribution.catalogs == Catalog.WORK
