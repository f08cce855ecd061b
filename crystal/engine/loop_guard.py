"""The loop guard: a model that repeats one call and gets one result again and again is warned, then stopped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

WARN_AT = 3
STOP_AT = 5
WARNING = (
    "\n\n[This is the third time running that the same call gave the same result. "
    "Do something else: the turn ends at the fifth.]"
)


class LoopGuard:
    """Counts how often the same call with the same arguments gave the same result, running."""

    def __init__(self) -> None:
        self._last: tuple[str, str, str] | None = None
        self.count = 0

    def add(self, name: str, arguments: Mapping[str, Any] | str, result: str) -> int:
        """Take one finished call and return how many equal ones stand in a row, this one included."""
        seen = (name, _canonical(arguments), result)
        self.count = self.count + 1 if seen == self._last else 1
        self._last = seen
        return self.count


def _canonical(arguments: Mapping[str, Any] | str) -> str:
    """Return the arguments in one spelling; text that is no JSON stands for itself."""
    try:
        return json.dumps(json.loads(arguments) if isinstance(arguments, str) else arguments, sort_keys=True)
    except (ValueError, RecursionError):
        return str(arguments)
