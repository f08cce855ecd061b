"""The session store: one object over the rooms that each own some tables. Everything said, decided and read is here."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from crystal.store.call_log import CallLog, CallTrace
from crystal.store.database import open_database
from crystal.store.errors import SessionBusy, StoreError, UnknownSession
from crystal.store.home import Home
from crystal.store.session_files import BeforeImage, FileLog, SessionFiles, SessionTodos
from crystal.store.stored_sessions import SessionRecord, StoredSessions
from crystal.store.transcripts import Transcripts

__all__ = [
    "BeforeImage",
    "CallTrace",
    "SessionBusy",
    "SessionFiles",
    "SessionRecord",
    "SessionStore",
    "SessionTodos",
    "StoreError",
    "UnknownSession",
]

_INDEXED_AT_CLOSE = 2_000


class SessionStore(StoredSessions, Transcripts, CallLog, FileLog):
    """Sessions of one home. Every method is one transaction, kept by the time it returns; threads take turns.

    Ordinary writes survive the end of the process in any way; :meth:`sync` makes them survive a power cut too.
    """

    __slots__ = ()

    @classmethod
    def open(cls, home: Home) -> SessionStore:
        """Open the store of a home, making it when there is none.

        :raises StoreError: when it cannot be used; the sentence says why.
        """
        return cls(home, open_database(home))

    def together(self) -> AbstractContextManager[Any]:
        """Return a context in which several writes are one transaction: all or none, for the price of one."""
        return self._database

    def close(self) -> None:
        """Release every claim and close; goes on with the text index a little."""
        try:
            self.index_text(_INDEXED_AT_CLOSE)
        except StoreError:
            pass  # the index may lag: the next close or search goes on with it
        finally:
            self._release_all()
            self._database.close()
