"""Where the words of a command lead: every folder it may run in, the fence, and the names that patterns meet."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from crystal.types.approval import Authority, Risk
from crystal.types.paths import PathZone, ResolvedPath
from crystal.workspace.fence import PathRefused
from plugins_builtin.shell_risk.patterns import folder_names, names_met
from plugins_builtin.shell_risk.words import Word

FOLDERS = 8
"""Most folders a line may wander through before it is Privileged."""

PATTERN_ENTRIES = 10_000
"""Most folder entries that the patterns of one line are compared with; a line that needs more is Privileged."""

PATTERN_NAMES = 500
"""Most names one line's patterns may meet and have looked at; beyond, it is Privileged."""

LONGEST_PATH = 4096
"""A longer word names no file on any supported system."""

_STANDARD_DEVICES = frozenset(("/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero"))
_RANDOM_DEVICES = frozenset(("/dev/random", "/dev/urandom"))
_RAW_DEVICE = re.compile(r"/dev/(sd|hd|vd|xvd|nvme|mmcblk|r?disk|md|dm-|mapper/|loop|k?mem\b|port\b|nbd|zd)")
_EVERYTHING = frozenset(("*", ".*", "**", ".[!.]*", "..?*", "{*,.*}"))
_BLANK = re.compile(r"\s")
_NOTHING_BUT_A_PATH = re.compile(r"[A-Za-z0-9_./~+%][A-Za-z0-9_./~+%-]*")
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")
_PLAIN = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]*)(?:/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*/?")
"""A relative path without ``..``; where its first part is not there, the rest leads nowhere else."""

_OPTION = re.compile(r"--?[A-Za-z0-9-]*")
"""An option without a value."""

_KEY_LIKE = re.compile(
    r"id_|key|pem|ssh|secring|git-credentials|pypirc|gnupg|password|environ|mem|crystal|git\b", re.IGNORECASE
)
_MEANS_MORE = re.compile(f"^[-@]|[=:,]|{_KEY_LIKE.pattern}", re.IGNORECASE)
"""Names that are looked at even where they are no links: options, lists, keys."""


class Fence(Protocol):
    """The part of the fence that is needed here."""

    def resolve(self, text: str) -> ResolvedPath:
        """Find where a path lies.

        :raises PathRefused: the text is no usable path.
        """


class Places:
    """Judges paths; what it finds goes to ``raise_to``."""

    def __init__(self, fence: Fence, raise_to: Callable[[Risk, Authority], None]) -> None:
        self.folders: tuple[str, ...] = ("",)
        self._fence = fence
        self._raise_to = raise_to
        self._entries_left = PATTERN_ENTRIES
        self._names_left = PATTERN_NAMES
        self._seen: set[tuple[str, bool, tuple[str, ...]]] = set()
        self._looked: set[tuple[str, bool, tuple[str, ...]]] = set()
        self._moved: set[str] = set()
        self._absent: dict[tuple[str, tuple[str, ...]], bool] = {}
        self._resolved: dict[str, ResolvedPath | None] = {}
        self._root = self._resolve(".")
        self._are_plain = True

    def look(self, word: Word, *, writes: bool) -> None:
        """Judge a word that its program may take for a path."""
        if word.glob >= 0:
            self._look_at_pattern(word, writes)
            return
        text = word.text
        key = (text, writes, self.folders)
        if key in self._looked or _OPTION.fullmatch(text):
            return
        self._looked.add(key)
        for candidate in path_candidates(text):
            if not self._leads_nowhere(candidate):
                self.look_at(candidate, writes=writes)

    def look_at(self, text: str, *, writes: bool) -> None:
        """Judge one path in every folder the command may run in."""
        key = (text, writes, self.folders)
        if key in self._seen or text in _STANDARD_DEVICES or (text in _RANDOM_DEVICES and not writes):
            return
        self._seen.add(key)
        if self._moved and any(text == name or text.startswith(f"{name}/") for name in self._moved):
            # Where it leads now says nothing about where it leads then.
            self._raise_to(Risk.PRIVILEGED, Authority(0))
        if writes and _RAW_DEVICE.match(text):
            self._raise_to(Risk.FORBIDDEN, Authority.WORKSPACE)
        for folder in self.folders:
            path = self._resolve(_join(folder, text))
            if path is None:
                if _looks_like_a_path(text):
                    self._raise_to(Risk.PRIVILEGED, Authority.OUTSIDE_WORKSPACE)
                continue
            if path.zone in (PathZone.CREDENTIAL, PathZone.HOST):
                self._raise_to(Risk.FORBIDDEN, Authority(0))
            if path.zone is PathZone.GUARDED and writes:
                self._raise_to(Risk.PRIVILEGED, Authority(0))
            if not path.inside or path.zone is PathZone.OUTSIDE:
                self._raise_to(Risk.WRITE, Authority.OUTSIDE_WORKSPACE)

    def enter(self, target: Word) -> None:
        """Follow a ``cd``; where it leads must be known, or every later path is unsure."""
        self.look(target, writes=False)
        text = target.text
        if target.opaque or target.glob >= 0 or text.startswith("-") or not text:
            self._raise_to(Risk.PRIVILEGED, Authority(0))
            return
        entered = tuple(dict.fromkeys(_join(folder, text) for folder in self.folders))
        if ".." in text.split("/") and not all(map(self._is_straight, self.folders)):
            # Through a link bash follows ``..`` by name and other programs follow it for real.
            self._raise_to(Risk.PRIVILEGED, Authority(0))
        self.folders = entered[:FOLDERS]
        self._are_plain = self._are_plain and all(map(self._is_plain, self.folders))

    def move(self, names: Iterable[str]) -> None:
        """Note that names stand for something else from here on: links may have come to lie there."""
        self._moved.update(name.rstrip("/") for name in names if name)
        self._seen.clear()
        self._looked.clear()

    def remember(self, earlier: tuple[str, ...]) -> None:
        """Count folders in again, in which the command may still be."""
        self.folders = tuple(dict.fromkeys((*earlier, *self.folders)))
        if len(self.folders) > FOLDERS:
            self._raise_to(Risk.PRIVILEGED, Authority(0))
            self.folders = self.folders[:FOLDERS]

    def is_a_root(self, text: str) -> bool:
        """Whether ``text`` is the file system's root, the home, the workspace or a folder around one of them."""
        folder, slash, last = text.rpartition("/")
        if last in _EVERYTHING:
            text = folder or slash or "."
        protected = [path.real for path in (self._resolve("~"), self._root) if path is not None]
        for base in self.folders:
            path = self._resolve(_join(base, text))
            if path is not None and any(
                path.real in ("/", root) or root.startswith(path.real + "/") for root in protected
            ):
                return True
        return False

    def _is_plain(self, folder: str) -> bool:
        """Whether a folder lies in the workspace as its name says, and is nothing that is guarded."""
        path = self._resolve(folder or ".")
        return path is not None and path.zone is PathZone.WORKSPACE and self._is_straight(folder)

    def _is_straight(self, folder: str) -> bool:
        path = self._resolve(folder or ".")
        return (
            path is not None and self._root is not None and path.real == os.path.normpath(f"{self._root.real}/{folder}")
        )

    def _leads_nowhere(self, text: str) -> bool:
        """Whether a path begins with a name that is not there and holds none that counts wherever it lies."""
        if not self._are_plain or self._moved:
            return False
        plain = _PLAIN.fullmatch(text)
        return plain is not None and not _KEY_LIKE.search(text) and self._is_absent(plain[1])

    def _is_absent(self, name: str) -> bool:
        """Whether no folder the command may run in has that name, so that it leads nowhere else."""
        known = self._absent.get((name, self.folders))
        if known is None:
            known = self._absent[name, self.folders] = self._look_for(name)
        return known

    def _look_for(self, name: str) -> bool:
        if self._root is None:
            return False
        for folder in self.folders:
            if folder.startswith(("/", "~")):
                return False
            try:
                os.lstat(f"{self._root.real}/{folder}/{name}")
            except OSError:
                continue
            return False
        return True

    def _look_at_pattern(self, word: Word, writes: bool) -> None:
        """Judge a word that bash replaces by names, as bad as the worst of them and as the word itself."""
        for candidate in path_candidates(word.text):
            self.look_at(candidate, writes=writes)
        if word.text.startswith("-"):
            # It may meet a file whose name is an option.
            self._raise_to(Risk.PRIVILEGED, Authority(0))
        for path in self._met(word):
            if path.startswith(("-", "@")):
                # The program may take it for an option or for a list of arguments.
                self._raise_to(Risk.PRIVILEGED, Authority(0))
            for candidate in path_candidates(path):
                self.look_at(candidate, writes=writes)

    def _met(self, word: Word) -> Iterator[str]:
        """Yield the paths that a pattern may stand for, part by part."""
        parts = word.text.split("/")
        pending = [("", 0)]
        at = 0
        while pending:
            path, index = pending.pop()
            if index == len(parts):
                yield path.rstrip("/")
                continue
            at = sum(len(part) + 1 for part in parts[:index])
            part, is_last = parts[index], index == len(parts) - 1
            first = max(word.glob - at, 0) if word.glob < at + len(part) else -1
            if first < 0 or not any(sign in part for sign in "*?[") or (at < word.glob and word.glob >= at + len(part)):
                pending.append((path + part + ("" if is_last else "/"), index + 1))
                continue
            for name in self._names(path or ".", part, first, is_last):
                if self._names_left <= 0:
                    self._raise_to(Risk.PRIVILEGED, Authority(0))
                    return
                self._names_left -= 1
                pending.append((path + name + ("" if is_last else "/"), index + 1))

    def _names(self, folder: str, pattern: str, first: int, is_last: bool) -> list[str]:
        """Return the names a pattern may meet; of the last part only those that lead elsewhere or mean something."""
        met: dict[str, None] = {}
        for base in self.folders:
            path = self._resolve(_join(base, folder))
            names = {} if path is None else folder_names(path.real, self._entries_left)
            if names is None:
                self._raise_to(Risk.PRIVILEGED, Authority(0))
                self._entries_left = 0
                break
            self._entries_left -= len(names)
            found = names_met(names, pattern, first)
            if is_last and path is not None and path.zone is PathZone.WORKSPACE:
                found = [name for name in found if names.get(name, True) or _MEANS_MORE.search(name)]
            met.update(dict.fromkeys(found))
        return list(met)

    def _resolve(self, text: str) -> ResolvedPath | None:
        """Return where ``text`` lies; a text that no path can be, or a ``~user``, leads nobody knows where."""
        if text.startswith("~") and text != "~" and not text.startswith("~/"):
            return None
        if text not in self._resolved:
            try:
                self._resolved[text] = self._fence.resolve(text)
            except PathRefused:
                self._resolved[text] = None
        return self._resolved[text]


def path_candidates(text: str) -> list[str]:
    """Return what its program could take for a path in a word: the word, option values, list entries."""
    if not text or text == "-" or len(text) > LONGEST_PATH:
        return []
    if _NOTHING_BUT_A_PATH.fullmatch(text):
        return [text]
    if _URL.match(text):
        return []
    if _BLANK.search(text):
        # A sentence is no path, unless it begins like one.
        return [text] if text.startswith(("/", "~", "../", "./")) and "\n" not in text else []
    found = [] if text.startswith("-") else [text]
    if text.startswith("-") and not text.startswith("--"):
        # A value may be attached to the first letter or to a later one of the cluster.
        found += [text[2:], *(text[at:] for at in (text.find("/"), text.find("~"), text.find("..")) if at > 0)]
    if "=" in text or ":" in text or "," in text or "@" in text:
        found.append(text.partition("=")[2])
        found += [part for part in re.split("[=:,@]", text)[1:] if not part.startswith("//")]
    return list(dict.fromkeys(candidate for candidate in found if candidate and not _URL.match(candidate)))


def _looks_like_a_path(text: str) -> bool:
    return "/" in text or text.startswith(("~", ".."))


def _join(folder: str, text: str) -> str:
    return text if not folder or text == "~" or text.startswith(("/", "~/")) else f"{folder}/{text}"
