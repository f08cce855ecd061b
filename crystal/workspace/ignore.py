"""Which files of a tree count as ignored: nested ``.gitignore`` files and a short list of folder names.

Only rules from the given top downwards count: neither a parent's ``.gitignore`` nor git's global or ``info``
excludes. Hidden files are ordinary files. ``pathspec`` is imported when the first ``.gitignore`` is met.
"""

from __future__ import annotations

import os
import re
import stat

from crystal.types._frozen import Frozen

IGNORED_FOLDERS = (".git", ".vs", "bin", "obj", "node_modules", "dist", ".venv", "__pycache__")
"""Folders that are left out wherever they lie; ``.git`` also as the file of a linked worktree."""

_RULES_BYTES = 1 << 20


class IgnoreRule(Frozen):
    """One line of a ``.gitignore``.

    :param regex: searched for in the path relative to the file's folder, without a slash at its end.
    :param ignored: ``False`` for a line that begins with ``!``.
    :param folders_only: whether the line ends in a slash.
    """

    regex: re.Pattern[str]
    ignored: bool
    folders_only: bool

    def names(self, path: str) -> bool:
        """Whether the line speaks of this very path, not merely of a folder that holds it."""
        match = self.regex.search(path)
        # pathspec marks with its one group that only the path of a folder further up matched.
        return match is not None and match.lastindex is None


_Chain = tuple[tuple[str, tuple[IgnoreRule, ...]], ...]


class IgnoreRules:
    """The rules of one tree. Reads each ``.gitignore`` once; make a new one for each walk.

    :param top: real path of the folder where rules begin.
    """

    def __init__(self, top: str) -> None:
        self._top = top
        self._chains: dict[str, _Chain] = {}
        self._folders: dict[str, bool] = {}

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
        if name in IGNORED_FOLDERS and (folder or name == ".git"):
            return True
        for base, rules in self._chain(parent):
            path = f"{parent.rstrip('/')}/{name}"[len(base.rstrip("/")) + 1 :]
            for rule in rules:
                if (folder or not rule.folders_only) and rule.names(path):
                    return rule.ignored
        return False

    def _chain(self, folder: str) -> _Chain:
        """The rules that speak about the entries of ``folder``, with the folders they stand in, the nearest first."""
        chain = self._chains.get(folder)
        if chain is None:
            upper = () if len(folder) <= len(self._top) else self._chain(folder.rpartition("/")[0] or "/")
            rules = _read_rules(folder)
            chain = self._chains[folder] = ((folder, rules), *upper) if rules else upper
        return chain


def _read_rules(folder: str) -> tuple[IgnoreRule, ...]:
    """Read the ``.gitignore`` of a folder, its last line first, since that one counts.

    A link, a special file or a huge one has no rules, as a missing one.
    """
    path = f"{folder}/.gitignore"
    try:
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _RULES_BYTES:
            return ()
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return ()
    with open(descriptor, "rb") as file:
        text = file.read(_RULES_BYTES).decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    rules = (_compile_rule(line.removesuffix("\r")) for line in reversed(text.split("\n")))
    return tuple(rule for rule in rules if rule is not None)


def _compile_rule(line: str) -> IgnoreRule | None:
    """Compile one line; ``None`` for a blank one, a comment, and one that git, too, passes over as no pattern.

    ``pathspec`` translates the pattern. Its verdict on whole paths is not used: it cannot tell of a folder whether a
    walk should enter it, as in ``*``, ``!*/``, ``!*.py``.
    """
    if not line.strip() or line.startswith("#"):
        return None
    from pathspec import GitIgnoreSpec  # 35 ms, and many trees hold no .gitignore

    bare = line if line.endswith("\\ ") else line.rstrip(" ")
    try:
        compiled = next(iter(GitIgnoreSpec.from_lines([bare.removesuffix("/")]).patterns), None)
    except ValueError:
        return None
    regex = getattr(compiled, "regex", None)
    if compiled is None or compiled.include is None or regex is None:
        return None
    return IgnoreRule(regex=regex, ignored=compiled.include, folders_only=bare.endswith("/"))
