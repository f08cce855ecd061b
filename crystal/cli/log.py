"""The log file of the home, opened when the first record is written and not before."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping

from crystal.store.home import Home

MAXIMUM_BYTES = 1_000_000
KEPT_FILES = 3
LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class LazyFileHandler(logging.Handler):
    """Writes to ``logs/crystal.log``, rotated at 1 MB, for the owner alone, without the secrets of the home."""

    def __init__(self, home: Home, level: int, environ: Mapping[str, str]) -> None:
        super().__init__(level)
        self._home = home
        self._environ = environ
        self._file: logging.Handler | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; a home that cannot be written keeps no log."""
        if self._file is None:
            self._file = _open_log(self._home, _redaction(self._home, self._environ))
        self._file.emit(record)

    def close(self) -> None:
        """Close the file, if one was opened."""
        if self._file is not None:
            self._file.close()
        super().close()


class RedactingFormatter(logging.Formatter):
    """Takes secrets out of the finished line, traceback included."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__(LINE)
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return self._redact(super().format(record))


def _open_log(home: Home, redact: Callable[[str], str]) -> logging.Handler:
    from logging.handlers import RotatingFileHandler

    class PrivateFileHandler(RotatingFileHandler):
        """Opens its file, and every later one, for the owner alone."""

        def _open(self) -> io.TextIOWrapper:
            return open(self.baseFilename, "a", encoding="utf-8", opener=_private)

    from crystal.store.errors import StoreError

    try:
        home.ensure(home.logs)
        handler: logging.Handler = PrivateFileHandler(
            home.logs / "crystal.log", maxBytes=MAXIMUM_BYTES, backupCount=KEPT_FILES
        )
    except (OSError, StoreError):
        return logging.NullHandler()
    handler.setFormatter(RedactingFormatter(redact))
    return handler


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _redaction(home: Home, environ: Mapping[str, str]) -> Callable[[str], str]:
    """Return what takes the secrets of a home out of a text; they are read when something is logged."""
    from crystal.store.errors import StoreError
    from crystal.store.providers import load_providers
    from crystal.store.secrets import Redactor, collect_secrets

    try:
        providers, _ = load_providers(home)
        return Redactor(collect_secrets(providers, environ, home)).apply
    except StoreError:
        return lambda _: "[a line is left out: the secrets of the home could not be read]"


class LogWriter(io.TextIOBase):
    """Stands in for ``sys.stdout`` while plugins run: what they print goes to the log, line by line."""

    def __init__(self) -> None:
        self._logger = logging.getLogger("crystal.printed")
        self._line = ""

    def writable(self) -> bool:
        """Say that text can be written."""
        return True

    def write(self, text: str) -> int:
        """Take text; whole lines are logged."""
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._log(line)
        return len(text)

    def close(self) -> None:
        """Log what stands on a line that was never ended."""
        if not self.closed:
            self._log(self._line)
        super().close()

    def _log(self, line: str) -> None:
        if line.strip():
            self._logger.info("%s", line)


def start_log(home: Home, verbose: bool, environ: Mapping[str, str]) -> None:
    """Attach the log of ``home`` to the ``crystal`` loggers, once a process.

    :param environ: ``CRYSTAL_LOG`` may name a level; the default is INFO, ``verbose`` is DEBUG.
    """
    logger = logging.getLogger("crystal")
    if logger.handlers:
        return
    level = logging.DEBUG if verbose else logging.getLevelName(environ.get("CRYSTAL_LOG", "INFO").upper())
    handler = LazyFileHandler(home, level if isinstance(level, int) else logging.INFO, environ)
    logger.setLevel(handler.level)
    logger.propagate = False
    logger.addHandler(handler)


@contextlib.contextmanager
def contained_output() -> Iterator[None]:
    """Send what plugins and in-process tools print to the log: it may hold anything, and the formats stay whole."""
    printed, complained = sys.stdout, sys.stderr
    logged = LogWriter()
    sys.stdout = sys.stderr = logged
    try:
        yield
    finally:
        sys.stdout, sys.stderr = printed, complained
        logged.close()
