"""What commands leave behind: jobs until the session closes, after a timeout or a cancelled call nothing at all."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from crystal.types.tools import ToolOutput
from plugins_builtin.shell import BashTool
from tests.plugins_builtin.process_marks import marked, still_marked, wait_until_gone
from tests.plugins_builtin.test_shell import make_call, make_context, run

pytestmark = pytest.mark.usefixtures("no_login_files")


def read_pids(folder: Path) -> list[int]:
    return [int(file.read_text()) for file in sorted(folder.glob("*.pid"))]


@pytest.mark.parametrize(
    "job",
    [
        "(while :; do echo tick; sleep 0.05; done) &",
        "(trap '' PIPE; while :; do echo tick; sleep 0.05; done) &",
        "(while :; do echo tick >&2; sleep 0.05; done) &",
        "setsid sleep 60 &",
        "sleep 60 &",
        "sleep 60 >/dev/null 2>&1 &",
        "nohup sleep 60 &",
        "(setsid sleep 60 &);",
        "yes &",
    ],
)
def test_a_job_left_in_the_background_does_not_hold_the_call_and_ends_with_the_session(
    tmp_path: Path, mark: str, job: str
) -> None:
    """G10: the call returns although the job has its output, silent or not; the job lives on until the close."""
    threads = threading.active_count()

    async def session() -> tuple[ToolOutput, dict[int, str], ToolOutput]:
        tool = BashTool()
        try:
            left = await tool.invoke(make_call(f"{job} echo done", timeout=20), make_context(tmp_path))
            alive = marked(mark)
            return left, alive, await tool.invoke(make_call("echo next", timeout=20), make_context(tmp_path))
        finally:
            await tool.close()

    left, alive, following = asyncio.run(session())
    assert not left.failed
    lines = left.text.splitlines()
    assert lines[-1] == "(exit 0)"
    noise = ("", "tick", "y", "nohup: ignoring input")
    assert [line for line in lines[:-1] if line not in noise and "left out" not in line] == ["done"]
    assert alive
    assert following.text == "next\n(exit 0)"
    assert marked(mark) == {}
    assert threading.active_count() == threads


def test_a_job_that_prints_goes_on_printing_after_the_call(tmp_path: Path, mark: str) -> None:
    """A development server writes its log to what was its standard output; that must neither stop nor end it."""
    os.mkfifo(tmp_path / "enough")
    server = "(for number in $(seq 30000); do echo a line of a log; done; echo printed > enough; exec sleep 60) &"

    async def session() -> tuple[str, dict[int, str]]:
        tool = BashTool()
        try:
            await tool.invoke(make_call(server, timeout=20), make_context(tmp_path))
            read = await tool.invoke(make_call("cat enough", timeout=60), make_context(tmp_path))
            return read.text, marked(mark)
        finally:
            await tool.close()

    text, alive = asyncio.run(session())
    assert text == "printed\n(exit 0)"
    assert alive
    assert marked(mark) == {}


def test_jobs_of_many_calls_all_end_with_the_session(tmp_path: Path, mark: str) -> None:
    async def session() -> list[int]:
        tool = BashTool()
        counts = []
        try:
            for _ in range(5):
                await tool.invoke(make_call("sleep 60 & setsid sleep 60 &"), make_context(tmp_path))
                counts.append(sum("sleep" in arguments for arguments in marked(mark).values()))
        finally:
            await tool.close()
        return counts

    assert asyncio.run(session()) == [2, 4, 6, 8, 10]
    assert marked(mark) == {}


def test_a_timeout_leaves_the_jobs_of_earlier_calls_alone(tmp_path: Path, mark: str) -> None:
    async def session() -> tuple[str, list[str]]:
        tool = BashTool()
        try:
            await tool.invoke(make_call("setsid sleep 61 &"), make_context(tmp_path))
            ended = await tool.invoke(make_call("setsid sleep 62 & sleep 63", timeout=0.5), make_context(tmp_path))
            return ended.text, sorted(marked(mark).values())
        finally:
            await tool.close()

    text, alive = asyncio.run(session())
    assert text.startswith("(timed out after 0.5 s")
    assert alive == ["sleep 61 "]
    assert marked(mark) == {}


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


FORKS_AND_LEAVES = (
    f"{sys.executable} -c 'import os, time; ends = time.monotonic() + 30\n"
    "while time.monotonic() < ends:\n if os.fork(): os._exit(0)\n SETSID'"
)
"""A process that is never the same for long; with another word for ``SETSID`` never in the same group either."""

STUBBORN = {
    "trapped signals": "trap '' TERM INT HUP QUIT; sleep 60; touch late",
    "a grandchild that ignores TERM": "bash -c 'trap \"\" TERM; (sleep 3; touch late)'; true",
    "a session of its own": "setsid bash -c 'sleep 60; touch late' & wait",
    "a double fork": "(setsid bash -c 'sleep 60; touch late' &); sleep 60",
    "nohup": "nohup bash -c 'sleep 60; touch late' >/dev/null 2>&1 & wait",
    "disown": "sleep 60 & disown; sleep 61",
    "stopped": "sleep 60 & kill -STOP $!; sh -c 'kill -STOP $$'; wait",
    "a command that stops itself": "kill -STOP $$; touch late",
    "a scrubbed environment": (
        "env -i setsid bash -c 'exec -a {mark} sleep 60' & env -i bash -c 'exec -a {mark} sleep 61'"
    ),
    "a deep pipeline": "sleep 60 | (sleep 60 | (setsid sleep 60 | (sleep 60 | sleep 60)))",
    "a coprocess": "coproc sleep 60; wait",
    "a command that stops its keeper": "kill -STOP $PPID; sleep 60; touch late",
    "a loop that stops its keeper": "while :; do kill -STOP $PPID; done",
    "no output left": "exec >&- 2>&- <&-; sleep 60; touch late",
    "a process that always forks and leaves": FORKS_AND_LEAVES.replace("SETSID", "pass") + "; sleep 60",
    "one that also makes sessions": FORKS_AND_LEAVES.replace("SETSID", "os.setsid()") + "; sleep 60",
    "twenty of them": f"for each in $(seq 20); do {FORKS_AND_LEAVES.replace('SETSID', 'os.setsid()')} & done; sleep 60",
    "one that forks many": (
        "{python} -c 'import os, time; ends = time.monotonic() + 30; made = 0\n"
        "while time.monotonic() < ends and made < 300:\n"
        " made += 1\n"
        " if os.fork() == 0: os.setsid(); time.sleep(30); os._exit(0)'; sleep 60"
    ),
}


@pytest.fixture
def held(tmp_path: Path) -> Iterator[int]:
    """The reading end of the pipe ``held`` in the workspace."""
    os.mkfifo(tmp_path / "held")
    descriptor = os.open(tmp_path / "held", os.O_RDONLY | os.O_NONBLOCK)
    yield descriptor
    os.close(descriptor)


def nobody_holds(pipe: int) -> bool:
    """Whether no process has a pipe open for writing; one that never stands still long enough to be seen would."""
    try:
        return os.read(pipe, 1) == b""
    except BlockingIOError:
        return False


@pytest.mark.parametrize("session_each", ["pass", "os.setsid()"])
def test_a_job_that_never_stands_still_ends_with_the_session(
    tmp_path: Path, mark: str, held: int, session_each: str
) -> None:
    async def session() -> bool:
        tool = BashTool()
        try:
            job = FORKS_AND_LEAVES.replace("SETSID", session_each)
            await tool.invoke(make_call(f"exec 9>held; {job} & echo x"), make_context(tmp_path))
            return nobody_holds(held)
        finally:
            await tool.close()

    assert not asyncio.run(session())
    assert nobody_holds(held)


@pytest.mark.parametrize("case", STUBBORN)
def test_nothing_is_left_alive_after_a_timeout(tmp_path: Path, mark: str, held: int, case: str) -> None:
    """G11: looked for in the whole system, by a mark that every process carries, and by a pipe that each holds."""
    command = STUBBORN[case].format(mark=mark, python=sys.executable)
    output = run(tmp_path, "exec 9>held; echo begun; " + command, timeout=0.7)
    assert nobody_holds(held)
    assert output.failed
    assert output.text.startswith("begun\n")
    assert output.text.endswith("(timed out after 0.7 s; the command and everything it started were ended)")
    assert marked(mark) == {}
    assert not (tmp_path / "late").exists()


@pytest.mark.parametrize("case", STUBBORN)
def test_nothing_is_left_alive_after_a_cancelled_call(tmp_path: Path, mark: str, held: int, case: str) -> None:
    command = STUBBORN[case].format(mark=mark, python=sys.executable)

    async def cancel_when_begun() -> dict[int, str]:
        begun = asyncio.Event()
        tool = BashTool()
        context = make_context(tmp_path, lambda line: begun.set())
        call = asyncio.create_task(tool.invoke(make_call("exec 9>held; echo begun; " + command), context))
        await begun.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert nobody_holds(held)
        alive = marked(mark)
        await tool.close()
        return alive

    assert asyncio.run(cancel_when_begun()) == {}
    assert marked(mark) == {}
    assert not (tmp_path / "late").exists()


def test_a_cancelled_call_ends_the_whole_tree_and_stays_cancelled(tmp_path: Path) -> None:
    async def cancel_when_ready() -> None:
        ready = asyncio.Event()
        tool = BashTool()
        call = asyncio.create_task(tool.invoke(make_call(FAMILY), make_context(tmp_path, lambda line: ready.set())))
        await ready.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await tool.close()

    asyncio.run(cancel_when_ready())
    pids = read_pids(tmp_path)
    assert len(pids) == 4
    assert wait_until_gone(pids) == []
    assert not (tmp_path / "late").exists()


def test_a_command_that_ends_its_keeper_is_a_failed_answer_and_the_next_call_works(tmp_path: Path, mark: str) -> None:
    async def session() -> list[ToolOutput]:
        tool = BashTool()
        try:
            return [
                await tool.invoke(make_call(command, timeout=30), make_context(tmp_path))
                for command in ("echo so far; setsid sleep 60 & kill -KILL $PPID; sleep 60; touch late", "echo next")
            ]
        finally:
            await tool.close()

    lost, following = asyncio.run(session())
    assert lost.failed
    assert lost.text.startswith("so far\n(bash: the process that keeps commands together was ended from outside")
    assert following.text == "next\n(exit 0)"
    assert still_marked(mark) == {}
    assert not (tmp_path / "late").exists()


def test_calls_side_by_side_do_not_mix(tmp_path: Path, mark: str) -> None:
    async def session() -> list[str]:
        tool = BashTool()
        commands = [f"echo {number}; sleep 0.0{number}; echo {number} >&2; exit {number}" for number in range(1, 9)]
        commands.append("echo nine; setsid sleep 60 & sleep 60")
        try:
            outputs = await asyncio.gather(
                *(tool.invoke(make_call(command, timeout=3), make_context(tmp_path)) for command in commands)
            )
        finally:
            await tool.close()
        return [output.text for output in outputs]

    *texts, ended = asyncio.run(session())
    assert texts == [f"{number}\n{number}\n(exit {number})" for number in range(1, 9)]
    assert ended.startswith("nine\n(timed out after 3 s")
    assert marked(mark) == {}


def open_descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def keeper_of(text: str) -> int:
    return int(text.split("\n")[0])


def test_two_hundred_calls_leave_no_descriptor_and_no_thread_behind(tmp_path: Path, mark: str) -> None:
    every = ["echo x", "seq 20000", "sleep 60 & kill $!", "exit 3", "kill -9 $$", "cat <(echo y)", "echo z >&2"]

    async def calls() -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        tool = BashTool()
        context = make_context(tmp_path)

        async def state() -> tuple[int, int, int]:
            told = await tool.invoke(make_call("echo $PPID"), context)
            # What listing opens itself is the same each time.
            return open_descriptors(os.getpid()), open_descriptors(keeper_of(told.text)), threading.active_count()

        try:
            before = await state()
            for number in range(200):
                await tool.invoke(make_call(every[number % len(every)]), context)
            await tool.invoke(make_call("sleep 60", timeout=0.05), context)
            await tool.invoke(make_call("true"), make_context(tmp_path / "gone"))
            return before, await state()
        finally:
            await tool.close()

    before, after = asyncio.run(calls())
    assert after == before
    assert marked(mark) == {}


def test_a_closed_session_leaves_no_process_and_no_descriptor(tmp_path: Path) -> None:
    before = open_descriptors(os.getpid()), children()
    run(tmp_path, "sleep 60 & echo x")
    assert (open_descriptors(os.getpid()), children()) == before


def children() -> str:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text()


def test_a_command_gets_no_descriptor_of_the_host(tmp_path: Path) -> None:
    import socket
    import sqlite3

    with socket.socket() as listening, open(tmp_path / "open", "w") as file:
        database = sqlite3.connect(tmp_path / "database")
        for descriptor in (listening.fileno(), file.fileno()):
            os.set_inheritable(descriptor, True)
        output = run(tmp_path, "cd /proc/self/fd && for each in *; do readlink $each; done")
        database.close()
    kinds = [line.partition(":")[0] for line in output.text.splitlines()[:-1]]
    assert sorted(kinds) == ["/dev/null", "pipe", "pipe"]


def test_a_command_begins_with_the_systems_own_signal_handling(tmp_path: Path) -> None:
    blocked, ignored = run(tmp_path, "grep -E '^Sig(Blk|Ign)' /proc/self/status").text.split("\n")[:2]
    for line in (blocked, ignored):
        assert int(line.split()[1], 16) & 0x7FFFFFFF == 0
    assert run(tmp_path, "yes | head -n 1; echo ${PIPESTATUS[0]}").text == "y\n141\n(exit 0)"
