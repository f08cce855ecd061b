"""Output is kept in bounded memory, cut only when it must be, and every missing byte is counted."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.workspace.limits import OUTPUT_CHARACTERS
from crystal.workspace.programs.kept_output import SEAM_CHARACTERS, KeptOutput, Shown, join_streams, show


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
    text = kept(source.encode(), piece).shown(characters).text
    if len(source) <= characters:
        assert text == source
        return
    head, number, tail = re.split(r"\n\[\.\.\. ([0-9,]+) bytes left out \.\.\.\]\n", text)
    assert source.startswith(head)
    assert source.endswith(tail)
    assert characters - 2 * SEAM_CHARACTERS <= len(head) + len(tail) <= characters
    assert int(number.replace(",", "")) == len(source.encode()) - len((head + tail).encode())


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=300), piece=st.integers(1, 50))
def test_bytes_are_shown_the_same_however_they_come(data: bytes, piece: int) -> None:
    assert kept(data, piece).shown(1_000) == show(data.decode("utf-8", "surrogateescape"))


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=300) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")))
def test_what_is_shown_is_text_that_a_terminal_and_a_provider_can_take(data: bytes) -> None:
    shown = kept(data).shown(1_000)
    shown.text.encode("utf-8")
    assert all(ord(character) >= 32 or character in "\t\n\r\f" for character in shown.text)
    assert not any(127 <= ord(character) < 160 for character in shown.text)
    assert all(line.rstrip("\r").count("\r") == 0 for line in shown.text.split("\n"))


@settings(max_examples=100, deadline=None)
@given(text=st.text(st.characters(codec="utf-8", exclude_categories=["Cc"], include_characters="\t\n"), max_size=300))
def test_text_is_shown_as_it_is(text: str) -> None:
    assert kept(text.encode()).shown(1_000) == Shown(text)


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"a\xffb", Shown("a\ufffdb", True)),
        (b"\xe4\xb8", Shown("\ufffd", True)),
        (b"a\0b\x07\x7f", Shown("a\ufffdb\ufffd\ufffd", True)),
        (b"a\xc2\x85b", Shown("a\ufffdb", True)),
        ("a real \ufffd".encode(), Shown("a real \ufffd")),
        (b"\x1b[1;38;5;12mx\x1b[0m\x1b[K", Shown("x")),
        (b"\x1b]0;title\x07x\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", Shown("xlink")),
        (b"\x1b]0;never ended\nnext line", Shown("0;never ended\nnext line")),
        (b"\x1b(B\x1b=x\x1b7", Shown("x")),
        (b"x\x1b", Shown("x\ufffd", True)),
        (b"dos\r\nlines\r\n", Shown("dos\r\nlines\r\n")),
        (b"1%\r2%\r3%\nend", Shown("3%\nend", overwritten=2)),
        (b"1%\r2%\r\r", Shown("2%\r\r", overwritten=1)),
        (b"\r\rx", Shown("x")),
        (b"a\tb\x0cc", Shown("a\tb\x0cc")),
    ],
)
def test_what_cannot_be_read_is_replaced_or_left_out_and_said(data: bytes, shown: Shown) -> None:
    assert kept(data).shown(1_000) == shown


def test_a_result_says_what_it_does_not_show() -> None:
    text = join_streams(kept(b"1\r2\r3\n\0"), kept(b"4\r5\xff"))
    assert text == (
        "3\n\ufffd\n5\ufffd\n(3 overwritten states of progress lines are left out)\n"
        "(bytes that are no text are shown as U+FFFD)\n"
    )


@pytest.mark.parametrize(
    "unit", [b"\x1b[", b"\x1b]", b"\x1b[0", b"\x1b[;;;;", b"\x1b]0;", b"\r", b"a\r", b"\xff", b"\0"]
)
def test_output_made_to_be_slow_is_shown_all_the_same(unit: bytes) -> None:
    assert len(join_streams(kept(unit * (500_000 // len(unit))), KeptOutput())) <= OUTPUT_CHARACTERS


@settings(max_examples=100, deadline=None)
@given(
    total=st.integers(0, 900_000),
    start=st.integers(0, 900_000),
    length=st.integers(0, 500_000),
    piece=st.integers(10_000, 300_000),
)
def test_a_part_of_a_stream_is_what_was_printed_there(total: int, start: int, length: int, piece: int) -> None:
    source = bytes(range(256)) * 4_000
    output = kept(source[:total], piece)
    end = min(start + length, total)
    begins, data = output.between(min(start, end), end)
    assert begins >= min(start, end)
    assert data == source[begins:end]
    if end == total and start <= end and total - start < 200_000:
        assert begins == start


def test_the_whole_result_stays_within_one_outputs_length() -> None:
    for out, err in ((10, 10), (10**6, 10**6), (10**6, 10), (10, 10**6), (60_000, 45_000), (0, 10**6)):
        text = join_streams(kept(b"o" * out), kept(b"e" * err))
        assert len(text) <= OUTPUT_CHARACTERS - 100
        assert text.count("left out") == (out > 50_000) + (err > 50_000) or out + err < OUTPUT_CHARACTERS


def test_a_result_that_fits_is_not_cut_whatever_its_bytes() -> None:
    out, err = "中" * 60_000, "e" * 39_000
    assert join_streams(kept(out.encode()), kept(err.encode())) == f"{out}\n{err}\n"


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
            text = kept(source.encode()).shown(room).text
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
