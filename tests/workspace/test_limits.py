"""Cutting a long output: head and tail stay, the cut is said, the limit holds."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.workspace.limits import OUTPUT_CHARACTERS, truncate_output


def test_a_text_within_the_limit_is_left_alone() -> None:
    assert truncate_output("x" * OUTPUT_CHARACTERS) == "x" * OUTPUT_CHARACTERS


def test_a_long_text_keeps_its_head_and_tail_and_says_how_much_is_missing() -> None:
    text = "".join(chr(0x4E00 + index % 5000) for index in range(250_000))
    cut = truncate_output(text, 1_000)
    head, missing, tail = re.split(r"\n<… (\d+) characters left out …>\n", cut)
    assert len(cut) <= 1_000
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + int(missing) + len(tail) == len(text)
    assert abs(len(head) - len(tail)) <= 1


@pytest.mark.parametrize("limit", [0, 1, 10, 30])
def test_a_limit_too_small_for_the_sentence_still_holds(limit: int) -> None:
    assert truncate_output("y" * 100, limit) == "y" * limit


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=300), st.integers(0, 300))
def test_the_limit_always_holds(text: str, limit: int) -> None:
    cut = truncate_output(text, limit)
    assert len(cut) <= limit or cut == text
    assert cut == text or len(text) > limit
