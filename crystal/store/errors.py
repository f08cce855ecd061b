"""Every failure the store raises for the operator to mend, as one tree::

    StoreError                 the database, or a folder of the home, cannot be used
    ├── HomeFileError          a file of the home cannot be understood or written; nothing was overwritten
    ├── ProviderError          no usable provider, model or key
    ├── MediaError             an image cannot be kept or found
    ├── UnknownSession         no session has this id, or several begin with it
    └── SessionBusy            another process writes this session

``str()`` of each is one sentence for the operator; ``exit_code`` is the one of an invalid configuration.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar


class StoreError(Exception):
    """The store cannot do what was asked; the text says why and what helps."""

    exit_code: ClassVar[int] = 1


class HomeFileError(StoreError):
    """A file of the home is broken or cannot be reached.

    :param path: the file.
    :param line: 1-based line, or ``None`` when the fault has no place in the text.
    :param field: dotted path of the field, empty when the file as a whole is at fault.
    :param message: what was expected and what was found; never a key.
    """

    def __init__(self, path: Path, message: str, *, line: int | None = None, field: str = "") -> None:
        self.path = path
        self.line = line
        self.field = field
        self.message = message
        place = str(path)
        if line is not None:
            place += f", line {line}"
        if field:
            place += f", field {field}"
        super().__init__(f"{place}: {message}")


class ProviderError(StoreError):
    """A provider, a model or a key that was asked for is not there."""


class MediaError(StoreError):
    """Image bytes cannot be kept, or those behind a reference are missing or changed."""


class UnknownSession(StoreError):
    """No session answers to the id, or more than one begins with it.

    :param wanted: the id or prefix that was looked for.
    """

    def __init__(self, wanted: str, message: str) -> None:
        self.wanted = wanted
        super().__init__(message)


class SessionBusy(StoreError):
    """Another process writes this session.

    :param process: its process id when the lock file names one.
    """

    def __init__(self, session_id: str, process: int | None) -> None:
        self.session_id = session_id
        self.process = process
        owner = f" (process {process})" if process else ""
        super().__init__(f"session {session_id} is open in another crystal{owner}; close it there to go on here")
