"""Which exit code a turn ends with."""

from __future__ import annotations

from crystal.cli.exit_codes import ExitCode
from crystal.types.events import TurnFinished
from crystal.types.session import StopReason

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
