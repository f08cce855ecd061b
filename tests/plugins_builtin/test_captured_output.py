"""Output is kept in bounded memory, cut only when it must be, and every missing byte is counted."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.workspace.limits import OUTPUT_CHARACTERS
from plugins_builtin.captured_output import KeptOutput, LiveLines, join_streams


def kept(data: bytes, piece: int = 1 << 16) -> KeptOutput:
    output = KeptOutput()
    for start in range(0, len(data), piece):
        output.feed(data[start : start + piece])
    return output


@settings(max_examples=60, deadline=None)
@given(
    unit=st.sampled_from(["a", "é", "中", "😀", "a😀b\n"]),
    repeats=st.integers(0, 260_000),
    piece=st.integers(1_000, 300_000),
    characters=st.integers(0, 100_000),
)
def test_a_cut_keeps_whole_characters_of_both_ends_and_counts_the_rest(
    unit: str, repeats: int, piece: int, characters: int
) -> None:
    source = unit * repeats
    text = kept(source.encode(), piece).text(characters)
    if len(source) <= characters:
        assert text == source
        return
    head, number, tail = re.split(r"\n\[\.\.\. ([0-9,]+) bytes left out \.\.\.\]\n", text)
    assert source.startswith(head)
    assert source.endswith(tail)
    assert len(head) + len(tail) == characters
    assert int(number.replace(",", "")) == len(source.encode()) - len((head + tail).encode())


@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=300), piece=st.integers(1, 50))
def test_bytes_that_are_no_text_are_shown_as_such_however_they_come(data: bytes, piece: int) -> None:
    assert kept(data, piece).text(1_000) == data.decode("utf-8", "replace")


def test_the_whole_result_stays_within_one_outputs_length() -> None:
    for out, err in ((10, 10), (10**6, 10**6), (10**6, 10), (10, 10**6), (60_000, 45_000), (0, 10**6)):
        text = join_streams(kept(b"o" * out), kept(b"e" * err))
        assert len(text) <= OUTPUT_CHARACTERS - 100
        assert text.count("left out") == (out > 50_000) + (err > 50_000) or out + err < OUTPUT_CHARACTERS


def test_a_result_that_fits_is_not_cut_whatever_its_bytes() -> None:
    out, err = "中" * 60_000, "e" * 39_000
    assert join_streams(kept(out.encode()), kept(err.encode())) == f"{out}\n{err}\n"


def test_a_line_that_comes_in_pieces_is_shown_once_and_whole() -> None:
    shown: list[str] = []
    lines = LiveLines(shown.append)
    for piece in (b"on", b"e\ntw", b"o", b"\n", b"thr\xc3", b"\xa9e"):
        lines.feed(piece)
    lines.finish()
    lines.finish()
    assert shown == ["one", "two", "thrée"]


def test_a_flood_shows_its_newest_lines_only() -> None:
    shown: list[str] = []
    lines = LiveLines(shown.append)
    lines.feed(b"".join(b"%d\n" % number for number in range(100_000)))
    assert shown == [str(number) for number in range(99_980, 100_000)]


def test_a_line_without_end_is_held_in_bounded_memory_and_shown_short() -> None:
    shown: list[str] = []
    lines = LiveLines(shown.append)
    for _ in range(100):
        lines.feed(b"x" * 100_000)
    lines.finish()
    assert shown == ["x" * 500]
