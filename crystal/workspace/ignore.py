"""Which files of a tree count as ignored: nested ``.gitignore`` files and a short list of folder names.

Only rules from the given top downwards count: neither a parent's ``.gitignore`` nor git's global or ``info``
excludes. Hidden files are ordinary files. ``pathspec`` is imported when a ``.gitignore`` holds more than plain names.
"""

from __future__ import annotations

import os
import re
import stat

from crystal.types._frozen import Frozen
from crystal.workspace.globs import GlobError, GlobPattern, compile_glob

IGNORED_FOLDERS = (".git", ".vs", "bin", "obj", "node_modules", "dist", ".venv", "__pycache__")
"""Folders that are left out wherever they lie; ``.git`` also as the file of a linked worktree."""

_IGNORED_NAMES = frozenset(IGNORED_FOLDERS)
_RULES_BYTES = 1 << 20

_STARS = 2
"""Stars of a line up to which a regex is quick on any path."""

_NAME = re.compile(r"[\w.@+=~,%-]+")
_SUFFIX = re.compile(r"\*(\.[\w@+=~,%-]+)")
_CLASS = re.compile(r"\[!?[\w.-]+\]")
_PART = r"(?:[\w.@+=~,%-]|\*(?!\*)|\?|\[[A-Za-z0-9_]+\])+"
_COMMON = re.compile(rf"(?:\s*|#.*|!?/?(?:\*\*/)?(?:{_PART}/)*{_PART}(?:/\*\*)?/?)\r?", re.ASCII)
"""A line that every reader of such files understands as git does."""


class IgnoreRule(Frozen):
    """One line of a ``.gitignore`` that is more than a plain name.

    :param pattern: a regex that is searched for in the path relative to the file's folder, without a slash at its end,
        or a glob that matches all of it.
    """

    pattern: re.Pattern[str] | GlobPattern

    def names(self, path: str) -> bool:
        """Whether the line speaks of this very path, not merely of a folder that holds it."""
        if isinstance(self.pattern, GlobPattern):
            return self.pattern.matches(path)
        match = self.pattern.search(path)
        # pathspec marks with its one group that only the path of a folder further up matched.
        return match is not None and match.lastindex is None


class IgnoreFile:
    """The lines of one ``.gitignore``; the last one that names an entry decides.

    Lines that are a plain name or ``*.suffix`` are found by a look-up, because they are the most and every entry of a
    tree is asked about.

    :param lines: without their line breaks.
    """

    def __init__(self, lines: list[str]) -> None:
        self._by_name: dict[str, list[tuple[int, bool]]] = {}
        self._by_suffix: dict[str, list[tuple[int, bool]]] = {}
        self._rules: list[tuple[int, bool, IgnoreRule]] = []
        self._ignored: list[bool] = []
        for line in lines:
            self._add(line)
        self._rules.reverse()

    def __bool__(self) -> bool:
        return bool(self._ignored)

    def verdict(self, path: str, name: str, *, folder: bool) -> bool | None:
        """Whether an entry is ignored; ``None`` when no line names it.

        :param path: relative to the file's folder.
        :param name: the last part of ``path``.
        """
        last = -1
        dot = name.rfind(".")
        suffixed = self._by_suffix.get(name[dot:], ()) if dot >= 0 else ()
        for number, folders_only in (*self._by_name.get(name, ()), *suffixed):
            if number > last and (folder or not folders_only):
                last = number
        for number, folders_only, rule in self._rules:
            if number < last:
                break
            if (folder or not folders_only) and rule.names(path):
                last = number
                break
        return None if last < 0 else self._ignored[last]

    def _add(self, line: str) -> None:
        """Take one line; a blank one, a comment, and one that git, too, passes over as no pattern add nothing."""
        if not line.strip() or line.startswith("#"):
            return
        bare = line if line.endswith("\\ ") else line.rstrip(" ")
        pattern = bare.removesuffix("/")
        plain = pattern.removeprefix("!")
        entry = (len(self._ignored), bare.endswith("/"))
        if _NAME.fullmatch(plain):
            self._by_name.setdefault(plain, []).append(entry)
        elif suffix := _SUFFIX.fullmatch(plain):
            self._by_suffix.setdefault(suffix[1], []).append(entry)
        else:
            rule = _compile(pattern)
            if rule is None:
                return
            self._rules.append((*entry, rule))
        self._ignored.append(not pattern.startswith("!"))


_Chain = tuple[tuple[str, IgnoreFile], ...]


