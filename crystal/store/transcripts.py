"""The items of sessions: appended at the end, never changed, read in order; and the text index that follows them."""

from __future__ import annotations

from collections.abc import Sequence

from crystal.store.item_rows import UnreadableRow, images_of, item_of, row_of
from crystal.store.session_tables import SessionTables
from crystal.types.items import ModelItem
from crystal.types.notes import Note, NoteCode

_INSERT = "INSERT INTO items (session, turn, kind, id, call_id, name, text, extra) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT_MEDIA = "INSERT OR IGNORE INTO media (session, digest, media_type, size, name) VALUES (?, ?, ?, ?, ?)"
_NAMED_ROWS = 5


class Transcripts(SessionTables):
    """Stores and loads items."""

    __slots__ = ()

    def append(self, session_id: str, turn: int, items: Sequence[ModelItem]) -> None:
        """Add items to a session, all or none; they survive the end of the process once this returns.

        :param turn: number of the turn they belong to, from 1; 0 for what stands before the first.
        """
        number = self._number(session_id)
        rows = [(number, turn, *row_of(item)) for item in items]
        media = {
            (number, image.digest, image.media_type, image.size, image.name)
            for item in items
            for image in images_of(item)
        }
        with self._database as connection:
            if len(rows) == 1:
                connection.execute(_INSERT, rows[0])
            else:
                connection.executemany(_INSERT, rows)
            if media:
                connection.executemany(_INSERT_MEDIA, sorted(media))

    def load_items(
        self, session_id: str, through_turn: int | None = None
    ) -> tuple[tuple[ModelItem, ...], tuple[Note, ...]]:
        """Return the items of a session in order, and a note when some stored rows could not be read.

        Such rows stay in the store as they are.

        :param through_turn: the last turn wanted, or ``None`` for all.
        """
        items: list[ModelItem] = []
        unreadable: list[int] = []
        for number, *row in self._database.rows(
            "SELECT number, kind, id, call_id, name, text, extra FROM items "
            "WHERE session = ? AND turn <= ? ORDER BY number",
            (self._number(session_id), 2**62 if through_turn is None else through_turn),
        ):
            try:
                items.append(item_of(tuple(row)))
            except UnreadableRow:
                unreadable.append(number)
        return tuple(items), _notes(session_id, unreadable)

    def index_text(self, limit: int | None = None) -> None:
        """Bring the text index up to date with the items of all sessions; about 15 µs a text.

        :param limit: how many rows to go on at most, ``None`` for all.
        """
        with self._database as connection:
            (done,) = connection.execute("SELECT number FROM indexed").fetchone()
            (last,) = connection.execute("SELECT coalesce(max(number), 0) FROM items").fetchone()
            goal = last if limit is None else min(last, done + limit)
            if goal <= done:
                return
            connection.execute(
                "INSERT INTO search (rowid, text) SELECT number, text FROM searchable WHERE number > ? AND number <= ?",
                (done, goal),
            )
            connection.execute("UPDATE indexed SET number = ?", (goal,))


def _notes(session_id: str, unreadable: list[int]) -> tuple[Note, ...]:
    if not unreadable:
        return ()
    named = ", ".join(map(str, unreadable[:_NAMED_ROWS]))
    more = ", ..." if len(unreadable) > _NAMED_ROWS else ""
    text = (
        f"session {session_id}: {len(unreadable)} stored items cannot be read and are left out (rows {named}{more}); "
        "they stay in the store"
    )
    return (Note(code=NoteCode.SESSION_REPAIRED, text=text),)
