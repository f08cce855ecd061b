"""Read an extension's folder once: a digest of everything in it, and the bytes that its code is compiled from.

What is trusted is the digest, so nothing that is not part of it may choose what runs. Runs no code.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from crystal.store.home import describe
from crystal.types._frozen import Frozen
from crystal.workspace.fence import printable
from crystal.workspace.open_files import describe_kind

MAXIMUM_FILES = 20_000
"""Files and folders. Several times what the largest pure-Python distributions hold together; a folder past it is no
extension but, say, a whole checkout or a ``node_modules``, and reading it would hold up every start."""

MAXIMUM_BYTES = 256 << 20
"""Room for a shared compiled distribution; hashing so much takes about a second."""

MAXIMUM_DEPTH = 64
"""Folders inside one another; each holds a descriptor open while it is read."""

LINKS_FOLLOWED = 40
"""Links in one path before it counts as a loop; the bound of the Linux kernel."""

CACHE_FOLDER = "__pycache__"

_READ_PIECE = 1 << 20
_KEPT_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW


class FolderRefused(Exception):
    """A folder that cannot be taken as a whole; the message is one sentence that names the entry and the mend."""


class FolderSnapshot(Frozen):
    """The content of a folder at one moment.

    Everything in ``__pycache__`` folders is left out. Names are relative to the folder, with ``/`` between parts.

    :param folder: real path.
    :param digest: SHA-256 over ``entries``, in hexadecimal digits; the same for equal trees on every machine.
    :param files: bytes of every ``.py`` file and of the ``.json`` files directly in the folder, links to such included.
    :param entries: every file as ``file DIGEST`` or ``executable DIGEST``, every link as ``link TARGET``.
    :param links: where each link leads, relative to the folder; the folder itself is empty.
    """

    folder: Path
    digest: str
    files: Mapping[str, bytes]
    entries: Mapping[str, str]
    links: Mapping[str, str]

    def digest_with(self, name: str, data: bytes) -> str:
        """Return the digest the folder would have if one of its files held ``data`` and nothing else were changed.

        :raises KeyError: when there is no such file.
        """
        import hashlib

        name = self.resolve(name)
        kind = self.entries[name].partition(" ")[0]
        return _digest({**self.entries, name: f"{kind} {hashlib.sha256(data).hexdigest()}"})

    def resolve(self, name: str) -> str:
        """Follow the links in a name; one that goes round in a loop stays as it is."""
        if not self.links:
            return name
        for _ in range(LINKS_FOLLOWED):
            begin, rest = self._first_link(name)
            if begin is None:
                break
            name = "/".join(part for part in (self.links[begin], rest) if part)
        return name

    def _first_link(self, name: str) -> tuple[str | None, str]:
        parts = name.split("/")
        for count in range(1, len(parts) + 1):
            begin = "/".join(parts[:count])
            if begin in self.links:
                return begin, "/".join(parts[count:])
        return None, ""


def read_folder(folder: Path) -> FolderSnapshot:
    """Read a folder.

    Links that stay inside it are kept as links; what they lead to is read once, in its own place.

    :raises FolderRefused: for a link that leaves the folder or leads into a ``__pycache__``, a pipe, socket or device,
        anything that cannot be read, and more than the limits of this module.
    """
    root = os.path.realpath(folder)
    reader = _Reader(root)
    try:
        descriptor = os.open(root, _KEPT_FLAGS | os.O_DIRECTORY)
    except OSError as error:
        raise FolderRefused(f"The folder {_shown(root)} cannot be read: {describe(error)}.") from error
    try:
        reader.read_entries(descriptor, "", 1)
    finally:
        os.close(descriptor)
    reader.read_linked_code()
    return FolderSnapshot(
        folder=Path(root),
        digest=_digest(reader.entries),
        files=dict(sorted(reader.files.items())),
        entries=dict(sorted(reader.entries.items())),
        links=dict(sorted(reader.links.items())),
    )


def is_kept(name: str) -> bool:
    """Whether the bytes of a file are kept, and not its digest alone."""
    return name.endswith(".py") or ("/" not in name and name.endswith(".json"))


def _digest(entries: Mapping[str, str]) -> str:
    import hashlib  # loads OpenSSL, which a host without disk extensions does not need

    digest = hashlib.sha256(b"crystal folder 1\n")
    for name, value in sorted((os.fsencode(name), os.fsencode(value)) for name, value in entries.items()):
        digest.update(b"%d:%b%d:%b" % (len(name), name, len(value), value))
    return digest.hexdigest()


def _shown(name: str) -> str:
    return printable(name)


class _Reader:
    """One walk through a folder; later entries count against what earlier ones left of the limits."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.files: dict[str, bytes] = {}
        self.entries: dict[str, str] = {}
        self.links: dict[str, str] = {}
        self._bytes_left = MAXIMUM_BYTES
        self._entries_left = MAXIMUM_FILES

    def read_entries(self, descriptor: int, prefix: str, depth: int) -> None:
        """Read what lies in an open folder, and below it.

        :param prefix: name of the folder with a final ``/``, or empty for the whole.
        """
        if depth > MAXIMUM_DEPTH:
            raise FolderRefused(f"{_shown(prefix)} lies more than {MAXIMUM_DEPTH} folders deep; make the tree flatter.")
        for entry in self._scan(descriptor, prefix):
            name = prefix + entry.name
            try:
                if entry.is_symlink():
                    self._read_link(name)
                elif not entry.is_dir(follow_symlinks=False):
                    self.read_file(entry.name, descriptor, name)
                elif entry.name != CACHE_FOLDER:
                    inner = os.open(entry.name, _KEPT_FLAGS | os.O_DIRECTORY, dir_fd=descriptor)
                    try:
                        self.read_entries(inner, f"{name}/", depth + 1)
                    finally:
                        os.close(inner)
            except OSError as error:
                raise FolderRefused(
                    f"{_shown(name)} cannot be read: {describe(error)}; mend its permissions or take it out."
                ) from error

    def _scan(self, descriptor: int, prefix: str) -> Iterable[os.DirEntry[str]]:
        entries = []
        with os.scandir(descriptor) as scanned:
            for entry in scanned:
                entries.append(entry)
                self._entries_left -= 1
                if self._entries_left < 0:
                    raise FolderRefused(
                        f"The folder {_shown(prefix or self.root)} brings the number of entries past "
                        f"{MAXIMUM_FILES:,}; keep data and checkouts elsewhere."
                    )
        return entries

    def read_file(self, entry: str, parent: int, name: str) -> None:
        """Read one file that lies directly in an open folder."""
        import hashlib

        descriptor = os.open(entry, _KEPT_FLAGS | os.O_NONBLOCK | os.O_NOCTTY, dir_fd=parent)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise FolderRefused(f"{_shown(name)} is {describe_kind(status.st_mode)}, not a file; take it out.")
            digest = hashlib.sha256()
            pieces = []
            kept = is_kept(name)
            for piece in self._pieces(descriptor, status.st_size):
                digest.update(piece)
                if kept:
                    pieces.append(piece)
        finally:
            os.close(descriptor)
        if kept:
            self.files[name] = b"".join(pieces)
        kind = "executable" if status.st_mode & stat.S_IXUSR else "file"
        self.entries[name] = f"{kind} {digest.hexdigest()}"

    def _pieces(self, descriptor: int, size: int) -> Iterable[bytes]:
        if size > self._bytes_left:
            raise self._too_large()
        wanted = min(size + 1, _READ_PIECE)
        while piece := os.read(descriptor, wanted):
            self._bytes_left -= len(piece)
            if self._bytes_left < 0:
                raise self._too_large()
            yield piece

    def _too_large(self) -> FolderRefused:
        return FolderRefused(
            f"The folder {_shown(self.root)} holds more than {MAXIMUM_BYTES >> 20} MiB; keep data elsewhere."
        )

    def _read_link(self, name: str) -> None:
        path = f"{self.root}/{name}"
        try:
            real = os.path.realpath(path, strict=True)
            mode = os.stat(real).st_mode
        except FileNotFoundError:
            # Editors mark what they hold open with a link to nowhere.
            real, mode = os.path.realpath(path), stat.S_IFREG
        target = self._relative(real)
        if target is None:
            raise FolderRefused(f"{_shown(name)} is a link that leaves the folder; put the file itself in its place.")
        if CACHE_FOLDER in target.split("/"):
            raise FolderRefused(
                f"{_shown(name)} is a link into {CACHE_FOLDER}, which is never looked at; "
                "put the file itself in its place."
            )
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise FolderRefused(f"{_shown(name)} is a link to {describe_kind(mode)}, not to a file; take it out.")
        self.links[name] = target
        self.entries[name] = f"link {target}"

    def _relative(self, real: str) -> str | None:
        if real == self.root:
            return ""
        return real[len(self.root) + 1 :] if real.startswith(f"{self.root}/") else None

    def read_linked_code(self) -> None:
        """Keep, under the name of each link to a file, the bytes that were digested in the file's own place."""
        for name, target in self.links.items():
            if not is_kept(name) or target not in self.entries:
                continue
            data = self.files.get(target)
            if data is None:
                data = self._read_again(name, target)
            self.files[name] = data

    def _read_again(self, name: str, target: str) -> bytes:
        """Read a file whose bytes were digested and not kept, since only a link calls it code."""
        again = _Reader(self.root)
        folder, _, entry = target.rpartition("/")
        try:
            parent = os.open(f"{self.root}/{folder}", _KEPT_FLAGS | os.O_DIRECTORY)
            try:
                again.read_file(entry, parent, name)
            finally:
                os.close(parent)
        except OSError as error:
            raise FolderRefused(f"{_shown(target)} cannot be read: {describe(error)}.") from error
        if again.entries[name] != self.entries[target]:
            raise FolderRefused(f"{_shown(target)} changed while the folder was being read; try again.")
        return again.files[name]
