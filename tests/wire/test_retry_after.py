"""The wait a provider asks for is read from every place it is written to, and never misread (G29)."""

from __future__ import annotations

from email.utils import formatdate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.wire.retry_after import retry_after

NOW = 1_790_000_000.0
DAY = 86_400.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": formatdate(NOW + 5, usegmt=True)}, 5.0),
        ({"retry-after": formatdate(NOW + 5)}, 5.0),
        ({"retry-after": formatdate(NOW - 60, usegmt=True)}, 0.0),
        ({"retry-after": formatdate(NOW + 10 * DAY, usegmt=True)}, 10 * DAY),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": " 2.5 "}, 2.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "1500", "retry-after": "3"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "3"}, 3.0),
    ],
)
def test_headers_are_read_in_their_order(headers: dict[str, str], seconds: float) -> None:
    assert retry_after(headers, NOW) == seconds


@pytest.mark.parametrize("value", ["", "soon", "nan", "inf", "-5", "-1e400", "Sun, 99 Foo 2026", "\x00", "1e999"])
@pytest.mark.parametrize("header", ["retry-after", "retry-after-ms"])
def test_odd_values_leave_the_wait_to_us(header: str, value: str) -> None:
    assert retry_after({header: value}, NOW) is None


@settings(max_examples=100, deadline=None)
@given(st.text(), st.text())
def test_no_header_makes_a_negative_or_endless_wait(first: str, second: str) -> None:
    wait = retry_after({"retry-after-ms": first, "retry-after": second}, NOW)
    assert wait is None or 0 <= wait < float("inf")


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Rate limit reached. Please try again in 41.7s. Visit ...", 41.7),
        ("Please try again in 120ms.", 0.12),
        ("Try again in 6m0s", 360.0),
        ("try again in 1h2m3s", 3723.0),
        ("try again in 20 seconds", 20.0),
        ("try again later", None),
    ],
)
def test_the_message_is_read_when_the_headers_say_nothing(message: str, seconds: float | None) -> None:
    assert retry_after({}, NOW, message=message) == (None if seconds is None else pytest.approx(seconds))
    assert retry_after({"retry-after": "1"}, NOW, message=message) == 1.0


def test_the_delay_of_an_error_body_is_read() -> None:
    body = {"error": {"details": [{"@type": "x"}, {"retryDelay": "34.4s"}]}}
    assert retry_after({}, NOW, body, "try again in 1s") == 34.4
    assert retry_after({}, NOW, {"error": {"details": [{"retryDelay": "soon"}]}}) is None
