from __future__ import annotations

import json
import stat
import subprocess
import sys

import pytest

from crystal.store.home import Home, HomeFileError
from crystal.store.permissions import Grant, add_grant, load_grants, remove_grant

TOOL = Grant(workspace="/ws/one", origin="toolset:home/Acme.Tools", tool="acme_deploy")
COMMAND = Grant(workspace="/ws/one", origin="builtin:shell", tool="bash", command="npm ci")


def test_no_file_means_no_grants_and_none_is_made(home: Home) -> None:
    assert load_grants(home) == ()
    assert not home.root.exists()


def test_grants_come_back_in_order_from_a_private_file(home: Home) -> None:
    add_grant(home, TOOL)
    add_grant(home, COMMAND)
    assert load_grants(home) == (TOOL, COMMAND)
    assert stat.S_IMODE(home.permissions_file.stat().st_mode) == 0o600
    assert json.loads(home.permissions_file.read_bytes()) == {
        "grants": [
            {"workspace": "/ws/one", "origin": "toolset:home/Acme.Tools", "tool": "acme_deploy"},
            {"workspace": "/ws/one", "origin": "builtin:shell", "tool": "bash", "command": "npm ci"},
        ]
    }


def test_a_grant_that_is_there_is_not_added_again(home: Home) -> None:
    add_grant(home, TOOL)
    before = home.permissions_file.stat().st_ino
    add_grant(home, TOOL)
    assert load_grants(home) == (TOOL,)
    assert home.permissions_file.stat().st_ino == before


def test_unknown_keys_stay_at_every_depth(home: Home) -> None:
    entry = {"workspace": "/w", "origin": "o", "tool": "t", "given": "tomorrow"}
    home.write_private(home.permissions_file, json.dumps({"later": [1], "grants": [entry]}).encode())
    add_grant(home, COMMAND)
    assert remove_grant(home, COMMAND) is True
    assert json.loads(home.permissions_file.read_bytes()) == {"later": [1], "grants": [entry]}


def test_a_grant_can_be_taken_back_once(home: Home) -> None:
    assert remove_grant(home, TOOL) is False
    add_grant(home, TOOL)
    add_grant(home, COMMAND)
    assert remove_grant(home, TOOL) is True
    assert remove_grant(home, TOOL) is False
    assert load_grants(home) == (COMMAND,)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{\n"grants": {}}', "line 2, field grants: expected a list, found an object"),
        ('{"grants": [\n5]}', "line 2, field grants[0]: expected an object, found a number"),
        (
            '{"grants": [\n{"workspace": "/w", "tool": "t"}]}',
            "line 2, field grants[0].origin: this field is required",
        ),
        (
            '{"grants": [{"workspace": "/w", "tool": "t", "origin": "o",\n"command": null}]}',
            "line 2, field grants[0].command: expected a text, found null",
        ),
        ('{"grants": [', "line 1: the file ends in the middle of a value"),
    ],
)
def test_a_broken_file_is_named_and_never_overwritten(home: Home, text: str, sentence: str) -> None:
    home.write_private(home.permissions_file, text.encode())
    for act in (lambda: load_grants(home), lambda: add_grant(home, TOOL), lambda: remove_grant(home, TOOL)):
        with pytest.raises(HomeFileError) as raised:
            act()
        assert str(raised.value) == f"{home.permissions_file}, {sentence}"
    assert home.permissions_file.read_text() == text


def test_two_processes_that_add_at_once_lose_nothing(home: Home) -> None:
    program = (
        "import sys; from pathlib import Path; from crystal.store.home import Home;"
        "from crystal.store.permissions import Grant, add_grant; home = Home(root=Path(sys.argv[1]));"
        "[add_grant(home, Grant(workspace='/w', origin=sys.argv[2], tool=str(n))) for n in range(20)]"
    )
    adders = [subprocess.Popen([sys.executable, "-c", program, str(home.root), name]) for name in ("a", "b")]
    assert [adder.wait() for adder in adders] == [0, 0]
    assert {(grant.origin, grant.tool) for grant in load_grants(home)} == {
        (name, str(number)) for name in "ab" for number in range(20)
    }
