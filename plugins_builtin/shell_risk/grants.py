"""What a Session or Persistent grant of a command line is given for: its simple commands, by verb or by exact words.

Two lines are covered by one grant exactly when their parts are equal texts, so a part says all that may not differ. A
line with expansions or with anything but plain commands, pipes and lists is one part, whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tree_sitter import Node

from plugins_builtin.shell_risk.syntax import is_readable, parse
from plugins_builtin.shell_risk.words import text_of

ANY_ARGUMENTS = " …"
"""Ends a part that was given by verb; a command of a program that is granted by verb can end so only by verb itself."""

VERBS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "git": {
        "status": (),
        "diff": ("--output", "--ext-diff", "--textconv", "--no-index"),
        "log": ("--output", "--ext-diff", "--textconv"),
        "show": ("--output", "--ext-diff", "--textconv"),
        "blame": ("--contents",),
        "ls-files": (),
        "add": (),
        "stash": (),
        "fetch": ("--upload-pack",),
    },
    "cargo": dict.fromkeys(
        ("build", "check", "test", "clippy", "fmt", "doc", "bench"),
        ("--config", "--manifest-path", "--target-dir", "-Z", "-C"),
    ),
    "npm": {"test": ("--prefix", "-C", "--script-shell"), "ls": ("--prefix", "-C")},
    "pnpm": {"test": ("--dir", "-C"), "ls": ("--dir", "-C")},
    "yarn": {"test": ("--cwd",)},
    "go": {
        "test": ("-exec", "-toolexec", "-o", "-C", "-overlay", "-modfile", "-vettool", "-ldflags", "-gcflags"),
        "vet": ("-vettool", "-toolexec", "-C"),
        "build": ("-exec", "-toolexec", "-o", "-C", "-overlay", "-modfile", "-ldflags", "-gcflags"),
    },
    "dotnet": {"test": ("--results-directory", "-o", "--settings"), "build": ("-o", "--output")},
    "gradle": {"test": ("--init-script", "-I", "-b", "-c", "-p")},
    "mvn": {"test": ("-f", "--file", "-D")},
    "ruff": {"check": ("--config", "-o", "--output-file"), "format": ("--config",)},
}
"""Programs granted by verb, with the options of each verb that run or write something else."""

_PLAIN = frozenset(("word", "number", "string", "raw_string", "concatenation", "command_name", "string_content"))
_EXPANDING = frozenset(
    (
        *("simple_expansion", "expansion", "command_substitution", "process_substitution", "arithmetic_expansion"),
        *("brace_expression", "extglob_pattern", "variable_assignment", "variable_assignments", "ansi_c_string"),
        *("translated_string", "subscript"),
    )
)


def grant_parts(command: str) -> tuple[str, ...] | None:
    """Return what a grant of a command line is given for, in order and without repetition.

    :return: ``None`` when the line cannot be granted: it cannot be read, or its program is known only when it runs.
    """
    if not is_readable(command):
        return None
    root = parse(command)
    if root.has_error or not any(child.is_named and child.type != "comment" for child in root.children):
        return None
    nodes = list(_below(root))
    if any(node.type == "command_name" and _expands(node) for node in nodes):
        return None
    if any(node.type == "command_name" and text_of(node) in ("eval", "source", ".", "trap") for node in nodes):
        return None
    parts: list[str] = []
    moves = any(node.type == "command_name" and text_of(node) in ("cd", "pushd", "popd") for node in nodes)
    # The same words mean something else in another folder.
    if moves or any(node.type in _EXPANDING for node in nodes) or not _collect(root, parts):
        parts = [_canonical(command)]
    return tuple(dict.fromkeys(parts))


def _collect(node: Node, parts: list[str]) -> bool:
    """Gather the parts of plain commands below ``node``; tell whether there is nothing else."""
    if node.type == "command":
        parts.append(_by_verb(node) or _canonical(text_of(node)))
        return True
    if node.type in ("redirected_statement", "heredoc_redirect"):
        if node.children[0].type not in ("command",):
            return False
        parts.append(_canonical(text_of(node)))
        return not any(child.type == "heredoc_redirect" for child in node.children)
    if node.type in ("program", "list", "pipeline"):
        found = [_collect(child, parts) for child in node.children if child.is_named and child.type != "comment"]
        return all(found)
    return False


def _by_verb(node: Node) -> str | None:
    words = [_plain_word(child) for child in node.children]
    if len(words) < 2 or None in words[:2]:
        return None
    program, verb = str(words[0]), str(words[1])
    marked = VERBS.get(program, {}).get(verb)
    if marked is None:
        return None
    for word in words[2:]:
        if word is None or any(word.partition("=")[0] == option or _is_joined(word, option) for option in marked):
            return None
    return f"{program} {verb}{ANY_ARGUMENTS}"


def _is_joined(word: str, option: str) -> bool:
    if option.startswith("--"):
        return len(word) > 3 and option.startswith(word.partition("=")[0]) and word.startswith("--")
    return word.startswith(option) and not word.startswith("--")


def _plain_word(node: Node) -> str | None:
    """Return the text of a word without anything that bash would replace, ``None`` for every other word."""
    if node.type not in _PLAIN or any(child.type not in (*_PLAIN, '"') for child in _below(node)):
        return None
    text = text_of(node)
    if node.type in ("string", "raw_string"):
        return text[1:-1] if "\\" not in text and "!" not in text else None
    return None if re.search(r"[*?\[\]\\{}~!'\"]", text) else text


def _canonical(text: str) -> str:
    return text.strip()


def _expands(node: Node) -> bool:
    text = text_of(node)
    return any(child.type in _EXPANDING for child in _below(node)) or bool(
        re.search(r"[*?\[\]{}]", text) and text != "["
    )


def _below(node: Node) -> list[Node]:
    found: list[Node] = []
    pending = list(node.children)
    while pending:
        current = pending.pop()
        found.append(current)
        pending += current.children
    return found
