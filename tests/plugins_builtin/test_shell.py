"""The ``bash`` tool runs real commands: what it answers, and what it never leaves behind."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from crystal.types._readonly import read_only
from crystal.types.approval import ApprovalMode
from crystal.types.capabilities import BuiltinContext
from crystal.types.tools import Catalog, ToolCall, ToolOutput
from plugins_builtin import shell
from plugins_builtin.shell import BashTool
from tests.plugins_builtin.process_marks import marked

pytestmark = pytest.mark.usefixtures("no_login_files")

ROOT = Path(__file__).parents[2]
UNREADABLE = "(bytes that are no text are shown as U+FFFD)"


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
    """Make one call in a session of its own, which is closed after it."""

    async def session() -> ToolOutput:
        tool = BashTool()
        try:
            return await tool.invoke(make_call(command, **arguments), make_context(workspace, progress))
        finally:
            await tool.close()

    return asyncio.run(session())


@pytest.mark.parametrize(
    ("command", "text", "failed"),
    [
        ("true", "(exit 0)", False),
        ("echo out; echo err >&2; echo more", "out\nmore\nerr\n(exit 0)", False),
        ("printf 'no newline'", "no newline\n(exit 0)", False),
        ("echo x; exit 3", "x\n(exit 3)", True),
        ("exit 255", "(exit 255)", True),
        ("kill -KILL $$", "(ended by SIGKILL)", True),
        ("kill -TERM $$", "(ended by SIGTERM)", True),
        ("pwd -P | sed 's,.*/,,'", "{workspace}\n(exit 0)", False),
        ("read x; echo got:$x", "got:\n(exit 0)", False),
        ("(exit 200)", "(exit 200)", True),
        ("{ (kill -KILL $BASHPID); } 2>/dev/null; exit $?", "(exit 137, 128 + SIGKILL)", True),
        ("{ (kill -SEGV $BASHPID); } 2>/dev/null; exit $?", "(exit 139, 128 + SIGSEGV)", True),
        ("kill -35 $$", "(ended by signal 35)", True),
        ("printf 'a\\xffb\\xe4\\xb8\\xad'", f"a\ufffdb中\n{UNREADABLE}\n(exit 0)", False),
        ("printf 'a\\0b'", f"a\ufffdb\n{UNREADABLE}\n(exit 0)", False),
        ("printf '\\033[1;31mred\\033[0m \\033]0;title\\aend'", "red end\n(exit 0)", False),
        (
            "printf '10%%\\r20%%\\r30%%\\r\\n'",
            "30%\r\n(2 overwritten states of progress lines are left out)\n(exit 0)",
            False,
        ),
        ("printf 'dos\\r\\nlines\\r\\n'", "dos\r\nlines\r\n(exit 0)", False),
        ("exec >&- 2>&-; exit 4", "(exit 4)", True),
        ("exec sleep 0", "(exit 0)", False),
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
        {"timeout": 10**5000},
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


@pytest.mark.parametrize("timeout", [1e-9, 0.01])
def test_a_tiny_timeout_ends_the_command_at_once(tmp_path: Path, mark: str, timeout: float) -> None:
    output = run(tmp_path, "sleep 60; touch late", timeout=timeout)
    assert output.failed
    assert output.text == f"(timed out after {timeout:g} s; the command and everything it started were ended)"
    assert marked(mark) == {}


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


def test_an_environment_beyond_the_systems_length_is_a_failed_answer_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def session() -> list[ToolOutput]:
        tool = BashTool()
        try:
            first = await tool.invoke(make_call("echo fits"), make_context(tmp_path))
            tool._block = tool._block[0], [*tool._block[1], b"HUGE=" + b"x" * (8 << 20)]
            return [first, await tool.invoke(make_call("true"), make_context(tmp_path))]
        finally:
            await tool.close()

    fits, huge = asyncio.run(session())
    assert fits.text == "fits\n(exit 0)"
    assert huge.failed
    assert "environment" in huge.text


def test_a_workspace_that_is_gone_is_a_failed_answer_that_names_it(tmp_path: Path) -> None:
    output = run(tmp_path / "gone", "true")
    assert output.failed
    assert str(tmp_path / "gone") in output.text


def test_a_workspace_that_is_removed_between_two_calls_is_named_and_the_next_call_works_again(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()

    async def session() -> list[ToolOutput]:
        tool = BashTool()
        context = make_context(workspace)
        try:
            return [
                await tool.invoke(make_call("rmdir ../workspace; echo removed"), context),
                await tool.invoke(make_call("true"), context),
                await tool.invoke(make_call("mkdir x"), make_context(tmp_path)),
            ]
        finally:
            await tool.close()

    removed, gone, back = asyncio.run(session())
    assert removed.text == "removed\n(exit 0)"
    assert gone == ToolOutput(text=f"bash: the workspace {workspace} does not exist any more.", failed=True)
    assert back.text == "(exit 0)"


WITH_FEWER_RIGHTS = """
import ctypes, json, os, resource, subprocess, sys
from pathlib import Path
prctl = ctypes.CDLL(None, use_errno=True).prctl
def give_up_passing_permissions():
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, from the bounding set
        prctl(24, capability, 0, 0, 0)
