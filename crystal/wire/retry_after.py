"""How long a provider asks us to wait. Pure: the time of day is an argument."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

_TRY_AGAIN = re.compile(r"try again in\s+((?:\d+(?:\.\d+)?\s*(?:ms|h|m|s)[a-z]*\s*)+)", re.IGNORECASE)
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|h|m|s)", re.IGNORECASE)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def retry_after(headers: Mapping[str, str], now: float, body: Any = None, message: str = "") -> float | None:
    """Return the seconds to wait, or ``None`` when nothing usable was said.

    The order is ``retry-after-ms``, ``retry-after`` in seconds, ``retry-after`` as an HTTP date (a past one
    means 0), the ``retryDelay`` of an error body, ``try again in`` of its message. Odd values (not finite,
    negative, no date) count as absent.

    :param headers: response headers with lower-case names.
    :param now: seconds since the epoch.
    :param body: the parsed error body.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after", "").strip()
    if text:
        seconds = _number(text)
        return seconds if seconds is not None else _until_date(text, now)
    delay = _retry_delay(body)
    return delay if delay is not None else _try_again_in(message)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _until_date(text: str, now: float) -> float | None:
    from datetime import UTC
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, moment.timestamp() - now)
    except (ValueError, OverflowError):
        return None


def _retry_delay(body: Any) -> float | None:
    """Find ``error.details[].retryDelay``, such as ``"34.4s"``."""
    error = body.get("error") if isinstance(body, dict) else None
    details = error.get("details") if isinstance(error, dict) else None
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str):
            return _number(delay.removesuffix("s"))
    return None


def _try_again_in(message: str) -> float | None:
    found = _TRY_AGAIN.search(message)
    if found is None:
        return None
    return sum(float(number) * _SECONDS[unit.lower()] for number, unit in _DURATION_PART.findall(found.group(1)))
