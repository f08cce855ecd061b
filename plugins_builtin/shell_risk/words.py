"""Words as bash would hand them to a program: quotes removed, braces expanded, as far as text can say."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from typing import NamedTuple

from tree_sitter import Node

SPLIT = "\x00"
"""Stands where an unquoted ``$IFS`` splits a word; no command holds a NUL."""

BRACES = 64
"""Most words one brace expression is expanded to; a larger one is known only when it runs."""

_ESCAPED = re.compile(r"\\(\n|.)", re.DOTALL)
_DOUBLE_ESCAPED = re.compile(r'\\(\n|[$`"\\])')
_ANSI = re.compile(
    r"\\(?:([abeEfnrtv\\'\"?])|([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|c(.))",
    re.DOTALL,
)
_ANSI_LETTERS = dict(zip("abeEfnrtv\\'\"?", "\a\b\x1b\x1b\f\n\r\t\v\\'\"?", strict=True))
_BRACE = re.compile(r"\{([^{}\s]*,[^{}\s]*|-?\w+\.\.-?\w+(?:\.\.-?\d+)?)\}")
_RANGE = re.compile(r"-?\w+\.\.-?\w+(?:\.\.-?\d+)?")
_GLOB = "*?["
_UNQUOTED = re.compile(r"[A-Za-z0-9_./:=,@%+~-]+")
_QUOTED = re.compile(r'"[^"$`\\]*"')
_SIMPLE_WORD = r"""[A-Za-z0-9_./:=,@%+~*?-]+|'[^'\n]*'|"[^"$`\\\n]*\""""
_SIMPLE_WORDS = re.compile(rf"[A-Za-z0-9_./:,@%+~-]+(?: +(?:{_SIMPLE_WORD}))*")
"""A whole command; its first word is no assignment."""

_EACH_WORD = re.compile(_SIMPLE_WORD)


class Word(NamedTuple):
    """One word.

    :param text: the word; where it is opaque, what is known of it (``$HOME`` and ``$PWD`` stand as ``~`` and ``.``).
    :param opaque: whether a part of it is known only when the command runs.
    :param glob: where in ``text`` the first unquoted pattern character stands, ``-1`` for none.
    :param downloads: whether a substitution in it brings text from another machine.
    :param process: whether it is a process substitution.
    """

    text: str
    opaque: bool = False
    glob: int = -1
    downloads: bool = False
    process: bool = False


class Piece(NamedTuple):
    """A part of a word after decoding; ``plain`` is unquoted text, whose patterns and braces count."""

    text: str
    plain: bool = False
    opaque: bool = False


def decode(node: Node, variables: Mapping[str, str]) -> list[Piece]:
    """Return the pieces of a word's node; substitutions inside are opaque.

    :param variables: values that were assigned literally before, by name.
    """
    match node.type:
        case "word" | "number" | "extglob_pattern" | "regex" | "variable_name" | "special_variable_name":
            return _plain(text_of(node))
        case "string_content":
            return [Piece(_DOUBLE_ESCAPED.sub(_keep, text_of(node)))]
        case "raw_string":
            return [Piece(text_of(node)[1:-1])]
        case "ansi_c_string":
            return [Piece(_ANSI.sub(_ansi, text_of(node)[2:-1]))]
        case "string" | "translated_string":
            return _double_quoted(node, variables)
        case "concatenation" | "command_name" | "array" | "test_operator":
            return [piece for child in node.children for piece in decode(child, variables)] or _plain(text_of(node))
        case "simple_expansion" | "expansion":
            return [_expand(node, variables)]
        case "brace_expression":
            return _plain(text_of(node))
        case "$":
            return []
        case _:
            return [Piece("", opaque=True)]


def simple_word(node: Node) -> Word | None:
    """Return the word of a node in which nothing is escaped, expanded or joined; ``None`` for any other.

    Most words are such, and :func:`decode` would take several times as long to say the same.
    """
    match node.type:
        case "word" | "number" | "command_name":
            text = text_of(node)
            if _UNQUOTED.fullmatch(text):
                return Word(text)
            if node.type == "command_name" or "\\" in text or "{" in text:
                return None
            return Word(text, glob=min((at for at in map(text.find, _GLOB) if at >= 0), default=-1))
        case "string":
            text = text_of(node)
            return Word(text[1:-1]) if _QUOTED.fullmatch(text) else None
        case "raw_string":
            return Word(text_of(node)[1:-1])
        case _:
            return None


def simple_words(node: Node) -> list[Word] | None:
    """Return the words of a whole command when each is simple, which its text alone can tell; ``None`` for any other.

    To read them one by one off the tree takes several times as long.
    """
    text = text_of(node)
    if node.has_error or not _SIMPLE_WORDS.fullmatch(text):
        return None
    return [
        Word(word[1:-1])
        if word[0] in "'\""
        else Word(word, glob=min((at for at in map(word.find, "*?") if at >= 0), default=-1))
        if "*" in word or "?" in word
        else Word(word)
        for word in _EACH_WORD.findall(text)
    ]


