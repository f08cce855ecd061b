"""Whether and when a failed round is tried again: a decision on data, no clock and no waiting."""

from __future__ import annotations

import math
from collections.abc import Sequence

from crystal.types._frozen import Frozen
from crystal.types.model import ModelError, ModelErrorKind

RETRIES = 5
FIRST_WAIT = 2.0
LONGEST_WAIT = 30.0
JITTER = 0.25
LONGEST_ASKED_WAIT = 120.0
"""Seconds; a provider that asks for more is not waited for."""

_PASSING = frozenset(
    (
        ModelErrorKind.RATE,
        ModelErrorKind.SERVER,
        ModelErrorKind.NETWORK,
        ModelErrorKind.TIMEOUT,
        ModelErrorKind.INCOMPLETE,
    )
)


class RetryDecision(Frozen):
    """What to do after a failed attempt.

    :param wait: seconds until the next attempt, or ``None`` to give up.
    :param retry_after: seconds after which the provider wants to be asked again, when that was too long to wait.
    """

    wait: float | None
    retry_after: float | None = None


def decide_retry(failures: Sequence[ModelError], chance: float) -> RetryDecision:
    """Decide after the last of ``failures``, all of one round.

    :param chance: a random number in [0, 1), for the jitter of ±25 %.
    """
    error = failures[-1]
    if error.kind is ModelErrorKind.NOT_FOUND:
        allowed = sum(failure.kind is ModelErrorKind.NOT_FOUND for failure in failures) <= 1
    else:
        allowed = error.kind in _PASSING
    if not allowed or len(failures) > RETRIES:
        return RetryDecision(wait=None)
    asked = error.retry_after
    if asked is not None and math.isfinite(asked) and asked >= 0:
        if asked > LONGEST_ASKED_WAIT:
            return RetryDecision(wait=None, retry_after=asked)
        return RetryDecision(wait=asked)
    backoff = min(FIRST_WAIT * 2 ** (len(failures) - 1), LONGEST_WAIT)
    return RetryDecision(wait=min(backoff * (1 - JITTER + 2 * JITTER * chance), LONGEST_WAIT))
