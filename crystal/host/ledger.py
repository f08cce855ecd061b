"""The record of hook calls: who ran, how often, how long, and what came of it. Views of it are made elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator


class HookRecord:
    """Figures of one implementation of one hook. ``seconds`` is wall time, waiting of coroutines included."""

    __slots__ = ("calls", "changes", "failures", "hook", "plugin", "refusals", "seconds")

    def __init__(self, hook: str, plugin: str) -> None:
        self.hook = hook
        self.plugin = plugin
        self.calls = 0
        self.seconds = 0.0
        self.changes = 0
        self.refusals = 0
        self.failures = 0


TraceListener = Callable[[str, str, float, str], None]
"""Hears hook, plugin, seconds and outcome of a call: ``ran``, ``changed``, ``refused`` or ``failed``."""


class Ledger:
    """All records of one host."""

    def __init__(self) -> None:
        self._records: dict[tuple[str, str], HookRecord] = {}
        self.trace: TraceListener | None = None

    def record(self, hook: str, plugin: str) -> HookRecord:
        """Return the record of one implementation, made on first use."""
        key = (hook, plugin)
        if key not in self._records:
            self._records[key] = HookRecord(hook, plugin)
        return self._records[key]

    def __iter__(self) -> Iterator[HookRecord]:
        return iter(self._records.values())
