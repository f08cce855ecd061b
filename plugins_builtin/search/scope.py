"""What one ``grep`` looks for and which files it may look at; the same for both backends."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator

from crystal.types._frozen import Frozen
from crystal.types.tools import ToolCall
from crystal.workspace.fence import PathRefused
from crystal.workspace.globs import GlobError, GlobPattern, compile_glob
from crystal.workspace.limits import GREP_FILE_BYTES
from crystal.workspace.open_files import FileMissing, open_regular, read_bytes, require_regular
from crystal.workspace.text_files import SNIFF_BYTES, begins_binary
from crystal.workspace.walk import walk
from plugins_builtin.files.outcome import CallRefused
from plugins_builtin.search.roots import SearchRoot

PATTERN_CHARACTERS = 10_000
CONTEXT_LINES = 50

_WHOLE_TEXT = re.compile(r"(?<!\\)(?:\\\\)*(?:\\[Az]|\(\?[a-zA-Z]*-[a-zA-Z]*m)")
"""What speaks of the ends of a text and not of a line; ripgrep takes now the one, now the other for it."""


class SearchWish(Frozen):
    """What is looked for.

    :param glob: which files to look at, or empty for all: without ``/`` it speaks of names, with ``/`` of
        paths below the searched folder; a leading ``!`` means the others.
    :param context: neighbouring lines shown on each side of a match.
    """

    pattern: str
    glob: str = ""
    context: int = 0
    ignore_case: bool = False
    files_only: bool = False


def read_wish(call: ToolCall) -> SearchWish:
    """Read the arguments of a call.

    :raises CallRefused: when the pattern cannot be searched for.
    """
    pattern = call.arguments["pattern"]
    if not pattern or len(pattern) > PATTERN_CHARACTERS:
        raise CallRefused(f"The pattern must have 1 to {PATTERN_CHARACTERS} characters; write another one.")
    if "\n" in pattern or "\0" in pattern:
        raise CallRefused(
            "The pattern holds a line break or NUL, but grep looks at one line at a time; search for a part."
        )
    try:
        pattern.encode("utf-8")
    except UnicodeEncodeError:
        raise CallRefused("The pattern holds half of a surrogate pair; write the character whole.") from None
    if _WHOLE_TEXT.search(pattern):
        raise CallRefused(
            r"The pattern holds \A, \z or (?-m), but grep looks at one line at a time; write ^ and $ for its ends."
        )
    files_only = call.arguments.get("files_only", False)
    return SearchWish(
        pattern=pattern,
        glob=call.arguments.get("glob", ""),
        context=0 if files_only else min(call.arguments.get("context", 0), CONTEXT_LINES),
        ignore_case=call.arguments.get("ignore_case", False),
        files_only=files_only,
    )


class SearchScope:
    """The files of one search.

    :param root: the folder or file that the call may search.
    :raises CallRefused: when the glob cannot be used, or the one file named is none to search.
    :raises OSError: when the system does not allow it.
    """

    def __init__(self, root: SearchRoot, glob: str) -> None:
        self.root = root
        self._wanted = _wanted_files(glob)
        try:
            self.single_file = not stat.S_ISDIR(os.stat(root.real).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            shown = root.show(root.real)
            raise FileMissing(f"There is no file or folder {shown}; list its parent to see what is there.") from None
        if self.single_file:
            self._require_searchable()
        self.rules = root.rules()
        workspace = str(root.fence.workspace)
        in_workspace = root.real == workspace or root.real.startswith(workspace.rstrip("/") + "/")
        self.folder = "/" if self.single_file else workspace if in_workspace else root.real
        self._last: tuple[str, bool] = ("", False)

    @property
    def argument(self) -> str:
        """The root as a backend that runs in :attr:`folder` is given it."""
        if self.single_file:
            return self.root.real
        return "." + self.root.real[len(self.folder.rstrip("/")) :] if self.root.real != self.folder else "./"

    def real(self, path: str) -> str:
        """Return the real path of a file as a backend names it."""
        return path if path.startswith("/") else f"{self.folder.rstrip('/')}/{path.removeprefix('./')}"

    def accepts(self, real: str) -> bool:
        """Whether a match in this file may be shown; backends report file after file, so the last answer is kept."""
        if self._last[0] != real:
            self._last = (real, self._accepts(real))
        return self._last[1]

    def is_plain(self, stopped: Callable[[], bool]) -> bool:
        """Whether every ignore file that counts is one that ripgrep understands as we do, and finds by itself.

        Enters the folders that are to be searched, without a look at their files.
        """
        if self.single_file:
            return True
        root = self.root
        above = self.rules.bases(root.real.rpartition("/")[0] or "/") if root.real != self.rules.top else ()
        if above not in ((), (self.folder,)):
            return False
        self.rules.bases(root.real)
        walked = walk(
            root.real,
            self.rules,
            root.admits,
            files=False,
            folders=True,
            stopped=stopped,
            unreadable=root.unreadable,
        )
        for entry in walked:
            self.rules.bases(root.path(entry.path))
            if not self.rules.common:
                return False
        return self.rules.common

    def files(self, stopped: Callable[[], bool]) -> Iterator[str]:
        """Walk the files to search, for a backend that cannot; yields paths as :attr:`argument` would begin them."""
        if self.single_file:
            yield self.root.real
            return
        start = self.argument.rstrip("/")
        self.root.unreadable.clear()
        walked = walk(self.root.real, self.rules, self.root.admits, stopped=stopped, unreadable=self.root.unreadable)
        for entry in walked:
            if self._wanted(entry.path):
                yield f"{start}/{entry.path}"

    def _accepts(self, real: str) -> bool:
        if self.single_file:
            return real == self.root.real
        relative = real[len(self.root.real.rstrip("/")) + 1 :]
        if not self._wanted(relative) or self.rules.ignores(real, folder=False, below=self.root.real):
            return False
        # The backend opened the file by its name; a link that was put in its place meanwhile leads elsewhere.
        return os.path.realpath(real) == real and self.root.admits(real) and is_searchable(real)

    def _require_searchable(self) -> None:
        real = self.root.real
        shown = self.root.show(real)
        status = os.lstat(real)
        require_regular(status, shown)
        if status.st_size > GREP_FILE_BYTES:
            raise CallRefused(f"{shown} is larger than the {GREP_FILE_BYTES} bytes that grep searches; use bash.")
        with open_regular(real, shown) as opened:
            if begins_binary(read_bytes(opened, SNIFF_BYTES)):
                raise CallRefused(f"{shown} is a binary file; grep searches only text.")


def is_searchable(real: str) -> bool:
    """Whether a file is text of a size that is searched; one that cannot be opened any more is not."""
    try:
        with open_regular(real, real) as opened:
            return opened.status.st_size <= GREP_FILE_BYTES and not begins_binary(read_bytes(opened, SNIFF_BYTES))
    except (PathRefused, OSError):
        return False


def _wanted_files(glob: str) -> Callable[[str], bool]:
    """Return the test that a grep's glob makes of a path relative to the searched folder."""
    if not glob:
        return lambda path: True
    negated = glob.startswith("!")
    wanted = glob.removeprefix("!")
    try:
        compiled = compile_glob(wanted)
    except GlobError as error:
        raise CallRefused(str(error)) from None
    by_name = "/" not in wanted
    if negated:
        return lambda path: not any(_names_it(compiled, start, by_name) for start in _starts(path))
    return lambda path: _names_it(compiled, path, by_name)


def _names_it(compiled: GlobPattern, path: str, by_name: bool) -> bool:
    return compiled.matches(path.rpartition("/")[2] if by_name else path)


def _starts(path: str) -> Iterator[str]:
    """The path and every folder that holds it: leaving out a folder leaves out what it holds."""
    while path:
        yield path
        path = path.rpartition("/")[0]
