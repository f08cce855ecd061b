"""The risk and authority of a shell command: strict, and Privileged wherever it is not sure.

:func:`classify_command` is the one door. It reads the command with ``shell_words``, knows harmless programs
from ``shell_programs`` and places from the fence; it never searches the text of a command for bad ones. Of the
file system it asks only where links lead and which names a folder holds.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Protocol

from crystal.types.approval import Authority, Classification, Risk
from crystal.types.paths import PathZone, ResolvedPath
from crystal.workspace.fence import PathRefused
from plugins_builtin.one_line import one_line
from plugins_builtin.program_reach import (
    DOWNLOAD_PROGRAMS,
    ESCALATION_PROGRAMS,
    GIT_NETWORK_VERBS,
    INTERPRETERS,
    NETWORK_PROGRAMS,
    SCRIPT_RUNNERS,
)
from plugins_builtin.shell_patterns import folder_names, names_met
from plugins_builtin.shell_programs import Reach, understand
from plugins_builtin.shell_words import Pipeline, Redirection, ShellLine, SimpleCommand, Word, read_line

NESTING = 4
"""How deep command lines inside words are looked at; deeper ones stay Privileged like every runner."""

FOLDERS = 8
"""Most folders a line may wander through before it is Privileged."""

PATTERN_ENTRIES = 10_000
"""Most folder entries that the patterns of one line are compared with; a line that needs more is Privileged."""

LONGEST_PATH = 4096
"""A longer word names no file on any supported system."""

_STANDARD_DEVICES = frozenset({"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"})
_RAW_DEVICE = re.compile(r"/dev/(sd|hd|vd|xvd|nvme|mmcblk|r?disk|md|dm-|mapper/|loop|k?mem\b|port\b)")
_PROGRAM_NAME = re.compile(r"[A-Za-z0-9_.+-]+")
_EVERYTHING = frozenset({"*", ".*", "**", ".[!.]*", "..?*"})


class Places(Protocol):
    """The part of the fence that is needed here."""

    def resolve(self, text: str) -> ResolvedPath:
        """Find where a path lies.

        :raises PathRefused: the text is no usable path.
        """


def classify_command(command: str, fence: Places) -> Classification:
    """Return the class of a command line: the worst of its parts, Privileged for what is not understood.

    :param command: what bash would be given.
    :param fence: resolves paths relative to the workspace, in which the command starts.
    """
    judge = _Judge(fence)
    line = read_line(command)
    judge.line(line, 0)
    if line.unclear or not line.pipelines or _moves_before_others(line):
        judge.raise_to(Risk.PRIVILEGED)
        judge.names(_PROGRAM_NAME.findall(line.rest))
    return Classification(risk=judge.risk, authority=judge.authority, summary=one_line(command.strip()))


def _moves_before_others(line: ShellLine) -> bool:
    """Whether commands follow a ``mv``: they are judged by places as they are now, which the move changes."""
    commands = [command for pipeline in line.pipelines for command in pipeline.commands]
    return any(word.text.rpartition("/")[2] == "mv" for command in commands[:-1] for word in command.words[:1])


class _Judge:
    """Walks a command line and keeps the worst it finds; risk and authority only rise."""

    def __init__(self, fence: Places) -> None:
        self.risk = Risk.WRITE
        self.authority = Authority.WORKSPACE
        self._fence = fence
        self._folders: tuple[str, ...] = ("",)
        self._entries_left = PATTERN_ENTRIES

    def raise_to(self, risk: Risk, authority: Authority = Authority.WORKSPACE) -> None:
        self.risk = max(self.risk, risk)
        self.authority |= authority

    def names(self, names: Sequence[str]) -> None:
        """Add what known programs among ``names`` reach."""
        for name in names:
            program = name.rpartition("/")[2]
            if program in NETWORK_PROGRAMS:
                self.authority |= Authority.NETWORK
            if program in ESCALATION_PROGRAMS:
                self.authority |= Authority.PRIVILEGED_ESCALATION

    def line(self, line: ShellLine, depth: int) -> None:
        """Judge every pipeline, following plain ``cd`` commands.

        After ``cd x &&`` the folder is known; once a ``;`` or ``||`` has passed, the command may run in any folder
        that was named so far, and the worst of them counts.
        """
        known = True
        every = self._folders
        for pipeline in line.pipelines:
            self._pipeline(pipeline, depth)
            entered = self._entered(pipeline)
            every = tuple(dict.fromkeys((*every, *entered)))
            if len(every) > FOLDERS:
                self.raise_to(Risk.PRIVILEGED)
                every = every[:FOLDERS]
            if pipeline.follower != "&&":
                known = pipeline.follower != "||"
                self._folders = every
            elif entered:
                self._folders = entered[:FOLDERS] if known else every

    def _entered(self, pipeline: Pipeline) -> tuple[str, ...]:
        """Return the folders a plain ``cd`` leads to; none for every other pipeline."""
        target = _cd_target(pipeline)
        return () if target is None else tuple(_join(folder, target.text) for folder in self._folders)

    def _pipeline(self, pipeline: Pipeline, depth: int) -> None:
        target = _cd_target(pipeline)
        if target is not None:
            self._path(target, writes=False)
            for redirection in pipeline.commands[0].redirections:
                self._redirection(redirection)
            return
        downloads = False
        for command in pipeline.commands:
            programs = {word.text.rpartition("/")[2] for word in command.words}
            understood = self._command(command, depth)
            if understood:
                continue
            if downloads and not INTERPRETERS.isdisjoint(programs):
                self.raise_to(Risk.FORBIDDEN)
            downloads = downloads or not DOWNLOAD_PROGRAMS.isdisjoint(programs)

    def _command(self, command: SimpleCommand, depth: int) -> bool:
        """Judge one simple command; return whether it is known as harmless."""
        for redirection in command.redirections:
            self._redirection(redirection)
        if not command.words:
            return True
        reach = understand(command.words)
        if reach is None:
            self.raise_to(Risk.PRIVILEGED)
            self._unsure(command.words, depth)
            return False
        self._reach(reach)
        return True

    def _reach(self, reach: Reach) -> None:
        for word in reach.paths:
            self._path(word, reach.writes)
        for arrival in reach.arrivals:
            self._place(arrival, writes=True)
        if reach.compares and any(word.glob >= 0 or self._is_a_folder(word.text) for word in reach.paths):
            self.raise_to(Risk.PRIVILEGED)

    def _unsure(self, words: Sequence[Word], depth: int) -> None:
        """Look through a command that is Privileged anyway for what makes it worse."""
        texts = [word.text for word in words]
        programs = [text.rpartition("/")[2] for text in texts]
        self.names(texts)
        if "git" in programs and not GIT_NETWORK_VERBS.isdisjoint(texts):
            self.authority |= Authority.NETWORK
        for word in words[1:]:
            self._path(word, writes=True)
        for index, program in enumerate(programs):
            if program == "rm" and self._removes_a_root(words[index + 1 :]):
                self.raise_to(Risk.FORBIDDEN)
        if depth < NESTING and not SCRIPT_RUNNERS.isdisjoint(programs):
            for text in texts:
                if re.search(r"[\s;&|]", text):
                    # ``env -S'rm x'`` has its command line attached to the option.
                    inner = read_line(text[2:] if text.startswith("-") else text)
                    self.line(inner, depth + 1)
                    self.names(_PROGRAM_NAME.findall(inner.rest))

    def _redirection(self, redirection: Redirection) -> None:
        operator, target = redirection
        if operator in (">&", "<&") and not target.opaque and re.fullmatch(r"[0-9]+-?|-", target.text):
            return
        if target.opaque or target.glob >= 0:
            self.raise_to(Risk.PRIVILEGED)
        if target.text.startswith(("/dev/tcp/", "/dev/udp/")):
            self.raise_to(Risk.PRIVILEGED, Authority.NETWORK)
        self._path(target, writes=operator != "<")

    def _path(self, word: Word, writes: bool) -> None:
        if word.glob >= 0:
            self._pattern(word, writes)
            return
        for candidate in path_candidates(word.text):
            self._place(candidate, writes)

    def _pattern(self, word: Word, writes: bool) -> None:
        """Judge a word that bash replaces by names, as bad as the worst of them and as the word itself.

        A pattern that a writing program is given is Privileged, and so is one that chooses a folder.
        """
        text = word.text
        if writes or "/" in text[word.glob :]:
            self.raise_to(Risk.PRIVILEGED)
        if ".." in text[word.glob :].split("/"):
            self.raise_to(Risk.PRIVILEGED, Authority.OUTSIDE_WORKSPACE)
        folder, slash, _ = text[: word.glob].rpartition("/")
        for candidate in path_candidates(folder or slash or "."):
            if self._place(candidate, writes):
                self.raise_to(Risk.PRIVILEGED)
        for candidate in path_candidates(text):
            self._place(candidate, writes)
        if "/" in text[word.glob :]:
            return
        start = len(folder + slash)
        for name in self._names_met(folder or slash or ".", text[start:], word.glob - start):
            if name.startswith(("-", "@")) and not start:
                # The program may take it for an option or for a list of arguments.
                self.raise_to(Risk.PRIVILEGED)
            for candidate in path_candidates(text[:start] + name):
                self._place(candidate, writes)

    def _names_met(self, folder: str, pattern: str, first: int) -> list[str]:
        """Return the names a pattern may stand for in every folder the command may run in."""
        met: dict[str, None] = {}
        for base in self._folders:
            path = self._resolve(_join(base, folder))
            names = [] if path is None else folder_names(path.real, self._entries_left)
            if names is None:
                self.raise_to(Risk.PRIVILEGED)
                self._entries_left = 0
                break
            self._entries_left -= len(names)
            met.update(dict.fromkeys(names_met(names, pattern, first)))
        return list(met)

    def _is_a_folder(self, text: str) -> bool:
        paths = (self._resolve(_join(base, text)) for base in self._folders)
        return any(path is not None and os.path.isdir(path.real) for path in paths)

    def _place(self, text: str, writes: bool) -> bool:
        """Judge one path in every folder the command may run in; return whether it leaves the workspace."""
        leaves = False
        if text in _STANDARD_DEVICES:
            return False
        if _RAW_DEVICE.match(text) and writes:
            self.raise_to(Risk.FORBIDDEN)
        for folder in self._folders:
            path = self._resolve(_join(folder, text))
            if path is None:
                leaves = leaves or _looks_like_a_path(text)
                continue
            if path.zone in (PathZone.CREDENTIAL, PathZone.HOST):
                self.raise_to(Risk.FORBIDDEN)
            if path.zone is PathZone.GUARDED and writes:
                self.raise_to(Risk.PRIVILEGED)
            leaves = leaves or not path.inside or path.zone is PathZone.OUTSIDE
        if leaves:
            self.authority |= Authority.OUTSIDE_WORKSPACE
        return leaves

    def _resolve(self, text: str) -> ResolvedPath | None:
        """Return where ``text`` lies; a text that no path can be is Privileged where it looks like one."""
        if text.startswith("~") and text != "~" and not text.startswith("~/"):
            self.raise_to(Risk.PRIVILEGED)
            return None
        try:
            return self._fence.resolve(text)
        except PathRefused:
            if _looks_like_a_path(text):
                self.raise_to(Risk.PRIVILEGED)
            return None

    def _removes_a_root(self, arguments: Sequence[Word]) -> bool:
        texts = [word.text for word in arguments]
        recursive = any(
            text.startswith("--r") or (text.startswith("-") and not text.startswith("--") and {"r", "R"} & set(text))
            for text in texts
        )
        return recursive and any(self._is_a_root(text) for text in texts if text and not text.startswith("-"))

    def _is_a_root(self, text: str) -> bool:
        """Whether ``text`` is the file system's root, the home, the workspace or a folder around one of them."""
        folder, slash, last = text.rpartition("/")
        if last in _EVERYTHING:
            text = folder or slash or "."
        protected = [path.real for path in (self._resolve("~"), self._resolve(".")) if path is not None]
        for base in self._folders:
            path = self._resolve(_join(base, text))
            if path is not None and any(
                path.real in ("/", root) or root.startswith(path.real + "/") for root in protected
            ):
                return True
        return False


