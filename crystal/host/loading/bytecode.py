"""Compiled code of extensions, kept in the home and found by the content of its source.

Python's own cache lies beside the source, where whoever writes the source can put code that no digest covers. Here the
name of an entry is a digest of everything that decides what compiling gives, and each entry carries a digest of
itself, since damaged bytes can crash the interpreter when they are read.

Whoever can write these files as the owner of the home can already replace the extensions in it; other users are kept
out: a folder or entry that is not the owner's, or that others may write, is not used. Losing any of it costs nothing
but time.
"""

from __future__ import annotations

import importlib.util
import marshal
import os
import stat
import sys
import time
from pathlib import Path
from types import CodeType

MAXIMUM_BYTES = 64 << 20
"""Past it the entries that were not used for longest are removed until three quarters are left."""

ENTRY_BYTES = 8 << 20
"""Larger entries are neither written nor read."""

SUFFIX = ".code"

_FORMAT = b"crystal bytecode 1\n"
_DIGEST_BYTES = 32
_TOUCHED_EVERY = 86_400.0
"""Seconds between two notes that an entry is in use."""


class BytecodeCache:
    """A folder of compiled modules. It may be used by several processes at once.

    :param folder: made when the first entry is written.
    """

    def __init__(self, folder: Path, maximum_bytes: int = MAXIMUM_BYTES) -> None:
        self._folder = str(folder)
        self._maximum = maximum_bytes
        self._usable: bool | None = None
        self._bytes_used: int | None = None

    def compile(self, source: bytes, path: str) -> CodeType:
        """Return the code of a module.

        :param source: what the file holds; decoded as Python does.
        :param path: the file, for tracebacks.
        :raises SyntaxError: as ``compile`` does, like whatever else it raises.
        """
        key = _key(source, path)
        code = self._read(key)
        if code is None:
            code = compile_source(source, path)
            self._write(key, code)
        return code

    def _entry(self, key: str) -> str:
        return f"{self._folder}/{key}{SUFFIX}"

    def _read(self, key: str) -> CodeType | None:
        if not self._is_usable():
            return None
        try:
            descriptor = os.open(self._entry(key), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or not _is_private(status) or status.st_size > ENTRY_BYTES:
                return None
            with open(descriptor, "rb", closefd=False) as file:
                data = file.read(ENTRY_BYTES)
            if time.time() - status.st_mtime > _TOUCHED_EVERY:
                os.utime(descriptor)
        except OSError:
            return None
        finally:
            os.close(descriptor)
        digest, body = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
        if _seal(key, body) != digest:
            return None
        try:
            code = marshal.loads(body)  # noqa: S302  # sealed, and the owner's own
        except (EOFError, ValueError, TypeError):
            return None
        return code if isinstance(code, CodeType) else None

    def _write(self, key: str, code: CodeType) -> None:
        body = marshal.dumps(code)
        if len(body) + _DIGEST_BYTES > ENTRY_BYTES or not self._is_usable(make=True):
            return
        temporary = f"{self._folder}/{os.urandom(8).hex()}.tmp"
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                with open(descriptor, "wb") as file:
                    file.write(_seal(key, body) + body)
                os.replace(temporary, self._entry(key))
            except BaseException:
                os.unlink(temporary)
                raise
        except OSError:
            # A full or read-only disk costs compiling at every start and nothing else.
            self._usable = False
            return
        self._bound(len(body) + _DIGEST_BYTES)

    def _is_usable(self, make: bool = False) -> bool:
        """Whether the folder is there, the owner's and nobody else's to write."""
        if self._usable is None or (make and not self._usable and not os.path.lexists(self._folder)):
            try:
                if make:
                    os.makedirs(os.path.dirname(self._folder), mode=0o700, exist_ok=True)
                    os.makedirs(self._folder, mode=0o700, exist_ok=True)
                status = os.lstat(self._folder)
            except OSError:
                self._usable = False
            else:
                self._usable = stat.S_ISDIR(status.st_mode) and _is_private(status)
        return self._usable

    def _bound(self, added: int) -> None:
        if self._bytes_used is None:
            self._bytes_used = sum(status.st_size for _, status in self._entries())
        else:
            self._bytes_used += added
        if self._bytes_used <= self._maximum:
            return
        entries = sorted(self._entries(), key=lambda entry: entry[1].st_mtime)
        self._bytes_used = sum(status.st_size for _, status in entries)
        for path, status in entries:
            if self._bytes_used <= self._maximum * 3 // 4:
                break
            try:
                os.unlink(path)
            except OSError:
                continue  # another process was faster, or will be
            self._bytes_used -= status.st_size

    def _entries(self) -> list[tuple[str, os.stat_result]]:
        """Return everything that this cache may have written, unfinished files included."""
        try:
            with os.scandir(self._folder) as scanned:
                found = [entry for entry in scanned if entry.name.endswith((SUFFIX, ".tmp"))]
            return [(entry.path, entry.stat(follow_symlinks=False)) for entry in found]
        except OSError:
            return []


def compile_source(source: bytes, path: str) -> CodeType:
    """Compile a module from the bytes of its file."""
    return compile(source, path, "exec", dont_inherit=True)


def _key(source: bytes, path: str) -> str:
    """Return a digest of all that decides what compiling gives: interpreter, its options, file name and content."""
    import hashlib

    interpreter = f"{sys.implementation.cache_tag} {sys.version} {sys.flags.optimize} {len(source)}\n".encode()
    digest = hashlib.sha256(_FORMAT + importlib.util.MAGIC_NUMBER + interpreter)
    digest.update(hashlib.sha256(os.fsencode(path)).digest())
    digest.update(source)
    return digest.hexdigest()


def _seal(key: str, body: bytes) -> bytes:
    """Return the digest of an entry; with its key, so that an entry copied under another name is none."""
    import hashlib

    return hashlib.sha256(key.encode() + body).digest()


def _is_private(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
