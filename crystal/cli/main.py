"""The console script. It answers ``--version`` before it imports anything else."""

from __future__ import annotations

import sys

from crystal._version import VERSION


def main() -> None:
    """Run the command line and leave with its exit code."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"crystal {VERSION}\n")
        return
    if sys.platform == "win32":
        sys.exit("crystal: Windows is not supported yet; Linux and macOS are.")
    import gc
    import os

    # Little of what is made while modules load is garbage; collecting it meanwhile costs up to 25 ms.
    gc.set_threshold(100_000, 20, 50)
    from crystal.cli.app import run_command_line

    code = run_command_line(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = code or 5
    # Every file and database is closed; tearing the interpreter down would take 20 ms more.
    os._exit(code)
