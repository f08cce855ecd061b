"""What stands on the standard input of a program, and what becomes of one that does not want it."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from crystal.workspace.programs.keepers import Keepers, ProcessEnd

BASH = shutil.which("bash")
assert BASH is not None


def run(command: str, stdin: bytes, folder: Path, seconds: float = 60) -> tuple[ProcessEnd, bytes]:
    """Run a command of bash with an input; return how it ended and what it printed."""
    printed = bytearray()

    async def once() -> ProcessEnd:
        keepers = Keepers()
        try:
            return await keepers.run(
                [os.fsencode(str(BASH)), b"-c", command.encode()],
                workspace=folder,
                environment=[b"PATH=" + os.fsencode(os.environ["PATH"])],
                seconds=seconds,
                on_stdout=printed.extend,
                on_stderr=printed.extend,
                stdin=stdin,
            )
        finally:
            await keepers.close()

    return asyncio.run(once()), bytes(printed)


@pytest.mark.parametrize("size", [1, 4_096, 65_536, 65_537, 3_000_000])
def test_all_of_it_arrives_and_then_the_end(tmp_path: Path, size: int) -> None:
    data = os.urandom(size)
    end, printed = run("cat", data, tmp_path)
    assert (end, printed) == (ProcessEnd(0, False), data)


def test_none_is_an_end_at_once(tmp_path: Path) -> None:
    assert run("cat; read x; echo $?", b"", tmp_path) == (ProcessEnd(0, False), b"1\n")


@pytest.mark.parametrize("status", [0, 3])
@pytest.mark.parametrize("command", ["exit STATUS", "exec 0<&-; exit STATUS", "head -c 10 > /dev/null; exit STATUS"])
def test_a_program_that_ends_without_reading_keeps_its_status(tmp_path: Path, command: str, status: int) -> None:
    end, _ = run(command.replace("STATUS", str(status)), b"x" * 1_000_000, tmp_path)
    assert end == ProcessEnd(status, False)


def test_a_program_that_closes_it_unread_and_goes_on_is_ended_with_everything_it_started(tmp_path: Path) -> None:
    end, printed = run("exec 0<&-; sleep 600 & echo $!; sleep 600", b"x" * 1_000_000, tmp_path)
    assert end.input_refused
    assert not end.timed_out
    assert not Path(f"/proc/{int(printed)}").exists()


def test_a_short_input_that_nobody_reads_refuses_nothing(tmp_path: Path) -> None:
    assert run("exec 0<&-; sleep 1.5; echo done", b"{}", tmp_path) == (ProcessEnd(0, False), b"done\n")


def test_a_limit_ends_a_program_that_does_not_read(tmp_path: Path) -> None:
    end, _ = run("sleep 600", b"x" * 1_000_000, tmp_path, seconds=0.5)
    assert end.timed_out


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    before = os.listdir("/dev/fd")
    for command in ("cat", "exit 3", "exec 0<&-; sleep 600"):
        run(command, b"x" * 1_000_000, tmp_path)
    assert os.listdir("/dev/fd") == before
