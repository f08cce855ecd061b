from __future__ import annotations

import json
import stat
import subprocess
import sys

import pytest

from crystal.store.home import Home, HomeFileError
from crystal.store.permissions import Grant, add_grants, load_grants, remove_grants

TOOL = Grant(workspace="/ws/one", origin="toolset:home/Acme.Tools", tool="acme_deploy")
COMMAND = Grant(workspace="/ws/one", origin="builtin:shell", tool="bash", command="npm ci")
GRANTS = tuple(Grant(workspace="/w", origin="o", tool=f"t{number}") for number in range(4))


def test_no_file_means_no_grants_and_none_is_made(home: Home) -> None:
    assert load_grants(home) == ()
    assert not home.root.exists()


def test_grants_come_back_in_order_from_a_private_file(home: Home) -> None:
    add_grants(home, [TOOL])
    add_grants(home, [COMMAND])
    assert load_grants(home) == (TOOL, COMMAND)
    assert stat.S_IMODE(home.permissions_file.stat().st_mode) == 0o600
    assert json.loads(home.permissions_file.read_bytes()) == {
        "grants": [
            {"workspace": "/ws/one", "origin": "toolset:home/Acme.Tools", "tool": "acme_deploy"},
            {"workspace": "/ws/one", "origin": "builtin:shell", "tool": "bash", "command": "npm ci"},
        ]
    }


def test_a_grant_that_is_there_is_not_added_again(home: Home) -> None:
    add_grants(home, [TOOL])
    before = home.permissions_file.stat().st_ino
    add_grants(home, [TOOL])
    assert load_grants(home) == (TOOL,)
    assert home.permissions_file.stat().st_ino == before


def test_unknown_keys_stay_at_every_depth(home: Home) -> None:
    entry = {"workspace": "/w", "origin": "o", "tool": "t", "given": "tomorrow"}
    home.write_private(home.permissions_file, json.dumps({"later": [1], "grants": [entry]}).encode())
    add_grants(home, [COMMAND])
    assert remove_grants(home, [COMMAND]) == (COMMAND,)
    assert json.loads(home.permissions_file.read_bytes()) == {"later": [1], "grants": [entry]}


def test_a_grant_can_be_taken_back_once(home: Home) -> None:
    assert remove_grants(home, [TOOL]) == ()
    add_grants(home, [TOOL])
    add_grants(home, [COMMAND])
    assert remove_grants(home, [TOOL]) == (TOOL,)
    assert remove_grants(home, [TOOL]) == ()
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
    for act in (lambda: load_grants(home), lambda: add_grants(home, [TOOL]), lambda: remove_grants(home, [TOOL])):
        with pytest.raises(HomeFileError) as raised:
            act()
        assert str(raised.value) == f"{home.permissions_file}, {sentence}"
    assert home.permissions_file.read_text() == text


def test_two_processes_that_add_at_once_lose_nothing(home: Home) -> None:
    program = (
        "import sys; from pathlib import Path; from crystal.store.home import Home;"
        "from crystal.store.permissions import Grant, add_grants; home = Home(root=Path(sys.argv[1]));"
        "[add_grants(home, [Grant(workspace='/w', origin=sys.argv[2], tool=str(n))]) for n in range(20)]"
    )
    adders = [subprocess.Popen([sys.executable, "-c", program, str(home.root), name]) for name in ("a", "b")]
    assert [adder.wait() for adder in adders] == [0, 0]
    assert {(grant.origin, grant.tool) for grant in load_grants(home)} == {
        (name, str(number)) for name in "ab" for number in range(20)
    }


def test_what_is_named_goes_and_the_rest_stays_in_order(home: Home) -> None:
    for grant in GRANTS:
        add_grants(home, [grant])
    before = home.permissions_file.stat().st_ino
    assert remove_grants(home, (GRANTS[2], GRANTS[0], Grant(workspace="/w", origin="o", tool="gone"))) == (
        GRANTS[0],
        GRANTS[2],
    )
    assert load_grants(home) == (GRANTS[1], GRANTS[3])
    assert home.permissions_file.stat().st_ino != before


def test_a_grant_that_stands_twice_goes_whole_and_unknown_keys_stay(home: Home) -> None:
    twice = {"workspace": "/w", "origin": "o", "tool": "t0"}
    other = {"workspace": "/w", "origin": "o", "tool": "t1", "given": "tomorrow"}
    text = json.dumps({"later": [1], "grants": [twice, other, {**twice, "given": "today"}]})
    home.write_private(home.permissions_file, text.encode())
    assert remove_grants(home, [GRANTS[0]]) == (GRANTS[0],)
    assert json.loads(home.permissions_file.read_bytes()) == {"later": [1], "grants": [other]}


def test_nothing_is_written_when_nothing_goes(home: Home) -> None:
    assert remove_grants(home, GRANTS) == ()
    assert not home.permissions_file.exists()
    add_grants(home, [GRANTS[0]])
    before = home.permissions_file.stat().st_ino
    assert remove_grants(home, GRANTS[1:]) == ()
    assert home.permissions_file.stat().st_ino == before


def test_a_broken_file_is_left_as_it_is(home: Home) -> None:
    home.write_private(home.permissions_file, b'{"grants": [\n5]}')
    with pytest.raises(HomeFileError, match=r"line 2, field grants\[0\]"):
        remove_grants(home, GRANTS)
    assert home.permissions_file.read_bytes() == b'{"grants": [\n5]}'