def path_candidates(text: str) -> list[str]:
    """Return what its program could take for a path in a word: the word, option values, list entries."""
    if not text or text == "-" or len(text) > LONGEST_PATH:
        return []
    found = [] if text.startswith("-") else [text]
    if text.startswith("-") and not text.startswith("--"):
        # A value may be attached to the first letter or to a later one of the cluster.
        found += [
            text[2:],
            *(text[at:] for at in (text.find("/"), text.find("~"), text.find("..")) if at > 0),
        ]
    found.append(text.partition("=")[2])
    found += re.split("[=:,]", text)[1:]
    return list(dict.fromkeys(candidate for candidate in found if candidate))


def _cd_target(pipeline: Pipeline) -> Word | None:
    """Return where a pipeline that is one plain ``cd`` goes; ``None`` for any other and for an unsure one."""
    words = pipeline.commands[0].words
    if len(pipeline.commands) != 1 or len(words) != 2 or words[0].text != "cd":
        return None
    target = words[1]
    # Through a link bash follows ``..`` by name and other programs follow it for real.
    unsure = target.opaque or target.glob >= 0 or ".." in target.text.split("/") or target.text.startswith("-")
    return None if unsure or not target.text else target


def _looks_like_a_path(text: str) -> bool:
    return "/" in text or text.startswith(("~", ".."))


def _join(folder: str, text: str) -> str:
    return text if not folder or text == "~" or text.startswith(("/", "~/")) else f"{folder}/{text}"
