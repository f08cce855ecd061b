"""The console script. It answers ``--version`` before it imports anything else."""

from __future__ import annotations

import sys

from crystal._version import VERSION

INTERRUPTED = 5
"""The exit code of an interrupt; written here, since the module of exit codes costs time to import."""


def main() -> None:
    """Run the command line and leave with its exit code."""
    if sys.argv[1:] == ["--version"]:
        _print_version()
        return
    if sys.platform == "win32":
        sys.exit("crystal: Windows is not supported yet; Linux and macOS are.")
    import gc
    import os
    import signal

    for number in (signal.SIGINT, signal.SIGTERM):
        # Nothing is open yet that would have to be saved; a run puts handlers of its own in their place.
        signal.signal(number, lambda *_: os._exit(INTERRUPTED))
    # Little of what is made while modules load is garbage; collecting it meanwhile costs up to 25 ms.
    gc.set_threshold(100_000, 20, 50)
    from crystal.cli.app import run_command_line

    code = run_command_line(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = code or INTERRUPTED
    # Every file and database is closed; tearing the interpreter down would take 20 ms more.
    os._exit(code)


def _print_version() -> None:
    if sys.stdout is None:  # it was closed before the start
        return
    try:
        sys.stdout.write(f"crystal {VERSION}\n")
        sys.stdout.flush()
    except OSError:
        import os

        os._exit(INTERRUPTED)
