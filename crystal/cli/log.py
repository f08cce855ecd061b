"""The log file of the home, opened when the first record is written and not before."""

from __future__ import annotations

import logging
import os
from pathlib import Path

MAXIMUM_BYTES = 1_000_000
KEPT_FILES = 3


class LazyFileHandler(logging.Handler):
    """Writes to ``logs/crystal.log``, rotated at 1 MB, for the owner alone."""

    def __init__(self, folder: Path, level: int) -> None:
        super().__init__(level)
        self._folder = folder
        self._file: logging.Handler | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        if self._file is None:
            from logging.handlers import RotatingFileHandler

            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = self._folder / "crystal.log"
            os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
            self._file = RotatingFileHandler(path, maxBytes=MAXIMUM_BYTES, backupCount=KEPT_FILES, encoding="utf-8")
            self._file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        self._file.emit(record)

    def close(self) -> None:
        """Close the file, if one was opened."""
        if self._file is not None:
            self._file.close()
        super().close()


class LogWriter:
    """Stands in for ``sys.stdout`` while plugins run: what they print goes to the log, line by line."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self._logger = logging.getLogger("crystal.printed")
        self._line = ""

    def write(self, text: str) -> int:
        """Take text; whole lines are logged."""
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            if line.strip():
                self._logger.info("%s", line)
        return len(text)

    def flush(self) -> None:
        """Do nothing: a line is logged when it is whole."""

    def isatty(self) -> bool:
        """Say that this is no terminal."""
        return False


def start_log(folder: Path, verbose: bool, environ_level: str | None) -> LazyFileHandler:
    """Attach the log to the ``crystal`` loggers.

    :param environ_level: the value of ``CRYSTAL_LOG``, a level name.
    """
    level = logging.DEBUG if verbose else logging.getLevelName((environ_level or "WARNING").upper())
    handler = LazyFileHandler(folder, level if isinstance(level, int) else logging.WARNING)
    logger = logging.getLogger("crystal")
    logger.setLevel(handler.level)
    logger.propagate = False
    logger.addHandler(handler)
    return handler
