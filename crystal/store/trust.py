"""Which entries of which workspaces the operator trusts: ``trust.json``. Knows digests, never what they were made of.

The file is ``{"workspaces": {REAL PATH: {"entries": {"plugins/Acme": DIGEST}}}}``; an entry is a plugin folder
(``plugins/NAME``), a tool-set folder (``tools/NAME``), a prompt file (``prompts/FILE``) or one server
(``mcp.json#SERVER``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from crystal.store.errors import HomeFileError
from crystal.store.file_lock import take_lock
from crystal.store.home import Home
from crystal.store.json_files import JsonFile, kind, read_json_object
from crystal.types._frozen import Frozen


class TrustReview(Frozen):
    """Entries that are there, sorted by whether the operator trusts them as they are.

    :param changed: trusted once, with other content.
    """

    trusted: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    new: tuple[str, ...] = ()


def trusted_entries(remembered: Mapping[str, str], present: Mapping[str, str]) -> TrustReview:
    """Compare the digests of what is there with those the operator trusted.

    :param remembered: digest by entry, from :func:`remembered_entries`.
    :param present: digest by entry, as they are now.
    """
    return TrustReview(
        trusted=tuple(entry for entry in present if remembered.get(entry) == present[entry]),
        changed=tuple(entry for entry in present if entry in remembered and remembered[entry] != present[entry]),
        new=tuple(entry for entry in present if entry not in remembered),
    )


def load_trust(home: Home) -> dict[str, dict[str, str]]:
    """Return the trusted entries of every workspace: real path, entry, digest. Nothing when there is no file.

    :raises HomeFileError: when the file is broken.
    """
    file = read_json_object(home.trust_file)
    return {} if file is None else {workspace: _entries(file, workspace) for workspace in _workspaces(file)}


def remembered_entries(home: Home, workspace: str) -> dict[str, str]:
    """Return digest by entry for one workspace.

    :param workspace: real path.
    :raises HomeFileError: when the file is broken.
    """
    return load_trust(home).get(workspace, {})


def trust_entries(home: Home, workspace: str, entries: Mapping[str, str]) -> None:
    """Trust entries with these digests; other entries and keys this release does not know stay.

    :param workspace: real path.
    :raises HomeFileError: when the file is broken, which leaves it untouched, or cannot be written, or the path is
        not text.
    """
    with take_lock(home, "trust", wait=True):
        file = read_json_object(home.trust_file)
        known = {} if file is None else _entries(file, workspace)
        _write(home, file, workspace, {**known, **entries})


def update_entry(home: Home, workspace: str, entry: str, before: str, after: str) -> bool:
    """Give one trusted entry a new digest, unless it is trusted with another one than ``before`` by now.

    :return: whether it was changed.
    :raises HomeFileError: when the file is broken, which leaves it untouched, or cannot be written.
    """
    with take_lock(home, "trust", wait=True):
        file = read_json_object(home.trust_file)
        if file is None:
            return False
        known = _entries(file, workspace)
        if known.get(entry) != before:
            return False
        _write(home, file, workspace, {**known, entry: after})
        return True


def revoke_entries(home: Home, workspace: str, entries: frozenset[str] | None = None) -> tuple[str, ...]:
    """Take trust back and return which entries were trusted.

    :param entries: the ones to take back, or ``None`` for all of the workspace.
    :raises HomeFileError: when the file is broken, which leaves it untouched, or cannot be written.
    """
    if read_json_object(home.trust_file) is None:
        return ()
    with take_lock(home, "trust", wait=True):
        file = read_json_object(home.trust_file)
        if file is None:
            return ()
        known = _entries(file, workspace)
        revoked = tuple(entry for entry in known if entries is None or entry in entries)
        if revoked:
            _write(home, file, workspace, {entry: known[entry] for entry in known if entry not in revoked})
        return revoked


def _workspaces(file: JsonFile) -> dict[str, Any]:
    return _object(file, ("workspaces",), file.value.get("workspaces", {}))


def _entries(file: JsonFile, workspace: str) -> dict[str, str]:
    place = ("workspaces", workspace)
    record = _object(file, place, _workspaces(file).get(workspace, {}))
    entries = _object(file, (*place, "entries"), record.get("entries", {}))
    for name, digest in entries.items():
        if not isinstance(digest, str):
            file.refuse((*place, "entries", name), f"expected a digest, found {kind(digest)}")
    return entries


def _object(file: JsonFile, place: tuple[str, ...], value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        file.refuse(place, f"expected an object, found {kind(value)}")
    return value


def _write(home: Home, file: JsonFile | None, workspace: str, entries: Mapping[str, str]) -> None:
    try:
        workspace.encode()
    except UnicodeEncodeError:
        raise HomeFileError(
            home.trust_file, f"cannot hold the path {workspace!a}, which is not UTF-8; rename that folder"
        ) from None
    value = {} if file is None else dict(file.value)
    workspaces = dict(value.get("workspaces", {}))
    record = {key: kept for key, kept in workspaces.get(workspace, {}).items() if key != "entries" or entries}
    if entries:
        record["entries"] = dict(entries)
    workspaces[workspace] = record
    if not record:
        del workspaces[workspace]
    home.write_private(home.trust_file, json.dumps({**value, "workspaces": workspaces}, indent=2).encode() + b"\n")
