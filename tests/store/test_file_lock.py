from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from crystal.store.file_lock import LockHeld, take_lock
from crystal.store.home import Home

HOLDER = (
    "import sys; from pathlib import Path; from crystal.store.home import Home;"
    "from crystal.store.file_lock import take_lock;"
    "lock = take_lock(Home(root=Path(sys.argv[1])), 'thing', wait=False); print('held', flush=True); sys.stdin.read()"
)


def holder(home: Home) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(home.root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


def end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_a_second_holder_is_refused_with_the_first_ones_process(home: Home) -> None:
    process = holder(home)
    try:
        with pytest.raises(LockHeld) as raised:
            take_lock(home, "thing", wait=False)
        assert raised.value.process == process.pid
        take_lock(home, "other thing", wait=False).release()
    finally:
        end(process)


def test_a_killed_holder_holds_nothing(home: Home) -> None:
    end(holder(home))
    with take_lock(home, "thing", wait=False), pytest.raises(LockHeld) as raised:
        take_lock(home, "thing", wait=False)
    assert raised.value.process == os.getpid()


def test_a_released_lock_leaves_no_file_and_is_free(home: Home) -> None:
    lock = take_lock(home, "thing", wait=False)
    lock.release()
    lock.release()
    assert os.listdir(home.locks) == []
    take_lock(home, "thing", wait=True).release()


def test_a_lock_on_a_removed_file_is_not_taken_for_one(home: Home) -> None:
    first = take_lock(home, "thing", wait=False)
    (home.locks / "thing.lock").unlink()
    second = take_lock(home, "thing", wait=False)
    with pytest.raises(LockHeld):
        take_lock(home, "thing", wait=False)
    second.release()
    first.release()