def become_ordinary():
    # Keeps the right to read files only, for Python itself may lie where only the superuser may go.
    prctl(8, 1, 0, 0, 0)
    os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
    header, rights = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)(4, 4, 4, 0, 0, 0)
    assert ctypes.CDLL(None).capset(header, rights) == 0
    assert prctl(47, 2, 2, 0, 0) == 0
workspace, case = Path(sys.argv[1]), sys.argv[2]
if case == "again":
    give_up_passing_permissions()
    os.execv(sys.executable, [sys.executable, "-c", os.environ["SCRIPT"], str(workspace), "closed"])
from tests.plugins_builtin.test_shell import run, session_outputs
if case == "closed":
    print(json.dumps([run(workspace, "true").text]))
else:
    if os.geteuid() == 0:
        become_ordinary()
    def no_more_processes():
        for pid in [os.getpid(), *map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())]:
            resource.prlimit(pid, resource.RLIMIT_NPROC, (0, 0))
    print(json.dumps(session_outputs(workspace, "echo one", no_more_processes, "echo two")))
"""
"""Tests may run as the superuser, whom neither permissions nor limits bind."""


def session_outputs(workspace: Path, first: str, between: Callable[[], None], second: str) -> list[str]:
    """The texts of two calls of one session and of a call in a new one, with something done after the first."""

    async def session() -> list[str]:
        texts = []
        tools = [BashTool(), BashTool()]
        try:
            texts.append((await tools[0].invoke(make_call(first), make_context(workspace))).text)
            between()
            texts += [(await tool.invoke(make_call(second), make_context(workspace))).text for tool in tools]
        finally:
            for tool in tools:
                await tool.close()
        return texts

    return asyncio.run(session())


def run_with_fewer_rights(workspace: Path, case: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", WITH_FEWER_RIGHTS, str(workspace), case],
        cwd=ROOT,
        env={**os.environ, "HOME": "/", "PYTHONPATH": str(ROOT), "SCRIPT": WITH_FEWER_RIGHTS},
        check=True,
        timeout=60,
        stdout=subprocess.PIPE,
        text=True,
    )
    texts: list[str] = json.loads(done.stdout)
    return texts


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users may reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder
        folder.chmod(0o777)


def test_a_workspace_that_may_not_be_entered_is_a_failed_answer_with_the_mend(open_folder: Path) -> None:
    open_folder.chmod(0o644)
    (text,) = run_with_fewer_rights(open_folder, "again")
    assert str(open_folder) in text
    assert "execute permission" in text


def test_a_system_without_room_for_processes_is_a_failed_answer(open_folder: Path) -> None:
    one, two, new_session = run_with_fewer_rights(open_folder, "full")
    assert one == "one\n(exit 0)"
    for text in (two, new_session):
        assert "no room for another process" in text


def test_a_missing_bash_is_a_failed_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    output = run(tmp_path, "true")
    assert output == ToolOutput(text=output.text, failed=True)
    assert "bash was not found" in output.text


TERMINAL = """
import json, sys
from pathlib import Path
from tests.plugins_builtin.test_shell import run
own = True
try:
    open("/dev/tty").close()
