"""What one ``grep`` looks for and which files it may look at; the same for both backends."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator

from crystal.types._frozen import Frozen
from crystal.types.tools import ToolCall
from crystal.workspace.fence import Fence, PathRefused
from crystal.workspace.globs import GlobError, GlobPattern, compile_glob
from crystal.workspace.ignore import IgnoreRules
from crystal.workspace.limits import GREP_FILE_BYTES
from crystal.workspace.open_files import open_regular, read_bytes, require_regular
from crystal.workspace.text_files import SNIFF_BYTES, begins_binary
from crystal.workspace.walk import walk
from plugins_builtin.files.outcome import CallRefused
from plugins_builtin.search.roots import admission_below

PATTERN_CHARACTERS = 10_000
CONTEXT_LINES = 50


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
    files_only = bool(call.arguments.get("files_only", False))
    return SearchWish(
        pattern=pattern,
        glob=call.arguments.get("glob", ""),
        context=0 if files_only else min(max(int(call.arguments.get("context", 0)), 0), CONTEXT_LINES),
        ignore_case=bool(call.arguments.get("ignore_case", False)),
        files_only=files_only,
    )


class SearchScope:
    """The files of one search.

    :param root: real path of the folder or file that the call may search.
    :raises CallRefused: when the glob cannot be used, or the one file named is none to search.
    :raises OSError: when there is nothing at ``root``.
    """

    def __init__(self, fence: Fence, root: str, permitted_paths: frozenset[str], glob: str) -> None:
        self.root = root
        self._fence = fence
        mode = os.stat(root).st_mode
        self.single_file = not stat.S_ISDIR(mode)
        if self.single_file:
            self._require_searchable()
        self._admits = admission_below(fence, root, permitted_paths)
        self._wanted = _wanted_files(glob)
        workspace = str(fence.workspace)
        self.rules = IgnoreRules.for_search(workspace, root)
        in_workspace = root == workspace or root.startswith(workspace.rstrip("/") + "/")
        self.folder = "/" if self.single_file else workspace if in_workspace else root
        self._last: tuple[str, bool] = ("", False)

    @property
    def argument(self) -> str:
        """The root as a backend that runs in :attr:`folder` is given it."""
        if self.single_file:
            return self.root
        return "." + self.root[len(self.folder.rstrip("/")) :] if self.root != self.folder else "./"

    def real(self, path: str) -> str:
        """Return the real path of a file as a backend names it."""
        return path if path.startswith("/") else f"{self.folder.rstrip('/')}/{path.removeprefix('./')}"

    def accepts(self, real: str) -> bool:
        """Whether a match in this file may be shown; backends report file after file, so the last answer is kept."""
        if self._last[0] != real:
            self._last = (real, self._accepts(real))
        return self._last[1]

    def files(self, stopped: Callable[[], bool]) -> Iterator[str]:
        """Walk the files to search, for a backend that cannot; yields paths as :attr:`argument` would begin them."""
        if self.single_file:
            yield self.root
            return
        start = self.argument.rstrip("/")
        for entry in walk(self.root, self.rules, self._admits, stopped=stopped):
            if self._wanted(entry.path):
                yield f"{start}/{entry.path}"

    def _accepts(self, real: str) -> bool:
        if self.single_file:
            return real == self.root
        relative = real[len(self.root.rstrip("/")) + 1 :]
        if not self._wanted(relative) or self.rules.ignores(real, folder=False, below=self.root):
            return False
        # The backend opened the file by its name; a link that was put in its place meanwhile leads elsewhere.
        return os.path.realpath(real) == real and self._admits(real) and not _is_binary(real)

    def _require_searchable(self) -> None:
        shown = self._fence.show(self.root)
        status = os.lstat(self.root)
        require_regular(status, shown)
        if status.st_size > GREP_FILE_BYTES:
            raise CallRefused(f"{shown} is larger than the {GREP_FILE_BYTES} bytes that grep searches; use bash.")
        if _is_binary(self.root):
            raise CallRefused(f"{shown} is a binary file; grep searches only text.")


def _is_binary(real: str) -> bool:
    """Whether a file is binary; one that cannot be opened any more counts as such, since nothing of it is shown."""
    try:
        with open_regular(real, real) as opened:
            return begins_binary(read_bytes(opened, SNIFF_BYTES))
    except (PathRefused, OSError):
        return True


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
