"""Which entries of which workspaces the operator trusts."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections.abc import Callable

import pytest

from crystal.store.home import Home, HomeFileError
from crystal.store.trust import (
    TrustReview,
    load_trust,
    remembered_entries,
    revoke_entries,
    trust_entries,
    trusted_entries,
    update_entry,
)


def test_what_is_there_is_trusted_as_it_was_by_name() -> None:
    remembered = {"plugins/A": "1", "plugins/B": "2", "plugins/gone": "3"}
    present = {"plugins/A": "1", "plugins/B": "other", "plugins/C": "1"}
    assert trusted_entries(remembered, present) == TrustReview(
        trusted=("plugins/A",), changed=("plugins/B",), new=("plugins/C",)
    )
    assert trusted_entries({}, {}) == TrustReview()


def test_no_file_means_no_trust_and_none_is_made(home: Home) -> None:
    assert load_trust(home) == {}
    assert remembered_entries(home, "/ws") == {}
    assert revoke_entries(home, "/ws") == ()
    assert update_entry(home, "/ws", "plugins/A", "1", "2") is False
    assert not home.trust_file.exists()


def test_entries_come_back_from_a_private_file(home: Home) -> None:
    trust_entries(home, "/ws", {"plugins/A": "1"})
    trust_entries(home, "/ws", {"plugins/A": "2", "mcp.json#x": "3"})
    trust_entries(home, "/other", {"plugins/A": "9"})
    assert remembered_entries(home, "/ws") == {"plugins/A": "2", "mcp.json#x": "3"}
    assert load_trust(home) == {"/ws": {"plugins/A": "2", "mcp.json#x": "3"}, "/other": {"plugins/A": "9"}}
    assert stat.S_IMODE(home.trust_file.stat().st_mode) == 0o600
    assert sorted(path.name for path in home.root.iterdir()) == ["locks", "trust.json"]


def test_an_update_touches_one_entry_and_only_as_it_was(home: Home) -> None:
    trust_entries(home, "/ws", {"plugins/A": "1", "plugins/B": "1"})
    assert update_entry(home, "/ws", "plugins/A", "1", "2") is True
    assert update_entry(home, "/ws", "plugins/A", "1", "3") is False
    assert update_entry(home, "/ws", "plugins/C", "1", "3") is False
    assert update_entry(home, "/elsewhere", "plugins/A", "2", "3") is False
    assert load_trust(home) == {"/ws": {"plugins/A": "2", "plugins/B": "1"}}


def test_trust_is_taken_back_by_entry_or_whole(home: Home) -> None:
    trust_entries(home, "/ws", {"plugins/A": "1", "plugins/B": "1"})
    trust_entries(home, "/other", {"plugins/A": "1"})
    assert revoke_entries(home, "/ws", frozenset({"plugins/A", "plugins/none"})) == ("plugins/A",)
    assert revoke_entries(home, "/ws") == ("plugins/B",)
    assert revoke_entries(home, "/ws") == ()
    assert load_trust(home) == {"/other": {"plugins/A": "1"}}


def test_unknown_keys_stay_at_every_depth(home: Home) -> None:
    value = {"later": [1], "workspaces": {"/ws": {"since": "then", "entries": {}}, "/o": {"x": {}}}}
    home.write_private(home.trust_file, json.dumps(value).encode())
    trust_entries(home, "/ws", {"plugins/A": "1"})
    trust_entries(home, "/new", {"plugins/A": "1"})
    revoke_entries(home, "/ws")
    revoke_entries(home, "/new")
    value["workspaces"] = {"/ws": {"since": "then"}, "/o": {"x": {}}}
    assert json.loads(home.trust_file.read_bytes()) == value


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{\n"workspaces": []}', "line 2, field workspaces: expected an object, found a list"),
        ('{"workspaces": {\n"/ws": 1}}', "line 2, field workspaces./ws: expected an object, found a number"),
        (
            '{"workspaces": {"/ws": {\n"entries": []}}}',
            "line 2, field workspaces./ws.entries: expected an object, found a list",
        ),
        (
            '{"workspaces": {"/ws": {"entries": {\n"plugins/A": 5}}}}',
            "line 2, field workspaces./ws.entries.plugins/A: expected a digest, found a number",
        ),
        ('{"workspaces": {', "line 1: the file ends in the middle of a value"),
        ('{"workspaces": {},}', "line 1: a comma must not stand before a closing bracket"),
        ("[]", "line 1: expected an object, found a list"),
    ],
)
def test_a_broken_file_is_named_and_never_overwritten(home: Home, text: str, sentence: str) -> None:
    home.write_private(home.trust_file, text.encode())
    acts: list[Callable[[], object]] = [
        lambda: load_trust(home),
        lambda: remembered_entries(home, "/ws"),
        lambda: trust_entries(home, "/ws", {"plugins/A": "1"}),
        lambda: update_entry(home, "/ws", "plugins/A", "1", "2"),
        lambda: revoke_entries(home, "/ws"),
    ]
    for act in acts:
        with pytest.raises(HomeFileError) as raised:
            act()
        assert str(raised.value) == f"{home.trust_file}, {sentence}"
        assert raised.value.exit_code == 1
    assert home.trust_file.read_text() == text


def test_a_workspace_whose_path_is_no_text_cannot_be_trusted_and_breaks_nothing(home: Home) -> None:
    trust_entries(home, "/ws", {"plugins/A": "1"})
    assert remembered_entries(home, "/ws\udcff") == {}
    with pytest.raises(HomeFileError, match="is not UTF-8; rename that folder"):
        trust_entries(home, "/ws\udcff", {"plugins/A": "1"})
    assert load_trust(home) == {"/ws": {"plugins/A": "1"}}


def test_two_processes_that_trust_at_once_lose_nothing(home: Home) -> None:
    program = (
        "import sys; from pathlib import Path; from crystal.store.home import Home;"
        "from crystal.store.trust import trust_entries; home = Home(root=Path(sys.argv[1]));"
        "[trust_entries(home, '/ws', {f'plugins/{sys.argv[2]}{n}': str(n)}) for n in range(20)]"
    )
    writers = [subprocess.Popen([sys.executable, "-c", program, str(home.root), name]) for name in ("a", "b")]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert remembered_entries(home, "/ws") == {
        f"plugins/{name}{number}": str(number) for name in "ab" for number in range(20)
    }
