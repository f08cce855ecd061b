"""The list of sessions, their system prompts, and the right to write one. Times are given by the caller."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from crystal.store.database import Database
from crystal.store.errors import SessionBusy, StoreError, UnknownSession
from crystal.store.file_lock import FileLock, LockHeld, take_lock
from crystal.store.home import Home
from crystal.store.item_rows import clean_text
from crystal.store.session_tables import SessionTables, path_text, storable, unknown_session
from crystal.types._frozen import Frozen

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_COLUMNS = (
    "SELECT id, workspace, title, provider, model, mode, created, updated, turns, "
    "(SELECT count(*) FROM items WHERE items.session = sessions.number) FROM sessions"
)


class SessionRecord(Frozen):
    """One session as a list shows it.

    :param id: 1 to 64 letters, digits, ``_`` or ``-``.
    :param workspace: real path of the workspace it belongs to.
    :param mode: ``work`` or ``plan``.
    :param created: Unix time in seconds; likewise ``updated``.
    :param items: how many items are stored; counted when read, ignored when created.
    """

    id: str
    workspace: str
    title: str = ""
    provider: str = ""
    model: str = ""
    mode: str = "work"
    created: float = 0.0
    updated: float = 0.0
    turns: int = 0
    items: int = 0


class StoredSessions(SessionTables):
    """Creates, finds and claims sessions."""

    __slots__ = ("_claims",)

    def __init__(self, home: Home, database: Database) -> None:
        super().__init__(home, database)
        self._claims: dict[str, FileLock] = {}

    def create(self, record: SessionRecord) -> None:
        """Store a new session without items.

        :raises StoreError: when the id is taken or is not one.
        """
        if not _ID.fullmatch(record.id):
            raise StoreError(f"{record.id[:80]!r} is not a session id: letters, digits, _ and -, at most 64")
        with self._database as connection:
            if connection.execute("SELECT 1 FROM sessions WHERE id = ?", (record.id,)).fetchone():
                raise StoreError(f"there is already a session {record.id}")
            connection.execute(
                "INSERT INTO sessions (id, workspace, title, provider, model, mode, created, updated, turns) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    record.id,
                    storable(record.workspace),
                    clean_text(record.title),
                    clean_text(record.provider),
                    clean_text(record.model),
                    record.mode,
                    record.created,
                    record.updated,
                    record.turns,
                ),
            )

    def get(self, id_or_prefix: str) -> SessionRecord:
        """Return the session with this id, else the only one whose id begins so.

        :raises UnknownSession: when none or several do.
        """
        wanted = clean_text(id_or_prefix)
        rows = self._database.rows(f"{_COLUMNS} WHERE id = ?", (wanted,)) if wanted else []
        if wanted and not rows:
            rows = self._database.rows(
                f"{_COLUMNS} WHERE substr(id, 1, ?) = ? ORDER BY updated DESC LIMIT 5", (len(wanted), wanted)
            )
        if not rows:
            raise unknown_session(id_or_prefix)
        if len(rows) > 1:
            found = ", ".join(row[0] for row in rows)
            raise UnknownSession(
                id_or_prefix, f"several sessions begin with {id_or_prefix}: {found}; give more of the id"
            )
        return _record(rows[0])

    def latest(self, workspace: str | Path) -> SessionRecord | None:
        """Return the session of a workspace that was used last."""
        found = self.list(workspace, 1)
        return found[0] if found else None

    def list(self, workspace: str | Path | None, limit: int) -> tuple[SessionRecord, ...]:
        """Return sessions, the last used first.

        :param workspace: its real path, or ``None`` for every workspace.
        :param limit: how many at most.
        """
        order = "ORDER BY updated DESC, number DESC LIMIT ?"
        if workspace is None:
            rows = self._database.rows(f"{_COLUMNS} {order}", (limit,))
        else:
            rows = self._database.rows(f"{_COLUMNS} WHERE workspace = ? {order}", (storable(workspace), limit))
        return tuple(map(_record, rows))

    def touch(
        self,
        session_id: str,
        *,
        now: float,
        title: str | None = None,
        turns: int | None = None,
        provider: str | None = None,
        model: str | None = None,
        mode: str | None = None,
    ) -> None:
        """Note that a session was used; ``None`` leaves a field as it is.

        :param now: Unix time in seconds.
        """
        words = [None if word is None else clean_text(word) for word in (title, provider, model, mode)]
        number = self._number(session_id)
        with self._database as connection:
            connection.execute(
                "UPDATE sessions SET title = coalesce(?, title), provider = coalesce(?, provider), "
                "model = coalesce(?, model), mode = coalesce(?, mode), turns = coalesce(?, turns), updated = ? "
                "WHERE number = ?",
                (*words, turns, now, number),
            )

    def set_system(self, session_id: str, text: str) -> None:
        """Store the system prompt that the session's requests carry."""
        number = self._number(session_id)
        with self._database as connection:
            connection.execute(
                "INSERT INTO systems (session, text) VALUES (?, ?) "
                "ON CONFLICT (session) DO UPDATE SET text = excluded.text",
                (number, clean_text(text)),
            )

    def system(self, session_id: str) -> str:
        """Return the stored system prompt, empty when there is none."""
        rows = self._database.rows("SELECT text FROM systems WHERE session = ?", (self._number(session_id),))
        return str(rows[0][0]) if rows else ""

    def sync(self, session_id: str) -> None:
        """Put everything stored so far on disk, so that a power cut loses none of it; costs one disk flush.

        Inside :meth:`together` it does nothing: what is not committed cannot be made to last.
        """
        self._database.sync("UPDATE sessions SET syncs = syncs + 1 WHERE number = ?", (self._number(session_id),))

    def claim(self, session_id: str) -> None:
        """Become the one writer of a session until :meth:`release`, close, or the end of the process in any way.

        :raises SessionBusy: when another process, or another store of this one, is.
        """
        self._number(session_id)
        if session_id in self._claims:
            return
        try:
            self._claims[session_id] = take_lock(self._home, f"session-{session_id}", wait=False)
        except LockHeld as held:
            raise SessionBusy(session_id, held.process) from held

    def release(self, session_id: str) -> None:
        """Let others write the session; harmless when it is not claimed."""
        lock = self._claims.pop(session_id, None)
        if lock is not None:
            lock.release()

    def _release_all(self, sessions: Iterable[str] | None = None) -> None:
        for session_id in tuple(sessions or self._claims):
            self.release(session_id)


def _record(row: tuple[Any, ...]) -> SessionRecord:
    return SessionRecord(
        id=row[0],
        workspace=path_text(row[1]),
        title=row[2],
        provider=row[3],
        model=row[4],
        mode=row[5],
        created=row[6],
        updated=row[7],
        turns=row[8],
        items=row[9],
    )
