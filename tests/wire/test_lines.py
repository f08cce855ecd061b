"""Lines come out the same wherever the network cuts the stream."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.types.model import ModelError, ModelErrorKind
from crystal.wire.lines import LineSplitter


def split(chunks: list[bytes], limit: int = 1000) -> list[bytes]:
    splitter = LineSplitter(limit)
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    last = splitter.close()
    return lines if last is None else [*lines, last]


def reference(text: bytes) -> list[bytes]:
    lines = re.split(rb"\r\n|\n|\r", text.removeprefix(b"\xef\xbb\xbf"))
    return lines if lines[-1] else lines[:-1]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(alphabet="ab\r\n\x0b\x0c\x85\u2028\ufeffé").map(str.encode)))
def test_lines_do_not_depend_on_chunk_boundaries(chunks: list[bytes]) -> None:
    assert split(chunks) == reference(b"".join(chunks))


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=60))
def test_one_byte_at_a_time_gives_the_same_lines(text: bytes) -> None:
    assert split([text[at : at + 1] for at in range(len(text))]) == reference(text)


def test_a_mark_in_the_middle_is_kept() -> None:
    mark = b"\xef\xbb\xbf"
    assert split([mark + b"a\n" + mark + b"b\n"]) == [b"a", mark + b"b"]


@pytest.mark.parametrize(
    "chunks", [[b"x" * 11], [b"x" * 11 + b"\n"], [b"x" * 6, b"x" * 6], [b"x" * 6, b"x" * 6 + b"\n"]]
)
def test_a_line_beyond_the_limit_is_refused_before_it_fills_the_memory(chunks: list[bytes]) -> None:
    with pytest.raises(ModelError) as caught:
        split(chunks, limit=10)
    assert caught.value.kind is ModelErrorKind.INVALID


def test_the_limit_is_per_line() -> None:
    assert split([b"x" * 10 + b"\n"] * 50, limit=10) == [b"x" * 10] * 50
