"""Output is kept in bounded memory, cut only when it must be, and every missing byte is counted."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.workspace.limits import OUTPUT_CHARACTERS
from plugins_builtin.captured_output import LIVE_LINES, SEAM_CHARACTERS, KeptOutput, LiveLines, join_streams


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
    assert characters - 2 * SEAM_CHARACTERS <= len(head) + len(tail) <= characters
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
    assert shown == ["x" * (500 - SEAM_CHARACTERS)]


SECRET = "sk-7Fq2Zr9LmXv4Tb8KdWc1Ny6HpJ03"[:30]
FILLERS = ["x", "é", "some words ", "a line\n", "key=value ", "x" * 400 + " "]


def fill(filler: str, length: int) -> str:
    return (filler * (length // len(filler) + 1))[:length]


def assert_no_part(text: str) -> None:
    """No beginning or end of the secret stands in the text without the rest of it."""
    rest = text.replace(SECRET, "")
    assert SECRET[:8] not in rest
    assert SECRET[-8:] not in rest


@pytest.mark.parametrize("filler", FILLERS)
def test_no_half_of_a_secret_is_left_beside_a_cut(filler: str) -> None:
    room, total = 2_000, 6_000
    for seam in (room // 2, total - room // 2):
        for offset in range(-len(SECRET) - 3, 4):
            before = fill(filler, seam + offset)
            source = before + SECRET + fill(filler, total - len(before) - len(SECRET))
            text = kept(source.encode()).text(room)
            assert "bytes left out" in text
            assert_no_part(text)


@pytest.mark.parametrize("filler", FILLERS[:1] + FILLERS[2:])
def test_no_half_of_a_secret_is_left_in_a_flood_of_which_only_the_ends_are_kept(filler: str) -> None:
    total, room = 900_000, OUTPUT_CHARACTERS - 400
    for seam in (room // 2, total - room // 2):
        for offset in range(-len(SECRET), 1):
            output = KeptOutput()
            before = fill(filler, seam + offset)
            output.feed(before.encode() + SECRET.encode())
            output.feed(fill(filler, total - len(before) - len(SECRET)).encode())
            assert_no_part(join_streams(output, KeptOutput()))


@pytest.mark.parametrize("filler", ["x", "some words ", "x" * 400 + " ", "中", "😀", "10%\r"])
@pytest.mark.parametrize("piece", [700, 3_000, 50_000])
def test_no_half_of_a_secret_is_shown_live(filler: str, piece: int) -> None:
    for seam in (500, 501, 2_000, 2_004, 40_000):
        for offset in range(-len(SECRET) - 3, 4):
            shown: list[str] = []
            lines = LiveLines(shown.append)
            width = len(fill(filler, 1).encode())
            before = fill(filler, (seam + offset) // width if seam > 501 else seam + offset)
            data = f"{before}{SECRET}{fill(filler, 45_000 // width)}\rdone 1\rdone 2\nlast".encode()
            for start in range(0, len(data), piece):
                lines.feed(data[start : start + piece])
            lines.finish()
            assert shown == ["done 2", "last"]
            shown.clear()
            for start in range(0, len(data), piece):
                lines.feed(data[start : start + piece].replace(b"\r", b" "))
            lines.finish()
            assert len(shown) == 2
            assert all(len(line) <= 500 for line in shown)
            assert_no_part("|".join(shown))


@pytest.mark.parametrize("lines_after", [0, 5, LIVE_LINES, LIVE_LINES + 1])
def test_a_flood_read_at_once_shows_no_line_from_its_middle(lines_after: int) -> None:
    for length in range(39_950, 40_050, 3):
        shown: list[str] = []
        LiveLines(shown.append).feed(b"a " + SECRET.encode() + b" " * length + b"\n" + b"z\n" * lines_after)
        assert_no_part("|".join(shown))
        assert len(shown) == min(lines_after + 1, LIVE_LINES)


def test_what_a_progress_bar_showed_before_is_not_mixed_with_what_it_shows_now() -> None:
    shown: list[str] = []
    lines = LiveLines(shown.append)
    lines.feed(b"start\r" + b"y" * 1_990 + SECRET.encode())
    lines.feed(b"z" * 5_000 + b"\r")
    lines.feed(b"100%\r\n")
    assert shown == ["100%"]
