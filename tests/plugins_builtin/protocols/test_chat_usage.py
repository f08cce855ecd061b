"""Token figures are found wherever a server puts them, and are never summed (G50)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.types.model import Usage
from plugins_builtin.protocols.chat_usage import UsageTally


def last(*chunks: dict[str, Any]) -> Usage | None:
    tally = UsageTally()
    found = [usage for chunk in chunks if (usage := tally.feed(chunk)) is not None]
    return found[-1] if found else None


FULL = {
    "prompt_tokens": 120,
    "completion_tokens": 41,
    "total_tokens": 161,
    "prompt_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 8},
    "completion_tokens_details": {"reasoning_tokens": 30},
}
EXPECTED = Usage(input=120, output=41, cached=64, cache_write=8, reasoning=30)


@pytest.mark.parametrize(
    "chunks",
    [
        [{"choices": [], "usage": FULL}],
        [{"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": FULL}],
        [{"choices": [{"usage": FULL}]}],
        [{"x_groq": {"usage": FULL}}],
        [{"usage": {"prompt_tokens": 1, "completion_tokens": 1}}, {"usage": FULL}],
        [{"usage": FULL}, {"usage": None}, {"usage": {}}, {}],
        [{"usage": FULL}, {"usage": {"prompt_tokens": None, "prompt_tokens_details": None}}],
    ],
)
def test_the_last_figure_that_is_not_null_counts(chunks: list[dict[str, Any]]) -> None:
    assert last(*chunks) == EXPECTED


@pytest.mark.parametrize(
    ("chunk", "usage"),
    [
        (
            {"usage": {"prompt_tokens": 339, "completion_tokens": 83, "prompt_cache_hit_tokens": 320}},
            Usage(input=339, output=83, cached=320),
        ),
        (
            {"timings": {"cache_n": 100, "prompt_n": 20, "predicted_n": 7}},
            Usage(input=120, output=7, cached=100),
        ),
        ({"usage": {"input_tokens": 5, "output_tokens": 6}}, Usage(input=5, output=6)),
        ({"usage": {"prompt_tokens": 5, "completion_tokens": -1}}, Usage(input=5)),
        (
            {"usage": {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 9}}},
            Usage(input=5, cached=5),
        ),
    ],
)
def test_dialects_of_usage(chunk: dict[str, Any], usage: Usage) -> None:
    assert last(chunk) == usage


@pytest.mark.parametrize(
    "chunk", [{}, {"usage": None}, {"usage": []}, {"usage": {"prompt_tokens": 0, "completion_tokens": 0}}]
)
def test_no_figures_are_said_to_be_none(chunk: dict[str, Any]) -> None:
    assert last(chunk) is None


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([*FULL, "prompt_cache_hit_tokens"]),
        st.none() | st.integers() | st.floats() | st.text(max_size=2) | st.just({"cached_tokens": 7}),
    )
)
def test_no_figures_break_the_invariants(figures: dict[str, Any]) -> None:
    usage = last({"usage": figures})
    if usage is not None:
        assert 0 <= usage.cached + usage.cache_write <= usage.input
        assert 0 <= usage.reasoning <= usage.output
