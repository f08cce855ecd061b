"""One connection to ``sessions.db``: opening, migrating, transactions, and its faults as sentences.

Must not know what the tables mean.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crystal.store.errors import HomeFileError, StoreError
from crystal.store.home import Home, describe
from crystal.store.schema import MIGRATIONS

if TYPE_CHECKING:
    import sqlite3

_BUSY_SECONDS = 10.0
_UNDECODABLE = "Could not decode to UTF-8"

_REASONS = {
    "SQLITE_FULL": "the disk is full; make room and go on",
    "SQLITE_READONLY": "it cannot be written; look at the rights of the file and its folder",
    "SQLITE_CANTOPEN": "it cannot be opened; look at the rights of the file and its folder",
    "SQLITE_PERM": "it cannot be opened; look at the rights of the file and its folder",
    "SQLITE_BUSY": "other crystal processes kept it locked for too long; try again",
    "SQLITE_LOCKED": "other crystal processes kept it locked for too long; try again",
    "SQLITE_CORRUPT": "it is damaged; move it and its -wal file away to start anew, or bring back a copy",
    "SQLITE_NOTADB": "it is not a database; move it away to start anew, or bring back a copy",
    "SQLITE_IOERR": "the disk does not answer properly",
    "SQLITE_TOOBIG": "a value has more than 1 GB",
}


class Database:
    """A connection that is also the context of a write transaction.

    ``with database as connection`` begins at the outermost level, commits at its end and rolls back on an exception.
    Threads take turns. Every fault of SQLite comes out as :class:`StoreError`.
    """

    __slots__ = ("_connection", "_depth", "_error", "_failed", "_lock", "_path", "_unsynced")

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection
        self._lock = threading.RLock()
        self._depth = 0
        self._failed = False
        self._unsynced = False
        self._error: type[Exception] = connection.Error

    def __enter__(self) -> sqlite3.Connection:
        self._lock.acquire()
        try:
            if not self._depth:
                self._connection.execute("BEGIN IMMEDIATE")
                self._failed = False
            self._depth += 1
        except BaseException as error:
            self._lock.release()
            if isinstance(error, self._error):
                raise explain(self._path, error) from error
            raise
        return self._connection

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        try:
            self._depth -= 1
            if error is not None:
                self._failed = True
            if self._depth:
                pass
            elif self._failed:
                self._roll_back()
                if error is None:
                    raise StoreError(
                        f"{self._path}: a part of what was to be stored together failed; nothing was stored"
                    )
            else:
                self._commit()
            if error is not None and isinstance(error, self._error):
                raise explain(self._path, error) from error
        finally:
            self._lock.release()

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return every row of a query.

        :raises StoreError: when the database cannot be read.
        """
        with self._lock:
            try:
                return self._connection.execute(statement, values).fetchall()
            except self._error as error:
                if _UNDECODABLE not in str(error):
                    raise explain(self._path, error) from error
            return self._lenient_rows(statement, values)

    def sync(self, statement: str, values: Sequence[Any]) -> None:
        """Put everything committed so far on disk by one more small write; free of cost when nothing was written.

        :param statement: the small write.
        :raises StoreError: when it cannot be written.
        """
        with self._lock:
            if not self._unsynced or self._depth:
                return
            self._connection.execute("PRAGMA synchronous = FULL")
            try:
                with self as connection:
                    connection.execute(statement, values)
                self._unsynced = False
            finally:
                self._connection.execute("PRAGMA synchronous = NORMAL")

    def close(self) -> None:
        """Close the connection; what is committed stays."""
        with self._lock:
            self._connection.close()

    def _lenient_rows(self, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Read rows of which one holds bytes that are not UTF-8, so that it does not take the others with it."""
        usual = self._connection.text_factory
        self._connection.text_factory = _decode_leniently
        try:
            return self._connection.execute(statement, values).fetchall()
        except self._error as error:
            raise explain(self._path, error) from error
        finally:
            self._connection.text_factory = usual

    def _commit(self) -> None:
        try:
            self._connection.execute("COMMIT")
            self._unsynced = True
        except self._error as error:
            self._roll_back()
            raise explain(self._path, error) from error

    def _roll_back(self) -> None:
        # SQLite ends the transaction itself on some faults, such as a full disk.
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


def open_database(home: Home, migrations: Sequence[Sequence[str]] = MIGRATIONS) -> Database:
    """Open the session database, making it (mode 0600) or bringing it to the present layout when needed.

    :param migrations: the steps of every layout; the present one is their number.
    :raises StoreError: when it cannot be used, or was written by a newer release.
    """
    import sqlite3  # 5 ms that a command without sessions does not pay

    path = home.database
    try:
        home.ensure()
        _make_private(path)
    except HomeFileError as error:
        raise StoreError(str(error)) from error
    except OSError as error:
        raise StoreError(f"{path}: the session database cannot be opened: {describe(error)}") from error
    connection: sqlite3.Connection | None = None
    try:
        connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        _migrate(connection, path, migrations)
    except BaseException as error:
        if connection is not None:
            connection.close()
        if isinstance(error, sqlite3.Error):
            raise explain(path, error) from error
        raise
    return Database(path, connection)


def explain(path: Path, error: BaseException) -> StoreError:
    """Return a fault of SQLite as a sentence that says what helps."""
    code: str = getattr(error, "sqlite_errorname", "") or ""
    base = "_".join(code.split("_")[:2])
    reason = _REASONS.get(base) or str(error)
    return StoreError(f"{path}: the session database cannot be used: {reason}")


def _decode_leniently(data: bytes) -> str:
    return data.decode(errors="replace")


def _make_private(path: Path) -> None:
    # Only a new file is opened here: closing a second descriptor of an open database would drop SQLite's own locks.
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        if os.stat(path).st_mode & 0o077:
            os.chmod(path, 0o600)


def _migrate(connection: sqlite3.Connection, path: Path, migrations: Sequence[Sequence[str]]) -> None:
    if _version(connection) == len(migrations):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Read again: another process may have migrated while this one waited for the lock.
        version = _version(connection)
        if version > len(migrations):
            raise StoreError(
                f"{path}: a newer crystal wrote this session database (layout {version}, this release knows "
                f"{len(migrations)}); update crystal, or choose another home with --home"
            )
        for step in migrations[version:]:
            for statement in step:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
