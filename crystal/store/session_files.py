"""What a session knows of the workspace's files, and its to-do list; with the views that tools are given of them."""

from __future__ import annotations

from collections.abc import Sequence

from crystal.store.item_rows import clean_text
from crystal.store.session_tables import SessionTables, path_text, storable
from crystal.types._frozen import Frozen
from crystal.types.capabilities import FileStamp, Todo


class BeforeImage(Frozen):
    """What a file held before a call changed it; ``content`` is ``None`` for a file that did not exist."""

    call_id: str
    path: str
    content: bytes | None


class FileLog(SessionTables):
    """Stores read state, before-images and to-dos."""

    __slots__ = ()

    def read_state(self, session_id: str, path: str) -> FileStamp | None:
        """Return the stamp of a file when the session last saw it."""
        rows = self._database.rows(
            "SELECT size, modified_ns, digest FROM read_state WHERE session = ? AND path = ?",
            (self._number(session_id), storable(path)),
        )
        return FileStamp(size=rows[0][0], modified_ns=rows[0][1], digest=rows[0][2]) if rows else None

    def set_read_state(self, session_id: str, path: str, stamp: FileStamp) -> None:
        """Note that the session has seen this state of a file."""
        values = (self._number(session_id), storable(path), stamp.size, stamp.modified_ns, stamp.digest)
        with self._database as connection:
            connection.execute(
                "INSERT OR REPLACE INTO read_state (session, path, size, modified_ns, digest) VALUES (?, ?, ?, ?, ?)",
                values,
            )

    def keep_before_image(self, session_id: str, path: str, content: bytes | None, call_id: str) -> None:
        """Keep what a file held before a call changed it, byte for byte; equal contents are kept once."""
        import hashlib

        number = self._number(session_id)
        digest = None if content is None else hashlib.sha256(content).hexdigest()
        with self._database as connection:
            if digest is not None:
                connection.execute("INSERT OR IGNORE INTO contents (digest, data) VALUES (?, ?)", (digest, content))
            connection.execute(
                "INSERT INTO before_images (session, call_id, path, digest) VALUES (?, ?, ?, ?)",
                (number, clean_text(call_id), storable(path), digest),
            )

    def before_images(self, session_id: str) -> tuple[BeforeImage, ...]:
        """Return the before-images of a session in the order they were kept."""
        rows = self._database.rows(
            "SELECT call_id, path, data FROM before_images LEFT JOIN contents USING (digest) "
            "WHERE session = ? ORDER BY number",
            (self._number(session_id),),
        )
        return tuple(BeforeImage(call_id=call, path=path_text(path), content=data) for call, path, data in rows)

    def todos(self, session_id: str) -> tuple[Todo, ...]:
        """Return the to-do list in order."""
        rows = self._database.rows(
            "SELECT id, content, status FROM todos WHERE session = ? ORDER BY position",
            (self._number(session_id),),
        )
        return tuple(Todo(id=identity, content=content, status=status) for identity, content, status in rows)

    def set_todos(self, session_id: str, todos: Sequence[Todo]) -> None:
        """Replace the to-do list."""
        number = self._number(session_id)
        rows = [
            (number, position, clean_text(todo.id), clean_text(todo.content), clean_text(todo.status))
            for position, todo in enumerate(todos)
        ]
        with self._database as connection:
            connection.execute("DELETE FROM todos WHERE session = ?", (number,))
            connection.executemany(
                "INSERT INTO todos (session, position, id, content, status) VALUES (?, ?, ?, ?, ?)", rows
            )


class SessionTodos:
    """The to-do list of one session, as ``crystal.types.capabilities.TodoList``."""

    __slots__ = ("_session_id", "_store")

    def __init__(self, store: FileLog, session_id: str) -> None:
        self._store = store
        self._session_id = session_id

    def read(self) -> tuple[Todo, ...]:
        """Return the entries in order."""
        return self._store.todos(self._session_id)

    def replace(self, todos: Sequence[Todo]) -> None:
        """Store a new list."""
        self._store.set_todos(self._session_id, todos)


class SessionFiles:
    """The file states of one session, as ``crystal.types.capabilities.FileStates``.

    What was asked once is kept in memory; the session has one writer, so nobody else changes it.
    """

    __slots__ = ("_session_id", "_stamps", "_store")

    def __init__(self, store: FileLog, session_id: str) -> None:
        self._store = store
        self._session_id = session_id
        self._stamps: dict[str, FileStamp | None] = {}

    def seen(self, path: str) -> FileStamp | None:
        """Return the stamp of ``path`` when this session last read or wrote it."""
        if path not in self._stamps:
            self._stamps[path] = self._store.read_state(self._session_id, path)
        return self._stamps[path]

    def remember(self, path: str, stamp: FileStamp) -> None:
        """Note that the session has seen this state of ``path``."""
        if self._stamps.get(path) != stamp:
            self._store.set_read_state(self._session_id, path, stamp)
            self._stamps[path] = stamp

    def keep_before_image(self, path: str, content: bytes | None, call_id: str) -> None:
        """Store what ``path`` held before a change; ``None`` for a file that did not exist."""
        self._store.keep_before_image(self._session_id, path, content, call_id)
