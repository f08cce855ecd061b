"""Persistent grants: ``permissions.json``. Says what was granted, never what a grant covers."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any

from crystal.store.file_lock import take_lock
from crystal.store.home import Home
from crystal.store.json_files import JsonFile, kind, read_json_object
from crystal.types._frozen import Frozen


class Grant(Frozen):
    """One standing yes of the operator.

    :param workspace: real path of the workspace it holds in.
    :param origin: who contributed the tool, such as ``builtin:shell`` or ``toolset:home/Acme.Tools``.
    :param tool: model-facing name of the tool.
    :param command: one text that the tool's grants are given for, such as a simple command of ``bash``; ``None`` for
        every call of a tool whose grants are not narrowed.
    """

    workspace: str
    origin: str
    tool: str
    command: str | None = None


def load_grants(home: Home) -> tuple[Grant, ...]:
    """Return the grants in the order they were given; none when there is no file.

    :raises HomeFileError: when the file is broken.
    """
    file = read_json_object(home.permissions_file)
    return () if file is None else tuple(_grant(file, position) for position in range(len(_entries(file))))


def is_writable(grant: Grant) -> bool:
    """Whether the file can hold the grant: a folder whose name is not UTF-8 has no place in JSON."""
    try:
        json.dumps(_entry(grant), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def add_grants(home: Home, grants: Iterable[Grant]) -> None:
    """Add grants in one write, so that none is left half done; those that are there stay as they are.

    Keys this release does not know stay in the file.

    :param grants: each :func:`is_writable`.
    :raises HomeFileError: when the file is broken, which leaves it untouched, or cannot be written.
    """
    with take_lock(home, "permissions", wait=True):
        known = load_grants(home)
        new = [grant for grant in dict.fromkeys(grants) if grant not in known]
        if not new:
            return
        file = read_json_object(home.permissions_file)
        value = dict(file.value) if file else {}
        value["grants"] = [*value.get("grants", ()), *map(_entry, new)]
        _write(home, value)


def remove_grants(home: Home, grants: Collection[Grant]) -> tuple[Grant, ...]:
    """Take grants back in one write and return those that were still there.

    :raises HomeFileError: when the file is broken, which leaves it untouched, or cannot be written.
    """
    with take_lock(home, "permissions", wait=True):
        file = read_json_object(home.permissions_file)
        if file is None:
            return ()
        entries = _entries(file)
        known = [_grant(file, position) for position in range(len(entries))]
        removed = tuple(dict.fromkeys(grant for grant in known if grant in grants))
        if removed:
            kept = [entry for entry, grant in zip(entries, known, strict=True) if grant not in removed]
            _write(home, {**file.value, "grants": kept})
        return removed


def _entries(file: JsonFile) -> list[Any]:
    entries = file.value.get("grants", [])
    if not isinstance(entries, list):
        file.refuse(("grants",), f"expected a list, found {kind(entries)}")
    return entries


def _grant(file: JsonFile, position: int) -> Grant:
    entry = _entries(file)[position]
    if not isinstance(entry, dict):
        file.refuse(("grants", position), f"expected an object, found {kind(entry)}")
    for field in ("workspace", "origin", "tool"):
        if field not in entry:
            file.refuse(("grants", position, field), "this field is required")
    for field in ("workspace", "origin", "tool", "command"):
        if not isinstance(entry.get(field, ""), str):
            file.refuse(("grants", position, field), f"expected a text, found {kind(entry[field])}")
    return Grant(workspace=entry["workspace"], origin=entry["origin"], tool=entry["tool"], command=entry.get("command"))


def _entry(grant: Grant) -> dict[str, str]:
    entry = {"workspace": grant.workspace, "origin": grant.origin, "tool": grant.tool}
    if grant.command is not None:
        entry["command"] = grant.command
    return entry


def _write(home: Home, value: dict[str, Any]) -> None:
    home.write_private(home.permissions_file, json.dumps(value, indent=2).encode() + b"\n")
