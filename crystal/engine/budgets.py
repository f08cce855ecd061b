"""Budgets of one turn: limits, what was spent, and which one stops it."""

from __future__ import annotations

from crystal.types._frozen import Frozen
from crystal.types.model import Usage
from crystal.types.session import StopReason

DAY = 86_400.0


class Budgets(Frozen):
    """Limits of a turn; ``None`` removes one.

    :param model_calls: rounds.
    :param tool_calls: calls, child calls included; 0 allows none.
    :param duration: seconds.
    :param tokens: input and output tokens together.
    """

    model_calls: int | None = 1024
    tool_calls: int | None = 8192
    duration: float | None = 7 * DAY
    tokens: int | None = None


class Spent:
    """What one turn has used so far."""

    def __init__(self) -> None:
        self.model_calls = 0
        self.tool_calls = 0
        self.denied = 0
        self.usage = Usage()


def exhausted_before_round(budgets: Budgets, spent: Spent) -> StopReason | None:
    """Return the budget that forbids one more model call."""
    if budgets.model_calls is not None and spent.model_calls >= budgets.model_calls:
        return StopReason.ROUND_BUDGET
    if budgets.tokens is not None and spent.usage.total >= budgets.tokens:
        return StopReason.TOKEN_BUDGET
    return None


def calls_left(budgets: Budgets, spent: Spent) -> bool:
    """Whether one more tool call may run."""
    return budgets.tool_calls is None or spent.tool_calls < budgets.tool_calls


def budget_sentence(reason: StopReason, budgets: Budgets) -> str:
    """Say which budget stopped the turn and how to raise it."""
    match reason:
        case StopReason.ROUND_BUDGET:
            return f"The turn used its budget of {budgets.model_calls} model calls (--model-calls raises it)."
        case StopReason.CALL_BUDGET:
            return f"The turn used its budget of {budgets.tool_calls} tool calls (--tool-calls raises it)."
        case StopReason.DURATION_BUDGET:
            return f"The turn used its budget of {budgets.duration:g} seconds (--duration raises it)."
        case StopReason.TOKEN_BUDGET:
            return f"The turn used its budget of {budgets.tokens} tokens (--token-budget raises it)."
        case _:
            raise ValueError(f"{reason} is not a budget")
