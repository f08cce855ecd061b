from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from crystal.store.database import Database, open_database
from crystal.store.home import Home
from crystal.store.schema import MIGRATIONS
from crystal.store.sessions import SessionStore, StoreError

TOY = (("CREATE TABLE one (x)",), ("CREATE TABLE two (x)", "INSERT INTO one VALUES (2)"))


def version(home: Home) -> int:
    connection = sqlite3.connect(home.database)
    try:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])
    finally:
        connection.close()


def tables(home: Home) -> set[str]:
    connection = sqlite3.connect(home.database)
    try:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    finally:
        connection.close()


def toy(home: Home) -> Database:
    return open_database(home, TOY)


def insert_and_fail(database: Database, value: int) -> None:
    with database as connection:
        connection.execute("INSERT INTO two VALUES (?)", (value,))
        raise KeyError


def test_the_files_are_the_owners_alone(home: Home) -> None:
    before = os.umask(0)
    try:
        database = toy(home)
        with database as connection:
            connection.execute("INSERT INTO one VALUES (1)")
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in home.root.iterdir()}
    finally:
        os.umask(before)
    database.close()
    assert modes == {"sessions.db": 0o600, "sessions.db-wal": 0o600, "sessions.db-shm": 0o600}


def test_a_loosened_file_is_closed_to_others_again(home: Home) -> None:
    toy(home).close()
    home.database.chmod(0o644)
    toy(home).close()
    assert stat.S_IMODE(home.database.stat().st_mode) == 0o600


@pytest.mark.parametrize("old", [0, 1, 2])
def test_every_older_layout_is_brought_to_the_present_one_and_keeps_its_rows(home: Home, old: int) -> None:
    database = open_database(home, TOY[:old])
    if old:
        with database as connection:
            connection.execute("INSERT INTO one VALUES (1)")
    database.close()
    database = toy(home)
    rows = database.rows("SELECT x FROM one ORDER BY x")
    database.close()
    assert (version(home), tables(home)) == (2, {"one", "two"})
    kept = [(1,)] if old else []
    assert rows == (sorted([*kept, (2,)]) if old != 2 else [(1,), (2,)])


def test_a_step_that_fails_leaves_the_old_layout_whole(home: Home) -> None:
    open_database(home, TOY[:1]).close()
    with pytest.raises(StoreError):
        open_database(home, (*TOY[:1], ("CREATE TABLE three (x)", "NOT A STATEMENT")))
    assert (version(home), tables(home)) == (1, {"one"})


def test_a_newer_layout_is_refused_and_not_touched(home: Home) -> None:
    SessionStore.open(home).close()
    connection = sqlite3.connect(home.database)
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    connection.close()
    with pytest.raises(StoreError) as raised:
        SessionStore.open(home)
    assert str(raised.value) == (
        f"{home.database}: a newer crystal wrote this session database (layout {len(MIGRATIONS) + 1}, this release "
        f"knows {len(MIGRATIONS)}); update crystal, or choose another home with --home"
    )
    assert version(home) == len(MIGRATIONS) + 1


def test_two_processes_that_open_a_new_home_at_once_both_succeed(home: Home) -> None:
    program = (
        "import sys; from pathlib import Path; from crystal.store.home import Home;"
        "from crystal.store.sessions import SessionStore; SessionStore.open(Home(root=Path(sys.argv[1]))).close()"
    )
    openers = [
        subprocess.Popen([sys.executable, "-c", program, str(home.root)], stderr=subprocess.PIPE) for _ in range(4)
    ]
    assert [(opener.communicate()[1], opener.returncode) for opener in openers] == [(b"", 0)] * 4
    assert version(home) == len(MIGRATIONS)


def test_what_is_no_database_is_named_and_kept(home: Home) -> None:
    home.ensure()
    home.database.write_bytes(b"my diary, which is rather longer than the header of a database" * 20)
    before = home.database.read_bytes()
    with pytest.raises(StoreError) as raised:
        SessionStore.open(home)
    assert str(raised.value) == (
        f"{home.database}: the session database cannot be used: it is not a database; "
        "move it away to start anew, or bring back a copy"
    )
    assert home.database.read_bytes() == before


def test_a_damaged_page_is_named(home: Home) -> None:
    database = toy(home)
    with database as connection:
        connection.executemany("INSERT INTO one VALUES (?)", [("x" * 500,)] * 200)
    database.close()
    data = bytearray(home.database.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    home.database.write_bytes(data)
    database = toy(home)
    with pytest.raises(StoreError, match="it is damaged; move it and its -wal file away"):
        database.rows("SELECT * FROM one")
    database.close()


def test_a_folder_in_the_place_of_the_database_is_named(home: Home) -> None:
    home.database.mkdir(parents=True)
    with pytest.raises(StoreError, match="cannot be opened"):
        SessionStore.open(home)


def test_a_file_in_the_place_of_the_home_is_named(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(StoreError, match="a folder is needed here"):
        SessionStore.open(Home(root=tmp_path / "home"))


def test_a_full_disk_is_named_and_what_was_stored_stays(home: Home) -> None:
    database = toy(home)
    with database as connection:
        connection.execute("INSERT INTO one VALUES ('kept')")
    (pages,) = database.rows("PRAGMA page_count")[0]
    database.rows(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError, match="the disk is full; make room and go on"), database as connection:
        connection.execute("INSERT INTO one VALUES (zeroblob(100000))")
    assert database.rows("SELECT x FROM one WHERE x = 'kept'") == [("kept",)]
    database.rows("PRAGMA max_page_count = 100000")
    with database as connection:
        connection.execute("INSERT INTO one VALUES (zeroblob(100000))")
    database.close()


def test_an_exception_takes_back_the_whole_transaction(home: Home) -> None:
    database = toy(home)
    with pytest.raises(KeyError):
        insert_and_fail(database, 1)
    assert database.rows("SELECT * FROM two") == []
    database.close()


def test_an_inner_failure_that_was_caught_still_takes_back_the_outer(home: Home) -> None:
    database = toy(home)

    def insert_and_go_on() -> None:
        with database as connection:
            connection.execute("INSERT INTO two VALUES (1)")
            with pytest.raises(KeyError):
                insert_and_fail(database, 2)

    with pytest.raises(StoreError, match="nothing was stored"):
        insert_and_go_on()
    assert database.rows("SELECT * FROM two") == []
    with database as connection:
        connection.execute("INSERT INTO two VALUES (3)")
    assert database.rows("SELECT * FROM two") == [(3,)]
    database.close()


def test_threads_take_turns(home: Home) -> None:
    database = toy(home)

    def write(name: int) -> None:
        for step in range(50):
            with database as connection:
                connection.execute("INSERT INTO two VALUES (?)", (name,))
                connection.execute("INSERT INTO two VALUES (?)", (name,))
                assert connection.in_transaction, step

    threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = [name for (name,) in database.rows("SELECT x FROM two ORDER BY rowid")]
    database.close()
    assert len(rows) == 400
    assert rows[::2] == rows[1::2]
