"""Budgets of one turn."""

from __future__ import annotations

import pytest

from crystal.engine.budgets import Budgets, Spent, budget_sentence, calls_left, exhausted_before_round
from crystal.types.model import Usage
from crystal.types.session import StopReason


def spent(model_calls: int = 0, tool_calls: int = 0, tokens: int = 0) -> Spent:
    so_far = Spent()
    so_far.model_calls = model_calls
    so_far.tool_calls = tool_calls
    so_far.usage += Usage(input=tokens // 2, output=tokens - tokens // 2)
    return so_far


def test_the_defaults_are_1024_rounds_8192_calls_seven_days_and_any_tokens() -> None:
    assert Budgets() == Budgets(model_calls=1024, tool_calls=8192, duration=7 * 24 * 3600.0, tokens=None)


@pytest.mark.parametrize(
    ("budgets", "so_far", "reason"),
    [
        (Budgets(model_calls=2), spent(model_calls=1), None),
        (Budgets(model_calls=2), spent(model_calls=2), StopReason.ROUND_BUDGET),
        (Budgets(model_calls=0), spent(), StopReason.ROUND_BUDGET),
        (Budgets(model_calls=None), spent(model_calls=10**9), None),
        (Budgets(tokens=100), spent(tokens=99), None),
        (Budgets(tokens=100), spent(tokens=100), StopReason.TOKEN_BUDGET),
        (Budgets(tokens=None), spent(tokens=10**12), None),
        (Budgets(model_calls=1, tokens=1), spent(model_calls=1, tokens=1), StopReason.ROUND_BUDGET),
        (Budgets(tool_calls=0), spent(tool_calls=9), None),
    ],
)
def test_a_reached_budget_forbids_one_more_round(budgets: Budgets, so_far: Spent, reason: StopReason | None) -> None:
    assert exhausted_before_round(budgets, so_far) is reason


@pytest.mark.parametrize(("limit", "used", "left"), [(2, 1, True), (2, 2, False), (0, 0, False), (None, 10**9, True)])
def test_tool_calls_are_left_until_the_limit(limit: int | None, used: int, left: bool) -> None:
    assert calls_left(Budgets(tool_calls=limit), spent(tool_calls=used)) is left


@pytest.mark.parametrize(
    ("reason", "budgets", "figure", "option"),
    [
        (StopReason.ROUND_BUDGET, Budgets(model_calls=7), "7 model calls", "--model-calls"),
        (StopReason.CALL_BUDGET, Budgets(tool_calls=0), "0 tool calls", "--tool-calls"),
        (StopReason.DURATION_BUDGET, Budgets(duration=90.0), "90 seconds", "--duration"),
        (StopReason.TOKEN_BUDGET, Budgets(tokens=5000), "5000 tokens", "--token-budget"),
    ],
)
def test_the_sentence_names_the_figure_and_the_option(
    reason: StopReason, budgets: Budgets, figure: str, option: str
) -> None:
    sentence = budget_sentence(reason, budgets)
    assert figure in sentence
    assert option in sentence


def test_only_budgets_have_a_sentence() -> None:
    with pytest.raises(ValueError, match="not a budget"):
        budget_sentence(StopReason.DONE, Budgets())
