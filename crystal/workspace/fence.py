"""The path fence: where a path really lies and whether a call may touch it.

Every path a tool takes goes through :meth:`Fence.resolve`, at approval and again at use. It decides and opens
nothing; ``open_files`` opens what it admitted.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from crystal.types._frozen import Frozen
from crystal.types.paths import PathZone, ResolvedPath
from crystal.workspace.credentials import folded, is_credential
from crystal.workspace.hard_links import has_other_names, is_linked_credential, is_linked_entry

HOST_NAMES = (
    "config.json",
    "providers.json",
    "credentials.json",
    "permissions.json",
    "trust.json",
    "mcp.json",
    "sessions.db",
    "media",
    "logs",
    "cache",
)
"""What lies directly in the Crystal home and no tool touches, with copies and side files such as
``sessions.db-wal``."""

_HOST_FILES = frozenset(name for name in HOST_NAMES if "." in name)

_LINKS_FOLLOWED = 40
"""Symbolic links in one path before it counts as a loop; the bound of the Linux kernel."""

_PATH_BYTES = 4096
"""A path as long as this opens nothing on any system, and links on the way of it could not be seen."""

_CHARACTERS_NAMED = 200
"""A refusal names a longer path by its beginning."""


class PathRefused(Exception):
    """A path that a call may not use. The message is one sentence that names it and the mend."""


class Fence(Frozen):
    """Decides where paths lie.

    :param workspace: real path of the workspace.
    :param home: real path of the Crystal home; outside every workspace wherever it lies.
    :param user_home: real path of the user's home folder, or ``None`` to ask the system at each use.
    """

    workspace: Path
    home: Path
    user_home: Path | None = None

    def resolve(self, text: str) -> ResolvedPath:
        """Find the real path of what a model wrote and the zone it lies in.

        ``~`` is the user's home, a relative path begins at the workspace, links and ``..`` are followed for
        real as far as the path exists, and the rest of it stays. A path that leads through links which mean
        something else for each process (``/proc/self/root``, ``/dev/fd/3``) is outside whatever it reaches.

        A file with several hard links that is also a credential or a file of the Crystal home counts as that.

        :raises PathRefused: when the text is empty, too long, holds a NUL or half a surrogate pair, or its links form
            a loop.
        """
        _require_usable(text)
        path = text
        if text == "~" or text.startswith("~/"):
            path = self._users_home() + text[1:]
        start = "" if path.startswith("/") else str(self.workspace).rstrip("/")
        real, bound_to_process = _follow(path, start, text)
        zone = self._zone_of_file(real)
        if bound_to_process and zone in (PathZone.WORKSPACE, PathZone.GUARDED):
            zone = PathZone.OUTSIDE
        # The zone tells already, but for what counts by its content or its other names.
        inside = not bound_to_process and (
            zone in (PathZone.WORKSPACE, PathZone.GUARDED) or (zone is not PathZone.OUTSIDE and self.contains(real))
        )
        return ResolvedPath(text=text, real=real, zone=zone, inside=inside)

    def admit(self, text: str, permitted_paths: frozenset[str], *, writing: bool = False) -> ResolvedPath:
        """Resolve a path and refuse it unless this call may use it.

        :param permitted_paths: real paths that were approved for this very call.
        :raises PathRefused: with the sentence of :func:`permit` or of :meth:`resolve`.
        """
        resolved = self.resolve(text)
        refusal = permit(resolved, permitted_paths, writing)
        if refusal is not None:
            raise PathRefused(refusal)
        return resolved

    def zone(self, real: str) -> PathZone:
        """Return the zone of an absolute real path."""
        if is_credential(real, self._users_home()):
            return PathZone.CREDENTIAL
        tail = self._within_home(real)
        if tail is not None:
            first = folded(tail.partition("/")[0])
            if any(first == name or first.startswith((f"{name}.", f"{name}-")) for name in HOST_NAMES):
                return PathZone.HOST
            return PathZone.OUTSIDE
        tail = _below(real, str(self.workspace))
        if tail is None or _is_of_processes(real):
            return PathZone.OUTSIDE
        return PathZone.GUARDED if _is_guarded(tail) else PathZone.WORKSPACE

    def contains(self, real: str) -> bool:
        """Whether an absolute real path lies in the workspace; the Crystal home never does."""
        return (
            _below(real, str(self.workspace)) is not None
            and self._within_home(real) is None
            and not _is_of_processes(real)
        )

    def show(self, real: str) -> str:
        """Return the name an output gives a real path: relative to the workspace when it lies there."""
        tail = _below(real, str(self.workspace))
        return printable(real if tail is None else tail or ".")

    @classmethod
    def at(cls, workspace: Path, home: Path) -> Fence:
        """Build a fence from paths that may be relative or lead through links."""
        return cls(
            workspace=Path(os.path.realpath(workspace)),
            home=Path(os.path.realpath(home)),
            user_home=Path(os.path.realpath(os.path.expanduser("~"))),
        )

    def _users_home(self) -> str:
        return os.path.realpath(os.path.expanduser("~")) if self.user_home is None else str(self.user_home)

    def _within_home(self, real: str) -> str | None:
        """Return the path relative to the Crystal home, or ``None`` when it lies elsewhere."""
        home = str(self.home)
        tail = _below(real, home)
        if tail is not None:
            return tail
        # Where case does not tell folders apart, the same home may come under another spelling.
        parts = real.split("/")
        depth = home.count("/") + 1
        spelling = "/".join(parts[:depth])
        if folded(spelling) != folded(home):
            return None
        try:
            same = os.path.samefile(spelling, home)
        except OSError:
            return None
        return "/".join(parts[depth:]) if same else None

    def _zone_of_file(self, real: str) -> PathZone:
        """Return the zone of a path, taking into account other names of the file that lies there."""
        zone = self.zone(real)
        if zone in (PathZone.CREDENTIAL, PathZone.HOST):
            return zone
        status = has_other_names(real)
        if status is None:
            return zone
        if is_linked_credential(status, self._users_home()):
            return PathZone.CREDENTIAL
        return PathZone.HOST if is_linked_entry(status, str(self.home), _HOST_FILES) else zone


def permit(resolved: ResolvedPath, permitted_paths: frozenset[str], writing: bool) -> str | None:
    """Say why a call may not use a path, or ``None`` when it may.

    :param permitted_paths: real paths that were approved for this very call.
    :param writing: whether the call changes what is there.
    """
    zone = resolved.zone
    if zone is PathZone.WORKSPACE or (zone is PathZone.GUARDED and not writing):
        return None
    if resolved.real in permitted_paths:
        return None
    name = _named(resolved.text)
    if zone is PathZone.GUARDED:
        return f"{name} lies under .git or .crystal, where a write needs the operator's approval for this very call."
    if zone is PathZone.CREDENTIAL:
        return f"{name} is a place for credentials and needs the operator's approval for this very call."
    if zone is PathZone.HOST:
        return f"{name} belongs to Crystal's own home and needs the operator's approval for this very call."
    return (
        f"{name} leads outside the workspace to {printable(resolved.real)}, which was not approved for this call; "
        "use a path inside the workspace or name this one in the path argument."
    )


def printable(text: str) -> str:
    """Return a path or name as it may stand in a sentence: control characters and undecodable bytes are replaced."""
    if text.isprintable():
        return text
    return "".join(map(_printable_character, text))


def _named(text: str) -> str:
    """Return a path as a refusal names it."""
    shown = printable(text[:_CHARACTERS_NAMED])
    return shown if len(text) <= _CHARACTERS_NAMED else f"{shown}…"


def _require_usable(text: str) -> None:
    """Refuse a text that names no file on any system."""
    if not text:
        raise PathRefused("The path is empty; name a file or folder, or '.' for the workspace.")
    if "\0" in text:
        raise PathRefused(f"The path {_named(text)!r} holds a NUL character; write it without.")
    try:
        length = len(os.fsencode(text))
    except UnicodeEncodeError:
        raise PathRefused(
            f"The path {_named(text)!r} holds half of a surrogate pair; no file has such a name."
        ) from None
    if length >= _PATH_BYTES:
        raise _too_long(text)


def _too_long(text: str) -> PathRefused:
    return PathRefused(f"The path {_named(text)} is longer than a path or a name in it can be; give a shorter one.")


def _is_of_processes(real: str) -> bool:
    """Whether a path means something else for each process or shows one."""
    return real in ("/proc", "/dev/fd") or real.startswith(("/proc/", "/dev/fd/"))


def _printable_character(character: str) -> str:
    if character.isprintable() or (character.isspace() and character > "\x9f" and character not in "\u2028\u2029"):
        return character
    return "\ufffd" if "\ud800" <= character <= "\udfff" else ascii(character)[1:-1]


def _follow(path: str, start: str, text: str) -> tuple[str, bool]:
    """Follow every link and ``..`` of a path.

    It is not ``os.path.realpath`` because that cannot tell a way through ``/proc`` from an ordinary one.

    :param start: the real path of the folder that the path begins at, without a slash at its end.
    :return: the real path, and whether the way led through a link that is bound to the process which follows
        it.
    """
    pending = path.split("/")[::-1]
    real = start
    bound_to_process = False
    links = 0
    while pending:
        part = pending.pop()
        if part in ("", "."):
            continue
        if part == "..":
            real = real.rpartition("/")[0]
            continue
        candidate = f"{real}/{part}"
        try:
            target = os.readlink(candidate)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                raise _too_long(text) from None
            # No link, or nothing at all: either way this part is what it says.
            real = candidate
            continue
        links += 1
        if links > _LINKS_FOLLOWED:
            raise PathRefused(f"The links of {_named(text)} form a loop; name the file they should reach.")
        if candidate.startswith("/proc/"):
            bound_to_process = True
        if target.startswith("/"):
            real = ""
        pending.extend(target.split("/")[::-1])
    return real or "/", bound_to_process


def _below(real: str, folder: str) -> str | None:
    """Return ``real`` relative to ``folder``: empty for the folder itself, ``None`` when it does not lie there."""
    if real == folder:
        return ""
    prefix = folder if folder.endswith("/") else folder + "/"
    return real[len(prefix) :] if real.startswith(prefix) else None


def _is_guarded(tail: str) -> bool:
    """Whether a path relative to the workspace lies under a ``.git`` or a ``.crystal`` other than its ``data``."""
    names = folded(tail).split("/")
    if ".git" in names:
        return True
    if ".crystal" not in names:
        return False
    parts = tail.split("/")
    return any(
        folded(part) == ".crystal" and parts[index + 1 : index + 2] != ["data"] for index, part in enumerate(parts)
    )
