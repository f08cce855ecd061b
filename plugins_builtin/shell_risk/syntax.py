"""The grammar: parses a command line, and says when the tree cannot be trusted."""

from __future__ import annotations

from functools import cache

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

LONGEST_LINE = 100_000
"""Characters; a longer line is not read. Parsing this many takes some tens of milliseconds."""

DEEPEST = 60
"""How deep the tree of a line may be walked; a deeper one is not read to its end."""


@cache
def _language() -> Language:
    return Language(tree_sitter_bash.language())


def parse(text: str) -> Node:
    """Return the root of a command line's tree."""
    # A parser is no more than its state while it parses, and making one costs some microseconds.
    return Parser(_language()).parse(text.encode("utf-8", "replace")).root_node


def is_readable(text: str) -> bool:
    """Whether a line holds only characters that the grammar and bash take alike."""
    if len(text) > LONGEST_LINE:
        return False
    plain = text.replace("\n", " ").replace("\t", " ")
    # Other blanks are letters for bash, and whatever does not print may hide what a person is shown.
    return plain.isprintable() and (plain.isascii() or not any(char.isspace() and char != " " for char in plain))
