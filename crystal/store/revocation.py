"""Taking grants back: several of them in one write of ``permissions.json``, so that none is left half done."""

from __future__ import annotations

import json
from collections.abc import Collection

from crystal.store.file_lock import take_lock
from crystal.store.home import Home
from crystal.store.json_files import read_json_object
from crystal.store.permissions import Grant, load_grants


def remove_grants(home: Home, grants: Collection[Grant]) -> tuple[Grant, ...]:
    """Take grants back and return those that were still there. Keys this release does not know stay in the file.

    :raises HomeFileError: when the file is broken, which leaves it untouched, or cannot be written.
    """
    with take_lock(home, "permissions", wait=True):
        # Whoever writes the file holds the lock, so both looks at it are of the same one.
        known = load_grants(home)
        file = read_json_object(home.permissions_file)
        removed = tuple(dict.fromkeys(grant for grant in known if grant in grants))
        if file is None or not removed:
            return ()
        kept = [entry for entry, grant in zip(file.value["grants"], known, strict=True) if grant not in removed]
        text = json.dumps({**file.value, "grants": kept}, indent=2)
        home.write_private(home.permissions_file, text.encode() + b"\n")
        return removed
