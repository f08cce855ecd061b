"""What every room of the session store shares: the database, and the number behind a session's id."""

from __future__ import annotations

import os
from pathlib import Path

from crystal.store.database import Database
from crystal.store.errors import StoreError, UnknownSession
from crystal.store.home import Home


class SessionTables:
    """Base of the rooms of :class:`crystal.store.sessions.SessionStore`."""

    __slots__ = ("_database", "_home", "_numbers")

    def __init__(self, home: Home, database: Database) -> None:
        self._home = home
        self._database = database
        self._numbers: dict[str, int] = {}

    def _number(self, session_id: str) -> int:
        """Return the row number of a session.

        :raises UnknownSession: when there is none with exactly this id.
        """
        number = self._numbers.get(session_id)
        if number is None:
            rows = self._database.rows("SELECT number FROM sessions WHERE id = ?", (storable(session_id),))
            if not rows:
                raise unknown_session(session_id)
            number = self._numbers[session_id] = rows[0][0]
        return number

    def _damaged(self, what: str) -> StoreError:
        return StoreError(f"{self._home.database}: {what} cannot be read; it is damaged or of a newer crystal")


def unknown_session(wanted: str) -> UnknownSession:
    """Return the error for an id that no session has."""
    return UnknownSession(wanted, f"there is no session {wanted}; see: crystal sessions list --all")


def storable(path: str | Path) -> str | bytes:
    """Return a path as a column value; a name that is not UTF-8 is kept as its bytes."""
    text = os.fspath(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        return os.fsencode(text)
    return text


def path_text(value: str | bytes) -> str:
    """Return the path that :func:`storable` stored."""
    return value if isinstance(value, str) else os.fsdecode(value)
