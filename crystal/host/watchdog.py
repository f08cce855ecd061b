"""Names, in the log, a plain hook function that is still running past the limit. It cannot end one."""

from __future__ import annotations

import logging
import threading
import weakref
from time import perf_counter

logger = logging.getLogger("crystal.hooks")


class Watchdog:
    """Watches the one plain hook call that may be running. Its thread ends when the host is gone.

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
            gone = threading.Event()
            # The thread holds no reference to its host, which would otherwise live as long as the process.
            reference = weakref.ref(self, lambda _: gone.set())
            self._thread = threading.Thread(
                target=_look, args=(reference, gone, max(self._limit / 4, 0.05)), name="crystal-watchdog", daemon=True
            )
            self._thread.start()

    def rest(self) -> None:
        """Note that no plain call is running."""
        self._running = None

    def look(self) -> None:
        """Name the running call in the log if it is past the limit and was not named yet."""
        running = self._running
        if running is None:
            return
        hook, plugin, began = running
        if perf_counter() - began > self._limit and began != self._named:
            self._named = began
            logger.warning("plugin %s, hook %s is still running after %g s", plugin, hook, self._limit)


def _look(reference: weakref.ref[Watchdog], gone: threading.Event, pause: float) -> None:
    while not gone.wait(pause):
        watchdog = reference()
        if watchdog is None:
            return
        watchdog.look()
        del watchdog
