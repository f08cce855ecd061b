"""Ids of sessions, items and calls."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.engine.ids import ItemIds, new_session_id

LATEST = 4_000_000_000.0
"""A moment of the year 2096, in seconds."""


@given(st.integers(min_value=0, max_value=int(LATEST * 1000) - 1), st.integers(min_value=1, max_value=10**9))
@settings(max_examples=100, deadline=None)
def test_session_ids_sort_by_time(moment: int, later: int) -> None:
    assert new_session_id(moment / 1000) < new_session_id((moment + later + 1) / 1000)


@given(st.floats(min_value=0, max_value=LATEST))
@settings(max_examples=100, deadline=None)
def test_a_session_id_is_sixteen_letters_that_need_no_quoting(now: float) -> None:
    assert re.fullmatch(r"[0-9a-hjkmnp-tv-z]{16}", new_session_id(now))


def test_session_ids_of_one_moment_differ() -> None:
    assert len({new_session_id(1_700_000_000.0) for _ in range(200)}) == 200


def test_item_ids_carry_their_kind_and_never_repeat() -> None:
    ids = ItemIds()
    made = [ids.new(kind) for kind in ("item", "call", "item", "request")]
    assert [name.partition("_")[0] for name in made] == ["item", "call", "item", "request"]
    assert len(set(made)) == 4


def test_a_later_process_makes_other_ids() -> None:
    made = [{ids.new("item") for _ in range(20)} for ids in (ItemIds(), ItemIds())]
    assert made[0].isdisjoint(made[1])