class IgnoreRules:
    """The rules of one tree. Reads each ``.gitignore`` once; make a new one for each walk.

    :param top: real path of the folder where rules begin.
    """

    def __init__(self, top: str) -> None:
        self._top = top
        self._chains: dict[str, _Chain] = {}
        self._folders: dict[str, bool] = {}
        self._common = True

    @classmethod
    def for_search(cls, workspace: str, root: str) -> IgnoreRules:
        """Return the rules for a search below ``root``, a folder somebody named.

        They begin at the workspace when ``root`` lies there. A root that is itself ignored was named on
        purpose: then only the rules from ``root`` downwards count.
        """
        if root == workspace or not root.startswith(workspace.rstrip("/") + "/"):
            return cls(root)
        rules = cls(workspace)
        return cls(root) if rules.ignores(root, folder=True) else rules

    @property
    def top(self) -> str:
        """Real path of the folder where the rules begin."""
        return self._top

    @property
    def common(self) -> bool:
        """Whether every reader understands the ``.gitignore`` files that were met so far as git does."""
        return self._common

    def bases(self, folder: str) -> tuple[str, ...]:
        """Return the folders whose ``.gitignore`` speaks about the entries of ``folder``, the nearest first."""
        return tuple(base for base, _ in self._chain(folder))

    def ignores(self, real: str, *, folder: bool, below: str | None = None) -> bool:
        """Whether a path is ignored, be it for one of the folders that hold it.

        :param real: absolute path below the top.
        :param below: a folder between the top and the path that is taken as not ignored, such as a search's
            root.
        """
        parent, _, name = real.rpartition("/")
        if parent != (below or self._top) and len(parent) > len(below or self._top):
            hidden = self._folders.get(parent)
            if hidden is None:
                hidden = self._folders[parent] = self.ignores(parent, folder=True, below=below)
            if hidden:
                return True
        return self.ignores_entry(parent or "/", name, folder=folder)

    def ignores_entry(self, parent: str, name: str, *, folder: bool) -> bool:
        """Whether one entry of a folder that is itself not ignored is ignored."""
        if name in _IGNORED_NAMES and (folder or name == ".git"):
            return True
        for base, rules in self._chain(parent):
            path = name if base == parent else f"{parent.rstrip('/')}/{name}"[len(base.rstrip("/")) + 1 :]
            verdict = rules.verdict(path, name, folder=folder)
            if verdict is not None:
                return verdict
        return False

    def _chain(self, folder: str) -> _Chain:
        """The rules that speak about the entries of ``folder``, with the folders they stand in, the nearest first."""
        chain = self._chains.get(folder)
        if chain is None:
            # Folders may lie deeper than calls can.
            missing = [folder]
            while len(missing[-1]) > len(self._top) and (above := _parent(missing[-1])) not in self._chains:
                missing.append(above)
            chain = self._chains.get(_parent(missing[-1]), ()) if len(missing[-1]) > len(self._top) else ()
            for each in reversed(missing):
                rules = self._read(f"{each}/.gitignore")
                chain = self._chains[each] = ((each, rules), *chain) if rules else chain
        return chain

    def _read(self, path: str) -> IgnoreFile:
        """Read a ``.gitignore``; a link, a special file or a huge one has no rules, as a missing one."""
        text = ""
        try:
            status = os.lstat(path)
        except OSError:
            return IgnoreFile([])
        if stat.S_ISREG(status.st_mode) and status.st_size <= _RULES_BYTES:
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
                with open(descriptor, "rb") as file:
                    text = file.read(_RULES_BYTES).decode("utf-8", "surrogateescape")
            except OSError:
                self._common = False
        else:
            self._common = False
        self._common = self._common and all(map(_COMMON.fullmatch, text.split("\n")))
        return IgnoreFile([line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")])


def _parent(folder: str) -> str:
    return folder.rpartition("/")[0] or "/"


def _compile(pattern: str) -> IgnoreRule | None:
    """Compile a pattern without a slash at its end; ``None`` when it is none.

    ``pathspec`` translates it. Its verdict on whole paths is not used: it cannot tell of a folder whether a walk
    should enter it, as in ``*``, ``!*/``, ``!*.py``.
    """
    if pattern.count("*") > _STARS or "[" in _CLASS.sub("", pattern):
        return _compile_linear(pattern.removeprefix("!"))
    from pathspec import GitIgnoreSpec  # 35 ms, and many trees hold only plain names

    try:
        compiled = next(iter(GitIgnoreSpec.from_lines([pattern]).patterns), None)
    except (ValueError, re.error):
        return None
    if compiled is None or compiled.include is None:
        return None
    regex = getattr(compiled, "regex", None)
    if not isinstance(regex, re.Pattern):
        return None
    # Names may hold line breaks, which the translation does not expect.
    return IgnoreRule(pattern=re.compile(re.sub(r"\$(?=\)?\Z)", r"\\Z", regex.pattern), regex.flags | re.DOTALL))


def _compile_linear(pattern: str) -> IgnoreRule | None:
    """Compile a pattern of many stars, which as a regex would try all the ways to share a name among them, or of odd
    classes, which as a regex would be warned of."""
    anchored = "/" in pattern
    bare = pattern.removeprefix("/").replace("{", "[{]").replace("}", "[}]")
    try:
        return IgnoreRule(pattern=compile_glob(bare if anchored else f"**/{bare}"))
    except GlobError:
        return None
