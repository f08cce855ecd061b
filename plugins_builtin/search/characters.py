"""Sets of characters in the words of Python's ``re``: those that ripgrep names and what can be made of them. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping

from crystal.types._frozen import Frozen

_CODES = (range(0xD800), range(0xF900, 0x32400), range(0xE0100, 0xE01F0))
"""Where all letters, marks and digits lie."""

_LETTER_SYMBOLS = (range(0x24B6, 0x24EA), range(0x1F130, 0x1F14A), range(0x1F150, 0x1F16A), range(0x1F170, 0x1F18A))
"""Circled and squared letters, which Unicode counts as alphabetic."""

POSIX_SETS: Mapping[str, str] = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7f",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
"""What ``[:name:]`` stands for, as it is written between brackets."""

SPACES = r"\t\v\f \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""White space but for the ends of lines, between brackets."""

FOREIGN = "\\udc80-\\udcff"
"""Bytes that are not UTF-8, as decoding leaves them."""

NEVER = "\\n\\r" + FOREIGN
"""What no pattern matches."""


class CharacterSet(Frozen):
    """A set of characters.

    :param inner: the set as it is written between brackets; empty when it cannot be, or holds nothing.
    :param regex: else a regex that matches one character of it.
    """

    inner: str = ""
    regex: str = ""

    def matching(self) -> str:
        """Return a regex for every character of the set."""
        return self.regex or (f"[{self.inner}]" if self.inner else r"(?!)")

    def without(self, never: str) -> str:
        """Return a regex for every character that is not in the set."""
        return f"(?:(?!{self.regex})[^{never}])" if self.regex else f"[^{self.inner}{never}]"


def combined(left: CharacterSet, operator: str, right: CharacterSet) -> CharacterSet:
    """Return the set that ``&&``, ``--`` or ``~~`` makes of two."""
    one, other = left.matching(), right.matching()
    if operator == "&&":
        return CharacterSet(regex=f"(?:(?={one}){other})")
    if operator == "--":
        return CharacterSet(regex=f"(?:(?!{other}){one})")
    return CharacterSet(regex=f"(?:(?!{other}){one}|(?!{one}){other})")


def escaped_in_set(character: str) -> str:
    """Return a character as it stands between brackets for itself."""
    return f"\\{character}" if character in "\\]^-[&~|" else character


def is_word(character: str) -> bool:
    r"""Whether Unicode counts a character to ``\w``, which Python sees more narrowly."""
    category = unicodedata.category(character)
    return (
        category[0] in "LM"
        or category in ("Nd", "Nl", "Pc")
        or character in "\u200c\u200d"
        or (category == "So" and any(ord(character) in letters for letters in _LETTER_SYMBOLS))
    )


def ranges_of(holds: Callable[[str], bool]) -> str:
    """Return the characters of which something holds, as they stand in a class."""
    found: list[str] = []
    for codes in _CODES:
        start = -1
        for code in (*codes, -1):
            held = code >= 0 and holds(chr(code))
            if held and start < 0:
                start = code
            elif not held and start >= 0:
                end = codes.stop - 1 if code < 0 else code - 1
                found.append(f"{escaped_in_set(chr(start))}-{escaped_in_set(chr(end))}")
                start = -1
    return "".join(found)
