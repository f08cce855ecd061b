"""Run as a program: one scripted task that ends this process with SIGKILL at its N-th event.

Arguments: N, home, workspace, script. Without reaching N events the process exits normally with the run's exit code.
"""

from __future__ import annotations

import asyncio
import dataclasses
import io
import os
import signal
import sys

from crystal.cli.run import parse_run
from crystal.cli.task import run_task
from crystal.types.events import Event


def main() -> None:
    number, home, workspace, script = int(sys.argv[1]), *sys.argv[2:5]
    seen = 0

    def kill_at(event: Event) -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            os.kill(os.getpid(), signal.SIGKILL)

    arguments = ["do it", "--home", home, "-w", workspace, "--script", script, "--approval", "full"]
    request = parse_run(arguments, io.StringIO(), sys.stderr, os.environ)
    ended = asyncio.run(run_task(dataclasses.replace(request, listeners=(kill_at,))))
    sys.stdout.write(f"{seen}\n")
    sys.exit(ended.exit_code)


main()