except OSError:
    own = False
workspace = Path(sys.argv[1])
commands = json.loads(sys.argv[3])
Path(sys.argv[2]).write_text(json.dumps([own, [run(workspace, each, timeout=20).text for each in commands]]))
"""


def test_a_command_cannot_reach_the_operators_terminal(tmp_path: Path) -> None:
    """G12: under a terminal of Crystal's own, nothing waits for keys, and keys that were typed are not taken."""
    ask = {
        "dev tty": "exec 3<>/dev/tty",
        "python": "python3 -c 'open(\"/dev/tty\").read()'",
        "standard": "test -t 0 || test -t 1 || test -t 2",
        "commit": "git init -q . && git -c user.name=a -c user.email=a@b commit --allow-empty",
        "rebase": "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git rebase -q -i --root",
        "read": "read x; echo got:$x",
        "read tty": "read x </dev/tty",
        "cat": "cat",
        "select": "select each in a b; do echo $each; done",
        "sudo like": "stty -echo; su -c true nobody </dev/tty",
        "password": "python3 -c 'import getpass; getpass.getpass()'",
        "job control": "set -m; sleep 0; fg",
    }
    master, slave = os.openpty()
    report = tmp_path / "report.json"
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    os.write(master, b"typed by the operator\n")
    subprocess.run(
        [sys.executable, "-c", TERMINAL, str(workspace), str(report), json.dumps(list(ask.values()))],
        cwd=ROOT,
        check=True,
        timeout=120,
        preexec_fn=lambda: os.login_tty(os.dup(slave)),
    )
    own, texts = json.loads(report.read_text())
    os.set_blocking(slave, False)
    assert os.read(slave, 100) == b"typed by the operator\n"
    os.close(master)
    os.close(slave)
    assert own, "the test itself must have a terminal to protect"
    said = dict(zip(ask, texts, strict=True))
    assert [case for case, text in said.items() if "timed out" in text] == []
    assert "/dev/tty" in said["dev tty"]
    assert said["dev tty"].endswith("(exit 1)")
    assert "OSError" in said["python"]
    assert said["standard"] == "(exit 1)"
    assert not said["commit"].endswith("(exit 0)")
    assert not said["rebase"].endswith("(exit 0)")
    assert said["read"] == "got:\n(exit 0)"
    assert said["read tty"].endswith("(exit 1)")
    assert said["cat"] == "(exit 0)"
    assert not said["password"].endswith("(exit 0)")


def test_a_command_may_name_an_editor_of_its_own(tmp_path: Path) -> None:
    assert run(tmp_path, 'GIT_EDITOR=true sh -c "echo $GIT_EDITOR \\$GIT_EDITOR"').text == "false true\n(exit 0)"


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
        ("yes | head -n 20000000; head -c 160000000 /dev/zero | tr '\\0' '\\r'", 200_000_000),
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
    assert grown_mebibytes <= 16
    assert 90_000 < length <= 100_000
    assert (end, failed) == ("(exit 0)", False)
    (cut,) = cuts
    left_out = int(cut.removeprefix("[... ").partition(" bytes")[0].replace(",", ""))
    assert total - 100_000 <= left_out < total - 90_000


def test_lines_are_shown_live_and_safe_for_a_terminal(tmp_path: Path) -> None:
    shown: list[str] = []
    run(tmp_path, "printf 'one\\n\\033[31mred\\a\\n10%%\\r20%%\\n'; echo err >&2; printf last", shown.append)
    assert sorted(shown) == sorted(["one", "red ", "20%", "err", "last"])


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
