"""The exit codes of the command line, and which one a turn ends with."""

from __future__ import annotations

from enum import IntEnum

from crystal.types.events import TurnFinished
from crystal.types.session import StopReason


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


_BY_REASON = {
    StopReason.DONE: ExitCode.DONE,
    StopReason.MODEL_FAILED: ExitCode.MODEL_FAILED,
    StopReason.FILTERED: ExitCode.MODEL_FAILED,
    StopReason.REFUSED: ExitCode.MODEL_FAILED,
    StopReason.OUTPUT_LIMIT: ExitCode.BUDGET,
    StopReason.ROUND_BUDGET: ExitCode.BUDGET,
    StopReason.CALL_BUDGET: ExitCode.BUDGET,
    StopReason.DURATION_BUDGET: ExitCode.BUDGET,
    StopReason.TOKEN_BUDGET: ExitCode.BUDGET,
    StopReason.CONTEXT_OVERFLOW: ExitCode.BUDGET,
    StopReason.REPEATED_CALL: ExitCode.BUDGET,
    StopReason.INTERRUPTED: ExitCode.INTERRUPTED,
}


def exit_code_of(finished: TurnFinished) -> ExitCode:
    """Return the exit code of a turn: a failure, budget or interrupt outranks a denial."""
    code = _BY_REASON[finished.stop_reason]
    return ExitCode.DENIED if code is ExitCode.DONE and finished.denied else code
