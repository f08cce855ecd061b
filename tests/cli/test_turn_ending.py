"""Which exit code a turn ends with."""

from __future__ import annotations

import pytest

from crystal.cli.exit_codes import ExitCode
from crystal.cli.turn_ending import exit_code_of
from crystal.types.events import TurnFinished
from crystal.types.session import StopReason

CODES = {
    StopReason.DONE: 0,
    StopReason.MODEL_FAILED: 2,
    StopReason.FILTERED: 2,
    StopReason.REFUSED: 2,
    StopReason.REFUSED: 2,
    StopReason.OUTPUT_LIMIT: 3,
    StopReason.ROUND_BUDGET: 3,
    StopReason.CALL_BUDGET: 3,
    StopReason.DURATION_BUDGET: 3,
    StopReason.TOKEN_BUDGET: 3,
    StopReason.CONTEXT_OVERFLOW: 3,
    StopReason.REPEATED_CALL: 3,
    StopReason.INTERRUPTED: 5,
}


def finished(reason: StopReason, denied: int = 0) -> TurnFinished:
    return TurnFinished(stop_reason=reason, detail="", model_calls=1, tool_calls=1, denied=denied)


@pytest.mark.parametrize("reason", list(StopReason))
def test_every_reason_to_stop_has_its_documented_code(reason: StopReason) -> None:
    assert exit_code_of(finished(reason)) == CODES[reason]


@pytest.mark.parametrize("reason", list(StopReason))
def test_a_denial_shows_only_when_nothing_worse_happened(reason: StopReason) -> None:
    expected = 4 if reason is StopReason.DONE else CODES[reason]
    assert exit_code_of(finished(reason, denied=1)) == expected


def test_the_numbers_are_fixed() -> None:
    assert {code.name: int(code) for code in ExitCode} == {
        "DONE": 0,
        "INVALID": 1,
        "MODEL_FAILED": 2,
        "BUDGET": 3,
        "DENIED": 4,
        "INTERRUPTED": 5,
    }
