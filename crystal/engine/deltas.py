"""What a model client may yield. A plugin's client may yield anything, and what is taken in is stored and sent on."""

from __future__ import annotations

import json

from crystal.types.model import (
    CallDelta,
    FinishDelta,
    FinishReason,
    ModelDelta,
    NoticeDelta,
    ReasoningDelta,
    TextDelta,
    Usage,
    UsageDelta,
)


class DeltaRefused(ValueError):
    """A client yielded what is no delta; the message says what, and never quotes it."""


_TEXTS: dict[type, tuple[str, ...]] = {
    TextDelta: ("text",),
    ReasoningDelta: ("text",),
    NoticeDelta: ("text",),
    CallDelta: ("key", "call_id", "name", "arguments"),
    FinishDelta: ("raw",),
    UsageDelta: (),
}
_FIGURES = ("input", "output", "cached", "cache_write", "reasoning")
MOST_TOKENS = 2**53
"""No response has more; a larger figure is a fault, and cannot be stored or sent as JSON."""


def check_delta(delta: ModelDelta) -> None:
    """Look at what a client yielded.

    :raises DeltaRefused: when it holds something else than it declares.
    """
    kind = type(delta)
    if kind not in _TEXTS:
        raise DeltaRefused(f"it yielded {kind.__name__}, which is no delta")
    for name in _TEXTS[kind]:
        if type(getattr(delta, name)) is not str:
            raise DeltaRefused(f"it yielded {kind.__name__} with {type(getattr(delta, name)).__name__} as {name}")
    if isinstance(delta, FinishDelta) and not isinstance(delta.reason, FinishReason):
        raise DeltaRefused(f"it yielded FinishDelta with {type(delta.reason).__name__} as reason")
    if isinstance(delta, UsageDelta):
        _check_usage(delta.usage)
    if isinstance(delta, (ReasoningDelta, CallDelta)) and delta.state is not None:
        try:
            json.dumps(delta.state)
        except (TypeError, ValueError, RecursionError) as error:
            raise DeltaRefused(f"it yielded {kind.__name__} with a state that JSON cannot hold") from error


def _check_usage(usage: Usage) -> None:
    if not isinstance(usage, Usage):
        raise DeltaRefused(f"it yielded UsageDelta with {type(usage).__name__} as usage")
    for name in _FIGURES:
        figure = getattr(usage, name)
        if type(figure) is not int or not 0 <= figure <= MOST_TOKENS:
            raise DeltaRefused(f"it yielded {name} tokens that are no count")
