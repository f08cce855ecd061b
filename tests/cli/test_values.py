"""Durations and counts of the command line."""

from __future__ import annotations

import math

import click
import pytest

from crystal.cli.values import count, duration, unlimited_as_none


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90.0),
        ("90s", 90.0),
        ("1.5", 1.5),
        ("0.5s", 0.5),
        ("10m", 600.0),
        ("2h", 7200.0),
        ("7d", 604_800.0),
        ("unlimited", math.inf),
    ],
)
def test_a_duration_is_seconds_or_has_a_unit(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "0", "0s", "-1", "10 m", "10M", "1h30m", "1e3", "inf", "nan", "ten", "s", "10w", "1,5", "1.", "."]
)
def test_anything_else_is_no_duration_and_the_message_says_what_is(text: str) -> None:
    with pytest.raises(click.BadParameter, match="90s, 10m, 2h, 7d, or unlimited"):
        duration(text)


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("1", 1), ("1024", 1024), ("unlimited", None)])
def test_a_count_is_a_whole_number_or_unlimited(text: str, number: int | None) -> None:
    assert unlimited_as_none(count(text)) == number


@pytest.mark.parametrize("text", ["", "-1", "1.5", "1e3", "many", "0x10", "1_000", " 1", "٣", "²"])
def test_anything_else_is_no_count_and_the_message_says_what_is(text: str) -> None:
    with pytest.raises(click.BadParameter, match="whole number or unlimited"):
        count(text)


def test_defaults_pass_through() -> None:
    assert duration(90.0) == 90.0
    assert count(5) == 5
