"""What a search may touch: the quick answer about an entry of a folder is the one about its whole path."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.workspace.admission import Admission
from crystal.workspace.credentials import FOLDERS_ANYWHERE, HOME_PATHS, KEY_SUFFIXES, NAMES_ANYWHERE, SYSTEM_PATHS
from crystal.workspace.fence import HOST_NAMES, Fence

FENCE = Fence(workspace=Path("/w/s"), home=Path("/w/s/state"), user_home=Path("/home/me"))
PLACES = [
    *HOME_PATHS,
    *SYSTEM_PATHS,
    *NAMES_ANYWHERE,
    *FOLDERS_ANYWHERE,
    *HOST_NAMES,
    "id_rsa",
    "id_rsa.pub",
    "environ",
]
NAMES = sorted(
    {part for place in PLACES for part in place.split("/") if part}
    | {f"x{suffix}" for suffix in KEY_SUFFIXES}
    | {
        "a",
        "b.py",
        ".git",
        "State",
        "state",
        "STATE",
        "é",
        "ID_RSA",
        ".SSH",
        "conf\u200big",
        "ｉd_rsa",
        "proc",
        "dev",
        "fd",
        "me",
        "s",
    }
)
ROOTS = ["/w/s", "/w/s/a", "/w", "/", "/home/me", "/home/me/.config", "/w/s/state", "/etc", "/root", "/proc", "/home"]


@settings(max_examples=100, deadline=None)
@given(
    root=st.sampled_from(ROOTS),
    below=st.lists(st.sampled_from(NAMES), max_size=3),
    names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=30),
)
def test_an_entry_is_judged_as_its_whole_path_is(root: str, below: list[str], names: list[str]) -> None:
    admits = Admission(FENCE, root, frozenset({"/w/s/id_rsa", "/home/me/.aws"}))
    folder = root
    for part in below:
        if not admits(f"{folder.rstrip('/')}/{part}"):
            return
        folder = f"{folder.rstrip('/')}/{part}"
    assert [admits.entry(folder, name) for name in names] == [admits(f"{folder.rstrip('/')}/{name}") for name in names]


@pytest.mark.parametrize(
    ("root", "admitted", "others"),
    [
        ("/w/s", ["/w/s/a", "/w/s/.git/config"], ["/w/s/id_rsa", "/w/s/state/config.json", "/w/x", "/w/s2"]),
        ("/w/s/a", ["/w/s/a/b", "/w/s/b"], ["/w/s/a/.ssh/config", "/w"]),
        ("/x/y", ["/x/y", "/x/y/z", "/w/s/a"], ["/x", "/x/yz", "/x/y/id_rsa"]),
    ],
)  # fmt: skip
def test_what_lies_below_an_admitted_folder_is_admitted_and_its_neighbours_are_not(
    root: str, admitted: list[str], others: list[str]
) -> None:
    admits = Admission(FENCE, root, frozenset())
    assert [path for path in [*admitted, *others] if admits(path)] == admitted
