"""A killed process loses nothing that was committed, and its session goes on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from crystal.store.home import Home
from crystal.store.sessions import SessionStore
from crystal.testing.crystaler import Crystaler
from crystal.types.events import TextCommitted, ToolCallFinished
from crystal.types.items import ModelItem, ToolCallItem, ToolResultItem, UserItem

PROGRAM = Path(__file__).with_name("killed_run.py")
ROOT = Path(__file__).parents[2]
ROUNDS = [
    {
        "reasoning": "two files",
        "text": "I read both.",
        "toolCalls": [
            {"name": "read", "arguments": {"path": "a.txt"}, "id": "one"},
            {"name": "read", "arguments": {"path": "b.txt"}, "id": "two"},
        ],
        "chunk": 6,
    },
    {
        "toolCalls": [
            {"name": "edit", "arguments": {"path": "a.txt", "old_string": "old", "new_string": "new"}, "id": "three"},
            {"name": "bash", "arguments": {"command": "cat a.txt"}, "id": "four"},
        ]
    },
    {"text": "Done."},
]
"""A turn with reasoning, streamed text, a concurrent batch and one in order: 30 events or a few more."""


def run_killed(crystaler: Crystaler, number: int) -> subprocess.CompletedProcess[bytes]:
    crystaler.makefile("a.txt", "old\n")
    crystaler.makefile("b.txt", "other\n")
    script = crystaler.script(ROUNDS)
    return subprocess.run(
        [sys.executable, str(PROGRAM), str(number), str(crystaler.home), str(crystaler.workspace), str(script)],
        env={**crystaler.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        timeout=60,
        check=False,
    )


def stored_items(crystaler: Crystaler) -> tuple[str, tuple[ModelItem, ...]]:
    store = SessionStore.open(Home(root=crystaler.home))
    try:
        latest = store.latest(crystaler.workspace)
        assert latest is not None
        items, notes = store.load_items(latest.id)
        assert notes == ()
        return latest.id, tuple(items)
    finally:
        store.close()


def assert_valid(items: tuple[ModelItem, ...]) -> None:
    """Every call has exactly one result, directly behind its batch; no result is without its call."""
    calls = [item.call_id for item in items if isinstance(item, ToolCallItem)]
    results = [item.call_id for item in items if isinstance(item, ToolResultItem)]
    assert results == calls
    open_calls: list[str] = []
    for item in items:
        if isinstance(item, ToolCallItem):
            open_calls.append(item.call_id)
        elif isinstance(item, ToolResultItem):
            assert item.call_id in open_calls
            open_calls.remove(item.call_id)
        else:
            assert not open_calls, f"{item} stands between a call and its result"


def event_count(crystaler: Crystaler) -> int:
    finished = run_killed(crystaler, 1_000_000)
    assert finished.returncode == 0, finished.stderr.decode()
    return int(finished.stdout)


def check_kill(crystaler: Crystaler, number: int) -> None:
    killed = run_killed(crystaler, number)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    session_id, before = stored_items(crystaler)
    crystaler.script([{"text": "I go on."}])
    resumed = crystaler.run("go on", "-r", session_id, "--approval", "full")
    assert resumed.exit_code == 0, resumed.stderr
    _, after = stored_items(crystaler)
    kept = {item.id for item in after}
    assert {item.id for item in before} <= kept, "a committed item was lost"
    sent = tuple(item for item in resumed.requests[0].items if item.id != "system")
    assert_valid(sent)
    again = crystaler.run("and on", "-r", session_id)
    assert "session-repaired" not in again.note_codes, "the repair was not stored"


def test_every_single_event_can_be_the_last(crystaler: Crystaler, tmp_path: Path) -> None:
    total = event_count(crystaler)
    assert total >= 25
    for number in range(1, total + 1):
        folder = tmp_path / f"kill{number}"
        folder.mkdir()
        check_kill(Crystaler(folder), number)


def test_an_event_says_only_what_is_stored_already(crystaler: Crystaler) -> None:
    crystaler.makefile("a.txt", "old\n")
    crystaler.makefile("b.txt", "other\n")
    crystaler.script(ROUNDS)
    missing: list[str] = []

    def look(event: object) -> None:
        if isinstance(event, TextCommitted):
            _, items = stored_items(crystaler)
            if event.item_id not in {item.id for item in items}:
                missing.append(event.item_id)

    result = crystaler.run("do it", "--approval", "full", listener=look)
    assert result.exit_code == 0
    assert missing == []


def test_a_call_killed_while_it_runs_is_not_run_again(crystaler: Crystaler) -> None:
    """G31: SIGKILL while bash works, then resume; the call gets a result that says so and nothing runs twice."""
    crystaler.script(
        [{"toolCalls": [{"name": "bash", "arguments": {"command": "echo x >> ran; sleep 20"}, "id": "slow"}]}]
    )
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", "from crystal.cli.main import main; main()", "run", "go", "--approval", "full"),
            *("--home", str(crystaler.home), "--script", str(crystaler._script), "--format", "json"),
        ],
        cwd=crystaler.workspace,
        env={**crystaler.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
    )
    ran = crystaler.workspace / "ran"
    try:
        wait_for_file(ran)
    finally:
        process.kill()
        process.communicate()
    session_id, items = stored_items(crystaler)
    assert [type(item) for item in items] == [UserItem, ToolCallItem]
    crystaler.script([{"text": "I see it was interrupted.", "expect": {"lastResult": "interrupted"}}])
    resumed = crystaler.run("go on", "-r", session_id)
    assert resumed.exit_code == 0, resumed.stderr
    assert ran.read_text() == "x\n"
    assert [event for event in resumed.events if isinstance(event, ToolCallFinished)] == []


def wait_for_file(path: Path) -> None:
    import threading

    for _ in range(600):
        if path.exists() and path.read_text():
            return
        threading.Event().wait(0.05)
    raise AssertionError(f"{path} was not written within 30 s")


def test_a_reused_call_id_is_renamed_and_json_shows_it(crystaler: Crystaler) -> None:
    crystaler.makefile("a.txt", "old\n")
    call = {"name": "read", "arguments": {"path": "a.txt"}, "id": "same"}
    crystaler.script([{"toolCalls": [call]}, {"toolCalls": [call]}, {"text": "Done."}])
    result = crystaler.run("do it", "--format", "json")
    ids = [line["callId"] for line in result.lines if line["type"] == "tool_use"]
    assert len(ids) == len(set(ids)) == 2
    assert json.loads(result.stdout.split("\n")[0])["type"] == "session"


def test_a_finished_call_is_stored_when_it_is_announced(crystaler: Crystaler) -> None:
    crystaler.makefile("a.txt", "old\n")
    crystaler.makefile("b.txt", "other\n")
    crystaler.script(ROUNDS)
    missing: list[str] = []

    def look(event: object) -> None:
        if isinstance(event, ToolCallFinished):
            _, items = stored_items(crystaler)
            results = {item.call_id: item.text for item in items if isinstance(item, ToolResultItem)}
            if results.get(event.call_id) != event.output:
                missing.append(event.call_id)

    assert crystaler.run("do it", "--approval", "full", listener=look).exit_code == 0
    assert missing == []


def test_a_resumed_session_sends_what_was_sent_before(crystaler: Crystaler) -> None:
    """The transcript is append-only: a provider's cache and its replay checks depend on the exact prefix."""
    crystaler.makefile("a.txt", "old\n")
    silent = [{"toolCalls": [{"name": "read", "arguments": {"path": "a.txt", "limit": n}}]} for n in range(1, 4)]
    crystaler.script([*silent, {"text": "Done."}])
    first = crystaler.run("read it")
    crystaler.script([{"text": "Still here."}])
    second = crystaler.run("go on", "-r", first.session_id)
    before = first.requests[-1].items
    assert second.requests[0].items[: len(before)] == before
