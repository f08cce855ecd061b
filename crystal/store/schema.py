"""The tables of ``sessions.db`` and the steps that lead from each older layout to this one. Data only.

A released step is never changed; a new layout is a new step at the end.
"""

from __future__ import annotations

_FIRST = (
    """CREATE TABLE sessions (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        workspace NOT NULL,
        title TEXT NOT NULL,
        provider TEXT NOT NULL,
        model TEXT NOT NULL,
        mode TEXT NOT NULL,
        created REAL NOT NULL,
        updated REAL NOT NULL,
        turns INTEGER NOT NULL,
        syncs INTEGER NOT NULL DEFAULT 0
    )""",
    "CREATE INDEX sessions_by_workspace ON sessions (workspace, updated)",
    "CREATE INDEX sessions_by_time ON sessions (updated)",
    """CREATE TABLE systems (
        session INTEGER PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
        text TEXT NOT NULL
    )""",
    """CREATE TABLE items (
        number INTEGER PRIMARY KEY,
        session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
        turn INTEGER NOT NULL,
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        call_id TEXT,
        name TEXT,
        text TEXT NOT NULL,
        extra TEXT
    )""",
    "CREATE INDEX items_by_session ON items (session)",
    """CREATE TABLE usage (
        number INTEGER PRIMARY KEY,
        session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
        turn INTEGER NOT NULL,
        step INTEGER NOT NULL,
        purpose TEXT NOT NULL,
        provider TEXT NOT NULL,
        model TEXT NOT NULL,
        input INTEGER NOT NULL,
        output INTEGER NOT NULL,
        cached INTEGER NOT NULL,
        cache_write INTEGER NOT NULL,
        reasoning INTEGER NOT NULL,
        estimated INTEGER NOT NULL,
        seconds REAL NOT NULL
    )""",
    "CREATE INDEX usage_by_session ON usage (session)",
    """CREATE TABLE tool_calls (
        number INTEGER PRIMARY KEY,
        session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
        call_id TEXT NOT NULL,
        turn INTEGER NOT NULL,
        name TEXT NOT NULL,
        arguments TEXT NOT NULL,
        parent_call_id TEXT,
        decision TEXT,
        failed INTEGER,
        seconds REAL,
        UNIQUE (session, call_id)
    )""",
    """CREATE TABLE read_state (
        session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
        path NOT NULL,
        size INTEGER NOT NULL,
        modified_ns INTEGER NOT NULL,
        digest TEXT NOT NULL,
        PRIMARY KEY (session, path)
    ) WITHOUT ROWID""",
    """CREATE TABLE todos (
        session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
        position INTEGER NOT NULL,
        id TEXT NOT NULL,
        content TEXT NOT NULL,
        status TEXT NOT NULL,
        PRIMARY KEY (session, position)
    ) WITHOUT ROWID""",
    "CREATE TABLE contents (digest TEXT PRIMARY KEY NOT NULL, data BLOB NOT NULL)",
    """CREATE TABLE before_images (
        number INTEGER PRIMARY KEY,
        session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
        call_id TEXT NOT NULL,
        path NOT NULL,
        digest TEXT REFERENCES contents
    )""",
    "CREATE INDEX before_images_by_session ON before_images (session)",
    "CREATE INDEX before_images_by_digest ON before_images (digest)",
    """CREATE TABLE media (
        session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
        digest TEXT NOT NULL,
        media_type TEXT NOT NULL,
        size INTEGER NOT NULL,
        name TEXT NOT NULL,
        PRIMARY KEY (session, digest)
    ) WITHOUT ROWID""",
    # The index follows the items at a distance, because a commit with it costs three times one without: rows up to
    # ``indexed.number`` are in it.
    "CREATE VIEW searchable AS SELECT number, text FROM items WHERE kind IN ('user', 'assistant')",
    "CREATE VIRTUAL TABLE search USING fts5 (text, content='searchable', content_rowid='number')",
    "CREATE TABLE indexed (number INTEGER NOT NULL)",
    "INSERT INTO indexed VALUES (0)",
    """CREATE TRIGGER item_deleted AFTER DELETE ON items BEGIN
        INSERT INTO search (search, rowid, text) SELECT 'delete', old.number, old.text
            WHERE old.kind IN ('user', 'assistant') AND old.number <= (SELECT number FROM indexed);
        UPDATE indexed SET number = min(number, (SELECT coalesce(max(number), 0) FROM items));
    END""",
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (_FIRST,)
"""Step ``n`` (from 0) leads from layout ``n`` to ``n + 1``; the layout's number is SQLite's ``user_version``."""
