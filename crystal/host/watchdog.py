"""Names, in the log, a plain hook function that is still running past the limit. It cannot end one."""

from __future__ import annotations

import logging
import threading
import weakref
from time import perf_counter

from crystal.host.ledger import HookRecord

logger = logging.getLogger("crystal.hooks")


class Watchdog:
    """Watches the one plain hook call that may be running. Its thread ends when the host is gone.

    :param limit: seconds after which a running call is named, once.
    :ivar running: the record of the running call, ``None`` between calls; set for every call, so it is plain data.
    :ivar began: the clock when it began, which is when the call before it ended.
    """

    def __init__(self, limit: float) -> None:
        self.running: HookRecord | None = None
        self.began = 0.0
        self._limit = limit
        self._named: float = -1.0
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread that looks; once."""
        if self._thread is not None:
            return
        gone = threading.Event()
        # The thread holds no reference to its host, which would otherwise live as long as the process.
        reference = weakref.ref(self, lambda _: gone.set())
        self._thread = threading.Thread(
            target=_look, args=(reference, gone, max(self._limit / 4, 0.05)), name="crystal-watchdog", daemon=True
        )
        self._thread.start()

    def look(self) -> None:
        """Name the running call in the log if it is past the limit and was not named yet."""
        running, began = self.running, self.began
        if running is None or perf_counter() - began <= self._limit or began == self._named:
            return
        # Read again: the call may have ended, and another begun, between the two readings.
        if running is self.running and began == self.began:
            self._named = began
            logger.warning("plugin %s, hook %s is still running after %g s", running.plugin, running.hook, self._limit)


def _look(reference: weakref.ref[Watchdog], gone: threading.Event, pause: float) -> None:
    while not gone.wait(pause):
        watchdog = reference()
        if watchdog is None:
            return
        watchdog.look()
        del watchdog
