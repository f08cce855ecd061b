"""Whether and when a failed round is tried again."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.engine.retry import RetryDecision, decide_retry
from crystal.types.model import ModelError, ModelErrorKind

PASSING = (
    ModelErrorKind.RATE,
    ModelErrorKind.SERVER,
    ModelErrorKind.NETWORK,
    ModelErrorKind.TIMEOUT,
    ModelErrorKind.INCOMPLETE,
)
LASTING = (
    ModelErrorKind.AUTH,
    ModelErrorKind.QUOTA,
    ModelErrorKind.OVERFLOW,
    ModelErrorKind.INVALID,
    ModelErrorKind.SCRIPT,
)
GIVE_UP = RetryDecision(wait=None)


def failure(kind: ModelErrorKind = ModelErrorKind.SERVER, retry_after: float | None = None) -> ModelError:
    return ModelError(kind, "said the provider", retry_after=retry_after)


def test_every_kind_of_error_has_its_rule_here() -> None:
    assert {*PASSING, *LASTING, ModelErrorKind.NOT_FOUND} == set(ModelErrorKind)


@pytest.mark.parametrize("kind", PASSING)
def test_a_passing_fault_is_tried_again_five_times_and_no_more(kind: ModelErrorKind) -> None:
    for failed in range(1, 6):
        assert decide_retry([failure(kind)] * failed, 0.5).wait is not None
    assert decide_retry([failure(kind)] * 6, 0.5) == GIVE_UP


@pytest.mark.parametrize("kind", LASTING)
@pytest.mark.parametrize("retry_after", [None, 1.0])
def test_a_lasting_fault_is_never_tried_again(kind: ModelErrorKind, retry_after: float | None) -> None:
    assert decide_retry([failure(kind, retry_after)], 0.5) == GIVE_UP


def test_a_missing_model_is_tried_again_once_in_a_round() -> None:
    missing = failure(ModelErrorKind.NOT_FOUND)
    assert decide_retry([missing], 0.5) == RetryDecision(wait=2.0)
    assert decide_retry([missing, missing], 0.5) == GIVE_UP
    assert decide_retry([missing, failure(), missing], 0.5) == GIVE_UP
    assert decide_retry([missing, failure()], 0.5) == RetryDecision(wait=4.0)


@pytest.mark.parametrize(("failed", "wait"), [(1, 2.0), (2, 4.0), (3, 8.0), (4, 16.0), (5, 30.0)])
def test_the_wait_doubles_from_two_seconds_up_to_thirty(failed: int, wait: float) -> None:
    assert decide_retry([failure()] * failed, 0.5).wait == wait


@given(
    kinds=st.lists(st.sampled_from(PASSING), min_size=1, max_size=5),
    chance=st.floats(min_value=0, max_value=1, exclude_max=True),
)
@settings(max_examples=100, deadline=None)
def test_jitter_stays_within_a_quarter_and_under_the_cap(kinds: list[ModelErrorKind], chance: float) -> None:
    middle = min(2.0 * 2 ** (len(kinds) - 1), 30.0)
    wait = decide_retry([failure(kind) for kind in kinds], chance).wait
    assert wait is not None
    assert 0.75 * middle <= wait <= min(1.25 * middle, 30.0)


def test_the_jitter_reaches_both_sides() -> None:
    assert decide_retry([failure()], 0.0).wait == 1.5
    assert decide_retry([failure()], 0.999).wait == pytest.approx(2.5, abs=0.01)


@pytest.mark.parametrize("asked", [0.0, 1.5, 3.0, 5.0, 120.0])
@pytest.mark.parametrize("failed", [1, 5])
def test_what_the_provider_asks_for_wins_over_our_own_wait(asked: float, failed: int) -> None:
    earlier = [failure()] * (failed - 1)
    assert decide_retry([*earlier, failure(ModelErrorKind.RATE, asked)], 0.9) == RetryDecision(wait=asked)


def test_what_an_earlier_failure_asked_for_is_past() -> None:
    assert decide_retry([failure(retry_after=50.0), failure()], 0.5).wait == 4.0


@pytest.mark.parametrize("asked", [120.1, 864_000.0])
def test_more_than_two_minutes_is_not_waited_but_told(asked: float) -> None:
    assert decide_retry([failure(ModelErrorKind.RATE, asked)], 0.5) == RetryDecision(wait=None, retry_after=asked)


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf, -1.0])
def test_an_odd_wait_falls_back_to_our_own(odd: float) -> None:
    assert decide_retry([failure(ModelErrorKind.RATE, odd)], 0.5) == RetryDecision(wait=2.0)


def test_asking_for_a_wait_does_not_buy_a_sixth_retry() -> None:
    assert decide_retry([failure(ModelErrorKind.RATE, 1.0)] * 6, 0.5) == GIVE_UP
