"""Ids of sessions, items and calls. The one place that makes random names."""

from __future__ import annotations

import os
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def _encode(number: int, length: int) -> str:
    letters = []
    for _ in range(length):
        number, rest = divmod(number, 32)
        letters.append(_ALPHABET[rest])
    return "".join(reversed(letters))


def new_session_id(now: float) -> str:
    """Return a session id that sorts by time: nine letters of milliseconds, seven of chance."""
    return _encode(int(now * 1000), 9) + _encode(int.from_bytes(os.urandom(5)) >> 5, 7)


class ItemIds:
    """Makes ids that are unique in a session, also over several processes one after another."""

    def __init__(self) -> None:
        self._prefix = _encode(time.time_ns() // 1000, 10)
        self._count = 0

    def new(self, kind: str) -> str:
        """Return a new id, such as ``call_01hzx3k9ab_3``."""
        self._count += 1
        return f"{kind}_{self._prefix}_{self._count}"