def _double_quoted(node: Node, variables: Mapping[str, str]) -> list[Piece]:
    """Read a string; the grammar leaves blanks between its parts to no node, so they are taken from the text."""
    pieces: list[Piece] = []
    source = node.text or b""
    at = 0
    for child in node.children:
        begin, end = child.start_byte - node.start_byte, child.end_byte - node.start_byte
        if begin > at:
            pieces.append(Piece(source[at:begin].decode("utf-8", "replace")))
        at = end
        if child.type in ('"', '$"', "$"):
            # A quote's node takes the blanks beside it along.
            blank = (child.text or b"").decode("utf-8", "replace").replace('"', "").replace("$", "")
            if blank:
                pieces.append(Piece(blank))
            continue
        pieces += [piece._replace(plain=False) for piece in decode(child, variables)]
    return [piece._replace(text=piece.text.replace(SPLIT, " ")) for piece in pieces] or [Piece("")]


def _expand(node: Node, variables: Mapping[str, str]) -> Piece:
    name = next((text_of(child) for child in node.children if child.type == "variable_name"), "")
    is_plain = all(child.type in ("$", "${", "}", "variable_name") for child in node.children)
    if is_plain and name == "IFS" and "IFS" not in variables:
        return Piece(SPLIT, opaque=True)
    if is_plain and name in ("HOME", "PWD") and name not in variables:
        return Piece("~" if name == "HOME" else ".")
    return Piece(variables.get(name, "") if is_plain else "", opaque=True)


def _plain(text: str) -> list[Piece]:
    """Split unquoted text at its backslashes: what they escape is no pattern."""
    pieces: list[Piece] = []
    at = 0
    for match in _ESCAPED.finditer(text):
        if match.start() > at:
            pieces.append(Piece(text[at : match.start()], plain=True))
        pieces.append(Piece("" if match[1] == "\n" else match[1]))
        at = match.end()
    if at < len(text) or not pieces:
        pieces.append(Piece(text[at:], plain=True))
    return pieces


def join(pieces: list[Piece], *, downloads: bool = False, process: bool = False) -> list[Word]:
    """Make words of the pieces: braces are expanded, and an unquoted ``$IFS`` splits."""
    marked = "".join(
        piece.text if piece.plain else piece.text.replace("{", "\x01").replace("}", "\x02") for piece in pieces
    )
    opaque = any(piece.opaque for piece in pieces)
    if "{" in marked and (expanded := _expand_braces(pieces)) is not None:
        return [word for variant in expanded for word in join(variant, downloads=downloads, process=process)]
    if "{" in marked and _BRACE.search(marked):
        opaque = True
    words: list[Word] = []
    text, glob = "", -1
    for piece in pieces:
        parts = piece.text.split(SPLIT)
        for number, part in enumerate(parts):
            if number:
                words.append(Word(text, opaque, glob, downloads, process))
                text, glob = "", -1
            if piece.plain and glob < 0:
                first = min((at for at in map(part.find, _GLOB) if at >= 0), default=-1)
                glob = len(text) + first if first >= 0 else -1
            text += part
    words.append(Word(text, opaque, glob, downloads, process))
    return [word for word in words if word.text or len(words) == 1]


def _expand_braces(pieces: list[Piece]) -> list[list[Piece]] | None:
    """Expand the braces whose whole text is one plain run of pieces; ``None`` when there are none or too many."""
    text = "".join(piece.text if piece.plain and not piece.opaque else SPLIT for piece in pieces)
    if not all(piece.plain for piece in pieces if "{" in piece.text or "}" in piece.text or "," in piece.text):
        return None
    if SPLIT in text:
        return None
    found = list(_BRACE.finditer(text))
    if not found:
        return None
    choices: list[list[str]] = []
    at = 0
    for match in found:
        choices.append([text[at : match.start()]])
        inner = match[1]
        if _RANGE.fullmatch(inner):
            numbers = _range(inner)
            if numbers is None:
                return None
            choices.append(numbers)
        else:
            choices.append(inner.split(","))
        at = match.end()
    choices.append([text[at:]])
    count = 1
    for choice in choices:
        count *= len(choice)
    if count > BRACES:
        return None
    return [[Piece("".join(parts), plain=True)] for parts in itertools.product(*choices)]


def _range(text: str) -> list[str] | None:
    first, last, *step = text.split("..")
    try:
        begin, end, by = int(first), int(last), abs(int(step[0])) if step else 1
    except ValueError:
        if len(first) == len(last) == 1:
            low, high = sorted((ord(first), ord(last)))
            return [chr(code) for code in range(low, high + 1)]
        return None
    if by == 0 or abs(end - begin) // by > BRACES:
        return None
    numbers = range(begin, end + (1 if end >= begin else -1), by if end >= begin else -by)
    return [str(number) for number in numbers]


def text_of(node: Node) -> str:
    """Return the source of a node."""
    return (node.text or b"").decode("utf-8", "replace")


def _keep(match: re.Match[str]) -> str:
    return "" if match[1] == "\n" else match[1]


def _ansi(match: re.Match[str]) -> str:
    letter, octal, short, four, eight, control = match.groups()
    if letter:
        return _ANSI_LETTERS[letter]
    if octal:
        return chr(int(octal, 8) & 0xFF)
    if control:
        return chr(ord(control) & 0x1F)
    code = int(short or four or eight, 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
