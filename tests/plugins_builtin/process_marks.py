"""Finds the processes of a test in the whole system, by a mark in their environment or their arguments."""

from __future__ import annotations

import os
import select
from pathlib import Path

MARK = "CRYSTAL_TEST_MARK"
"""The variable whose value marks every process that inherits it."""


def marked(mark: str) -> dict[int, str]:
    """Return process ids and arguments of all live processes with the mark, keepers left out."""
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            arguments = (folder / "cmdline").read_bytes()
            environment = (folder / "environ").read_bytes()
            state = (folder / "stat").read_bytes().rpartition(b")")[2].split()[0]
        except OSError:
            continue
        if state in (b"Z", b"X") or b"keeper_process" in arguments:
            continue
        if mark.encode() in arguments or mark.encode() in environment:
            found[int(folder.name)] = arguments.replace(b"\0", b" ").decode("utf-8", "replace")
    return found


def still_marked(mark: str) -> dict[int, str]:
    """Return what :func:`marked` finds once each of them was given ten seconds to end by itself."""
    wait_until_gone(list(marked(mark)))
    return marked(mark)


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
