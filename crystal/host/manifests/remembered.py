"""Which manifests were found in order before, by digest, so that a start checks only what changed.

A digest is of all bytes of a manifest and of the release that judged it: what is remembered needs no second judgement.
"""

from __future__ import annotations

import os
from contextlib import suppress

from crystal._version import VERSION
from crystal.store.home import Home, HomeFileError
from crystal.workspace.open_files import FileRefused, open_regular, read_bytes

RULES = 1
"""Raised with every change of what a manifest must hold, so that a checkout forgets what its older self accepted."""

MOST_REMEMBERED = 5_000
"""Five times the sets that a start is measured with; the file is then a third of a megabyte."""

_FILE = "manifests"
_DIGITS = 64


class RememberedManifests:
    """The digests of one home, read at once and written only when there is a new one.

    :param home: whose cache keeps them.
    """

    def __init__(self, home: Home) -> None:
        self._home = home
        self._known = dict.fromkeys(_read(home))
        self._met: dict[str, None] = {}
        self._learnt = False

    def knows(self, name: str, data: bytes) -> bool:
        """Whether a manifest was found in order by this release.

        :param name: of the manifest, such as ``tools.json``.
        """
        digest = _digest(name, data)
        known = digest in self._known
        if known:
            self._met[digest] = None
        return known

    def learn(self, name: str, data: bytes) -> None:
        """Remember a manifest that was found in order."""
        digest = _digest(name, data)
        self._known[digest] = self._met[digest] = None
        self._learnt = True

    def save(self) -> None:
        """Write what was learnt; those met in this process are kept before older ones."""
        if not self._learnt:
            return
        kept = list(dict.fromkeys((*self._met, *self._known)))[:MOST_REMEMBERED]
        with suppress(HomeFileError):  # a full or read-only disk costs checking at every start and nothing else
            self._home.write_private(self._home.cache / _FILE, "".join(f"{digest}\n" for digest in kept).encode())
        self._learnt = False


def _read(home: Home) -> list[str]:
    try:
        with open_regular(os.path.realpath(home.cache / _FILE), _FILE) as opened:
            data = read_bytes(opened, MOST_REMEMBERED * (_DIGITS + 1))
    except (FileRefused, OSError):
        return []
    return data.decode("ascii", "replace").split()


def _digest(name: str, data: bytes) -> str:
    import hashlib  # loads OpenSSL, which a host without tool sets does not need

    return hashlib.sha256(f"{VERSION} {RULES} {name}\n".encode() + data).hexdigest()
