"""Text of models, tools and files on its way to a terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.cli.safe_text import safe_line, safe_text

BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
nasty = st.text(
    st.characters()
    | st.sampled_from([*BIDI, *map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), "\u2028", "\u2029"]),
    max_size=40,
)


def is_unsafe(character: str) -> bool:
    if character in "\n\t":
        return False
    return unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or character in BIDI


@given(nasty)
@settings(max_examples=100, deadline=None)
def test_no_control_escape_or_direction_character_is_left(text: str) -> None:
    shown = safe_text(text)
    assert not [character for character in shown if is_unsafe(character)]
    shown.encode("utf-8")


@given(nasty)
@settings(max_examples=100, deadline=None)
def test_everything_else_is_kept_in_order(text: str) -> None:
    rest = iter(safe_text(text))
    kept = [character for character in text if not is_unsafe(character)]
    assert all(character in rest for character in kept)


@given(st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")) | st.sampled_from("\n\t"), max_size=40))
@settings(max_examples=100, deadline=None)
def test_harmless_text_is_unaltered(text: str) -> None:
    if BIDI.isdisjoint(text):
        assert safe_text(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
        ("50%\rdone\r\n", "50%\\x0ddone\n"),
        ("a\x00b", "a\\x00b"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\u2028", "\\u2028"),
        ("\udc80", "\\udc80"),
        ("Grüße\t😀\n", "Grüße\t😀\n"),
    ],
)
def test_unsafe_characters_are_shown_as_escapes(text: str, shown: str) -> None:
    assert safe_text(text) == shown


@given(nasty, st.integers(min_value=10, max_value=60))
@settings(max_examples=100, deadline=None)
def test_a_line_is_one_safe_line_within_its_limit(text: str, limit: int) -> None:
    line = safe_line(text, limit)
    assert len(line) <= limit
    assert "\n" not in line
    assert "\t" not in line
    assert not [character for character in line if is_unsafe(character)]


def test_a_cut_is_said() -> None:
    assert safe_line("a" * 300).endswith("<cut>")
    assert safe_line("a" * 200) == "a" * 200
    assert safe_line("a\nb\tc") == "a\\nb c"
