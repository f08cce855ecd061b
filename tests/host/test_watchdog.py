"""The watchdog names a plain hook that runs past its limit: once, and only while it runs."""

from __future__ import annotations

import logging
from time import perf_counter

import pytest

from crystal.host.ledger import HookRecord
from crystal.host.watchdog import Watchdog

LIMIT = 60.0


def watch(watchdog: Watchdog, hook: str, plugin: str, began: float) -> None:
    """Say that a call began, as the dispatcher does."""
    watchdog.running, watchdog.began = HookRecord(hook, plugin), began


def test_a_call_past_the_limit_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    watchdog = Watchdog(LIMIT)
    watch(watchdog, "on_tool_call", "plugin:home/Slow", perf_counter() - LIMIT - 1)
    with caplog.at_level(logging.WARNING, "crystal.hooks"):
        watchdog.look()
        watchdog.look()
    (message,) = caplog.messages
    assert "plugin:home/Slow" in message
    assert "on_tool_call" in message


def test_each_later_call_past_the_limit_is_named_anew(caplog: pytest.LogCaptureFixture) -> None:
    watchdog = Watchdog(LIMIT)
    with caplog.at_level(logging.WARNING, "crystal.hooks"):
        for number in range(3):
            watch(watchdog, "on_tool_call", f"plugin:home/P{number}", perf_counter() - LIMIT - 1 - number)
            watchdog.look()
    assert len(caplog.messages) == 3


def test_neither_a_call_within_the_limit_nor_one_that_ended_is_named(caplog: pytest.LogCaptureFixture) -> None:
    watchdog = Watchdog(LIMIT)
    with caplog.at_level(logging.WARNING, "crystal.hooks"):
        watchdog.look()
        watch(watchdog, "on_tool_call", "plugin:home/Quick", perf_counter())
        watchdog.look()
        watch(watchdog, "on_tool_call", "plugin:home/Ended", perf_counter() - LIMIT - 1)
        watchdog.running = None
        watchdog.look()
    assert caplog.messages == []
