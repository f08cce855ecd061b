"""Several grants are taken back in one write, or none is."""

from __future__ import annotations

import json

import pytest

from crystal.store.home import Home, HomeFileError
from crystal.store.permissions import Grant, add_grant, load_grants
from crystal.store.revocation import remove_grants

GRANTS = tuple(Grant(workspace="/w", origin="o", tool=f"t{number}") for number in range(4))


def test_what_is_named_goes_and_the_rest_stays_in_order(home: Home) -> None:
    for grant in GRANTS:
        add_grant(home, grant)
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
    add_grant(home, GRANTS[0])
    before = home.permissions_file.stat().st_ino
    assert remove_grants(home, GRANTS[1:]) == ()
    assert home.permissions_file.stat().st_ino == before


def test_a_broken_file_is_left_as_it_is(home: Home) -> None:
    home.write_private(home.permissions_file, b'{"grants": [\n5]}')
    with pytest.raises(HomeFileError, match=r"line 2, field grants\[0\]"):
        remove_grants(home, GRANTS)
    assert home.permissions_file.read_bytes() == b'{"grants": [\n5]}'
