"""Names, in the log, a plain hook function that is still running past the limit. It cannot end one."""

from __future__ import annotations

import logging
import threading
from time import perf_counter

logger = logging.getLogger("crystal.hooks")


class Watchdog:
    """Watches the one plain hook call that may be running; its thread starts with the first call.

    :param limit: seconds after which a running call is named, once.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._running: tuple[str, str, float] | None = None
        self._named: float = -1.0
        self._thread: threading.Thread | None = None

    def watch(self, hook: str, plugin: str, began: float) -> None:
        """Note that a call began."""
        self._running = (hook, plugin, began)
        if self._thread is None:
            self._thread = threading.Thread(target=self._look, name="crystal-watchdog", daemon=True)
            self._thread.start()

    def rest(self) -> None:
        """Note that no plain call is running."""
        self._running = None

    def _look(self) -> None:
        pause = threading.Event()
        while not pause.wait(max(self._limit / 4, 0.05)):
            running = self._running
            if running is None:
                continue
            hook, plugin, began = running
            if perf_counter() - began > self._limit and began != self._named:
                self._named = began
                logger.warning("plugin %s, hook %s is still running after %g s", plugin, hook, self._limit)
