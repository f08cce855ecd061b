"""Values of options: durations and counts."""

from __future__ import annotations

import re

import click

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)")
UNLIMITED = "unlimited"


def duration(value: str | float) -> float:
    """Return seconds for a number, or for ``90s``, ``10m``, ``2h``, ``7d``; infinity for ``unlimited``.

    :raises click.BadParameter: for anything else.
    """
    if isinstance(value, float):
        return value
    if value == UNLIMITED:
        return float("inf")
    match = _DURATION.fullmatch(value)
    if match is None or float(match[1]) == 0:
        raise click.BadParameter(f"{value!r} is not a duration; give seconds, or 90s, 10m, 2h, 7d, or unlimited.")
    return float(match[1]) * _UNITS[match[2]]


def count(value: str | int) -> int:
    """Return a whole number, 0 or more; -1 for ``unlimited``.

    :raises click.BadParameter: for anything else.
    """
    if isinstance(value, int):
        return value
    if value == UNLIMITED:
        return -1
    if not value.isascii() or not value.isdecimal():
        raise click.BadParameter(f"{value!r} is not a count; give a whole number or unlimited.")
    return int(value)


def unlimited_as_none(number: int) -> int | None:
    """Return ``None`` for the count that means unlimited."""
    return None if number < 0 else number
