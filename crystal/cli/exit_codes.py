"""The exit codes of the command line."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a finished process says; documented in docs/cli.md."""

    DONE = 0
    INVALID = 1
    """Invalid command, configuration, credentials, workspace or script."""
    MODEL_FAILED = 2
    BUDGET = 3
    """A budget, the context window or a repeated call ended the turn."""
    DENIED = 4
    """Done, but a prompt was denied or a question dismissed."""
    INTERRUPTED = 5
