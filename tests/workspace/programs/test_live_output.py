"""Live lines come soon, whole, in order, few at a time, and never show a part of a secret."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.workspace.programs.kept_output import KeptOutput
from crystal.workspace.programs.live_output import LIVE_CHARACTERS, LIVE_LINES, UNBROKEN, LiveLines, Pace
from tests.workspace.programs.test_kept_output import SECRET, assert_no_part, fill


class Streams:
    """Two streams whose live lines are kept; after each piece they are shown when ``eager``."""

    def __init__(self, eager: bool = True) -> None:
        self.shown: list[str] = []
        self._kept = KeptOutput(), KeptOutput()
        self._live = LiveLines(self.shown.append, self._kept)
        self._eager = eager

    def feed(self, data: bytes, stream: int = 0) -> None:
        self._kept[stream].feed(data)
        self._live.arrived(stream)
        if self._eager:
            self._live.show_new()

    def show_new(self) -> None:
        self._live.show_new()

    def finish(self) -> list[str]:
        self._live.finish()
        return self.shown


def shown_of(pieces: Iterable[bytes], eager: bool = True) -> list[str]:
    streams = Streams(eager)
    for piece in pieces:
        streams.feed(piece)
    return streams.finish()


@pytest.mark.parametrize("eager", [True, False])
def test_a_line_that_comes_in_pieces_is_shown_once_and_whole(eager: bool) -> None:
    streams = Streams(eager)
    for piece in (b"on", b"e\ntw", b"o", b"\n", b"thr\xc3", b"\xa9e"):
        streams.feed(piece)
    streams.finish()
    assert streams.finish() == ["one", "two", "thr\u00e9e"]


@settings(max_examples=100, deadline=None)
@given(
    lines=st.lists(st.text(st.sampled_from("ab \u00e9"), max_size=8), max_size=LIVE_LINES),
    cuts=st.lists(st.integers(0, 200), max_size=12),
    eager=st.booleans(),
)
def test_lines_are_the_same_however_they_come(lines: list[str], cuts: list[int], eager: bool) -> None:
    data = "".join(line + "\n" for line in lines).encode()
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    assert shown_of([data[start:end] for start, end in itertools.pairwise(edges)], eager) == lines


def test_lines_of_both_streams_keep_their_order() -> None:
    streams = Streams(eager=False)
    for number in range(6):
        streams.feed(f"{number}\n".encode(), number % 2)
    streams.feed(b"half ", 0)
    streams.feed(b"err\n", 1)
    streams.feed(b"done\n", 0)
    assert streams.finish() == [*"012345", "err", "half done"]


def test_streams_that_take_turns_without_end_are_held_in_bounded_memory() -> None:
    streams = Streams(eager=False)
    for number in range(10_000):
        streams.feed(f"{number}\n".encode(), number % 2)
    assert streams.finish() == [str(number) for number in range(10_000 - LIVE_LINES, 10_000)]


def test_a_flood_shows_its_newest_lines_only() -> None:
    assert shown_of([b"".join(b"%d\n" % number for number in range(100_000))]) == [
        str(number) for number in range(100_000 - LIVE_LINES, 100_000)
    ]


def test_a_line_without_end_is_shown_short_and_once_while_it_still_grows() -> None:
    streams = Streams()
    for _ in range(100):
        streams.feed(b"x" * 100_000)
    assert streams.shown == [UNBROKEN]
    streams.feed(b"x\nnext\n")
    assert streams.finish() == [UNBROKEN, "next"]


def test_a_line_without_end_is_shown_however_much_of_it_has_come() -> None:
    for size in (3_000, 199_000, 201_000, 2_000_000):
        assert shown_of([b"some words " + b"x" * size], eager=False) == ["some words"]


def test_a_progress_bar_is_shown_while_it_moves_and_each_state_once() -> None:
    streams = Streams()
    for piece in (b"1%\r", b"2%", b"\r", b"\r", b"3%\r4%\r", b"4%\r", b"5", b"0%\r\n", b"end\r", b"\n", b"\n"):
        streams.feed(piece)
    assert streams.finish() == ["1%", "2%", "4%", "50%", "end", ""]


def test_a_progress_bar_that_floods_shows_its_newest_state() -> None:
    streams = Streams(eager=False)
    for number in range(200_000):
        streams.feed(b"%d%%\r" % number)
    streams.show_new()
    assert len(streams.shown) <= 2
    assert streams.shown[-1] == "199999%"
    streams.feed(b"done\n")
    assert streams.finish()[-2:] == ["199999%", "done"]


@pytest.mark.parametrize("filler", ["x", "some words ", "x" * 400 + " ", "\u4e2d", "\U0001f600", "10%\r"])
@pytest.mark.parametrize("piece", [7, 700, 3_000, 50_000])
@pytest.mark.parametrize("eager", [True, False])
def test_no_half_of_a_secret_is_shown_live(filler: str, piece: int, eager: bool) -> None:
    seams = (500, 501, 2_000, 2_004, 40_000) if piece > 100 else (500, 501)
    for seam in seams:
        for offset in range(-len(SECRET) - 3, 4, 1 if piece > 100 else 5):
            width = len(fill(filler, 1).encode())
            before = fill(filler, (seam + offset) // width if seam > 501 else seam + offset)
            after = fill(filler, (45_000 if piece > 100 else 3_000) // width)
            data = f"{before}{SECRET}{after}\rdone 1\rdone 2\nlast".encode()
            for source in (data, data.replace(b"\r", b" ")):
                shown = shown_of([source[start : start + piece] for start in range(0, len(source), piece)], eager)
                assert shown[-1] == "last"
                assert all(len(line) <= LIVE_CHARACTERS for line in shown)
                assert_no_part("|".join(shown))


@settings(max_examples=100, deadline=None)
@given(
    parts=st.lists(
        st.sampled_from([SECRET, SECRET + " ", "\n", "\r", "x" * 600, "x" * 1_990, " ", "\x1b[0m"]), max_size=12
    ),
    cuts=st.lists(st.tuples(st.integers(0, 6_000), st.booleans()), max_size=8),
)
def test_a_secret_that_is_split_over_reads_is_never_shown_in_parts(
    parts: list[str], cuts: list[tuple[int, bool]]
) -> None:
    data = "".join(parts).encode()
    streams = Streams(eager=False)
    at = 0
    for cut, show in sorted(cuts):
        streams.feed(data[at:cut])
        at = max(at, min(cut, len(data)))
        if show:
            streams.show_new()
    streams.feed(data[at:])
    assert_no_part("|".join(streams.finish()))


@pytest.mark.parametrize("length", [501, 700, 1_999, 2_005, 5_000])
@pytest.mark.parametrize("before", ["", "key: ", "key=", "x" * 300, "some words " * 30])
def test_a_long_secret_is_shown_whole_or_not_at_all(length: int, before: str) -> None:
    secret = SECRET + "y" * length
    (line,) = shown_of([f"{before}{secret}\n".encode()])
    assert SECRET[:8] not in line


@pytest.mark.parametrize("lines_after", [0, 5, LIVE_LINES, LIVE_LINES + 1])
def test_a_flood_read_at_once_shows_no_line_from_its_middle(lines_after: int) -> None:
    for length in range(39_950, 40_050, 3):
        shown = shown_of([b"a " + SECRET.encode() + b" " * length + b"\n" + b"z\n" * lines_after])
        assert_no_part("|".join(shown))
        assert len(shown) == min(lines_after + 1, LIVE_LINES)


@pytest.mark.parametrize("end", [b"\n", b"\r", b""])
def test_a_line_whose_beginning_was_not_kept_is_not_shown(end: bytes) -> None:
    for offset in range(0, len(SECRET), 3):
        streams = Streams(eager=False)
        for _ in range(9):
            streams.feed(b"x" * 100_000)
        streams.feed(b"x" * offset + SECRET.encode() + b" " + b"y" * (199_999 - len(SECRET)) + end)
        streams.show_new()
        streams.feed(b"next\n")
        assert_no_part("|".join(streams.finish()))


def test_what_a_progress_bar_showed_before_is_not_mixed_with_what_it_shows_now() -> None:
    pieces = [b"start\r" + b"y" * 1_990 + SECRET.encode(), b"z" * 5_000 + b"\r", b"100%\r\n"]
    assert shown_of(pieces, eager=False) == ["100%"]
    shown = shown_of(pieces)
    assert (shown[0], shown[-1]) == ("start", "100%")
    assert_no_part("|".join(shown))


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"\x1b[31mred\a\x1b[0m", "red "),
        (b"\x1b]0;title\x07x", "x"),
        (b"a\tb", "a   b"),
        (b"a\xe2\x80\xaeb", "a b"),
        (b"a\xffb", "a\ufffdb"),
    ],
)
def test_a_line_is_made_safe_for_a_terminal(data: bytes, line: str) -> None:
    assert shown_of([data + b"\n"]) == [line]


class StoppedClock:
    """Stands for an event loop whose time only moves when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, act: Callable[[], None]) -> Handle:
        heapq.heappush(self._due, (when, len(self._due), act))
        return Handle(self._due)

    def move(self, seconds: float) -> None:
        end = self.now + seconds
        while self._due and self._due[0][0] <= end:
            self.now, _, act = heapq.heappop(self._due)
            act()
        self.now = end


class Handle:
    def __init__(self, due: list[tuple[float, int, Callable[[], None]]]) -> None:
        self._due = due

    def cancel(self) -> None:
        self._due.clear()


def as_loop(clock: object) -> asyncio.AbstractEventLoop:
    loop: asyncio.AbstractEventLoop = clock  # type: ignore[assignment]
    return loop


def test_what_is_asked_for_after_a_while_is_done_at_once_and_a_flood_is_done_at_intervals() -> None:
    clock, done = StoppedClock(), []
    pace = Pace(as_loop(clock), 0.2, lambda: done.append(round(clock.now, 3)))
    pace.ask()
    clock.move(0)
    assert done == [100.0]
    for _ in range(1_000):
        pace.ask()
        clock.move(0.001)
    assert done == [100.0, 100.2, 100.4, 100.6, 100.8, 101.0]
    clock.move(5)
    assert len(done) == 6
    pace.ask()
    clock.move(0)
    assert done[-1] == round(clock.now, 3)


def test_nothing_is_done_any_more_after_the_stop() -> None:
    clock, done = StoppedClock(), []
    pace = Pace(as_loop(clock), 0.2, lambda: done.append(clock.now))
    pace.ask()
    pace.stop()
    clock.move(5)
    assert done == []
