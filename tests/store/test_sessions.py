from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys

import pytest

from crystal.store.home import Home
from crystal.store.sessions import SessionStore
from crystal.types.items import AssistantItem, UserItem

WRITER = """
import sys
from pathlib import Path
from crystal.store.home import Home
from crystal.store.sessions import SessionRecord, SessionStore
from crystal.types.items import AssistantItem, ToolCallItem
store = SessionStore.open(Home(root=Path(sys.argv[1])))
name = sys.argv[2]
store.create(SessionRecord(id=name, workspace="/w"))
store.claim(name)
for number in range(int(sys.argv[3])):
    store.append(name, number, [
        AssistantItem(id=f"{number}a", text=f"step {number} " + "x" * (number % 700)),
        ToolCallItem(id=f"{number}b", call_id=f"{number}", name="read", arguments="{}"),
    ])
    if number % 10 == 0:
        store.sync(name)
        store.index_text(5)
    print(number, flush=True)
"""


def writer(home: Home, name: str, steps: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(home.root), name, str(steps)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,  # so that what readline left is still there for communicate
    )


def integrity(home: Home) -> str:
    connection = sqlite3.connect(home.database, isolation_level=None)
    try:
        connection.execute("INSERT INTO search (search) VALUES ('integrity-check')")
        return str(connection.execute("PRAGMA integrity_check").fetchone()[0])
    finally:
        connection.close()


@pytest.mark.parametrize("acknowledged", [1, 37, 150])
def test_a_killed_writer_loses_nothing_it_was_told_is_stored(home: Home, acknowledged: int) -> None:
    process = writer(home, "s1", 100_000)
    assert process.stdout is not None
    for _ in range(acknowledged):
        process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    rest, errors = process.communicate()
    assert errors == b""
    told = acknowledged + rest.count(b"\n")

    assert integrity(home) == "ok"
    store = SessionStore.open(home)
    store.claim("s1")
    items, notes = store.load_items("s1")
    store.close()
    assert notes == ()
    assert len(items) in (2 * told, 2 * told + 2)
    assert [item.id for item in items] == [f"{number // 2}{'ab'[number % 2]}" for number in range(len(items))]
    assert items[2 * told - 2] == AssistantItem(id=f"{told - 1}a", text=f"step {told - 1} " + "x" * ((told - 1) % 700))


def test_two_processes_write_two_sessions_of_one_home_at_once(home: Home) -> None:
    SessionStore.open(home).close()
    writers = [writer(home, name, 200) for name in ("s1", "s2")]
    assert [(process.communicate()[1], process.returncode) for process in writers] == [(b"", 0)] * 2
    store = SessionStore.open(home)
    assert [store.get(name).items for name in ("s1", "s2")] == [400, 400]
    store.close()
    assert integrity(home) == "ok"


def test_closing_leaves_one_file_and_no_claim(home: Home, store: SessionStore) -> None:
    store.claim("s1")
    store.append("s1", 1, [UserItem(id="1", text="hi")])
    store.sync("s1")
    store.close()
    assert sorted(os.listdir(home.root)) == ["locks", "sessions.db"]
    assert os.listdir(home.locks) == []
    again = SessionStore.open(home)
    again.claim("s1")
    assert again.load_items("s1")[0] == (UserItem(id="1", text="hi"),)
    again.close()


def test_a_sync_can_be_asked_for_at_any_time(store: SessionStore) -> None:
    store.sync("s1")
    with store.together():
        store.append("s1", 1, [UserItem(id="1", text="hi")])
        store.sync("s1")
    store.sync("s1")
    store.sync("s1")
    assert store.get("s1").items == 1


def test_a_sync_flushes_the_log_to_the_disk_and_ordinary_writes_do_not(home: Home) -> None:
    program = """
import sys
from pathlib import Path
from crystal.store.home import Home
from crystal.store.sessions import SessionRecord, SessionStore
from crystal.types.items import UserItem
store = SessionStore.open(Home(root=Path(sys.argv[1])))
store.create(SessionRecord(id="s1", workspace="/w"))
with store.together() as connection:
    pass
print(store.get("s1").items, [row[0] for row in connection.execute("PRAGMA synchronous")])
store.append("s1", 1, [UserItem(id="1", text="hi")])
levels = []
connection.set_trace_callback(levels.append)
store.sync("s1")
connection.set_trace_callback(None)
print([statement for statement in levels if "synchronous" in statement or statement == "COMMIT"])
print([row[0] for row in connection.execute("PRAGMA synchronous")])
"""
    done = subprocess.run([sys.executable, "-c", program, str(home.root)], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "0 [1]",
        "['PRAGMA synchronous = FULL', 'COMMIT', 'PRAGMA synchronous = NORMAL']",
        "[1]",
    ]


def test_opening_needs_no_more_than_the_standard_library(home: Home) -> None:
    program = (
        "import sys; from pathlib import Path; from crystal.store.home import Home;"
        "import crystal.store.sessions; early = 'sqlite3' in sys.modules;"
        "crystal.store.sessions.SessionStore.open(Home(root=Path(sys.argv[1]))).close();"
        "print(early, [name for name in ('pydantic', 'httpx', 'rich', 'pluggy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program, str(home.root)], check=True, capture_output=True, text=True)
    assert done.stdout == "False []\n"
