"""Server-sent events are read by the standard, at any chunk boundary, and as loosely as servers write them (G20)."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.types.model import ModelError, ModelErrorKind
from crystal.wire.sse import ServerEvent, SseDecoder, event_values

PAYLOADS = ['{"a":"\u2028 \u00e9 \\n"}', '{"b":2}', "[DONE]"]
PLAIN = "".join(f"data: {payload}\n\n" for payload in PAYLOADS).encode()
EXPECTED = [ServerEvent(name="", data=payload) for payload in PAYLOADS]


def decode(chunks: list[bytes], limit: int = 10_000) -> list[ServerEvent]:
    decoder = SseDecoder(limit)
    return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.close()


VARIANTS = {
    "lf": PLAIN,
    "crlf": PLAIN.replace(b"\n", b"\r\n"),
    "cr": PLAIN.replace(b"\n", b"\r"),
    "no space": PLAIN.replace(b"data: ", b"data:"),
    "comments": b": ping\n" + PLAIN.replace(b"\n\n", b"\n: keep-alive\n:\n\n:\n\n"),
    "id and retry": PLAIN.replace(b"data:", b"id: 7\nretry: 10\ndata:"),
    "byte order mark": b"\xef\xbb\xbf" + PLAIN,
    "unknown fields": PLAIN.replace(b"data:", b"x\nData: no\n data: no\ndata:"),
    "no empty line at the end": PLAIN.removesuffix(b"\n\n"),
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 10_000])
def test_every_way_to_write_a_stream_gives_the_same_events(variant: str, size: int) -> None:
    stream = VARIANTS[variant]
    assert decode([stream[at : at + size] for at in range(0, len(stream), size)]) == EXPECTED


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(sorted(VARIANTS)), st.lists(st.integers(0, 200), max_size=8))
def test_a_stream_may_be_cut_anywhere(variant: str, cuts: list[int]) -> None:
    stream = VARIANTS[variant]
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    assert decode([stream[a:b] for a, b in pairwise(places)]) == EXPECTED


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(alphabet=st.characters(blacklist_characters="\r\n", codec="utf-8"), min_size=1), max_size=5))
def test_data_of_several_lines_is_joined_and_otherwise_untouched(lines: list[str]) -> None:
    stream = "".join(f"data: {line}\n" for line in lines).encode() + b"\n"
    assert decode([stream]) == ([ServerEvent(name="", data="\n".join(lines))] if lines else [])


def test_the_name_belongs_to_one_event_and_the_last_one_wins() -> None:
    stream = b"event: a\nevent: error\ndata: 1\n\ndata: 2\n\nevent: lost\n\ndata: 3\n\n"
    assert [(event.name, event.data) for event in decode([stream])] == [("error", "1"), ("", "2"), ("", "3")]


def test_exactly_one_space_after_the_colon_is_dropped() -> None:
    assert [event.data for event in decode([b"data:  a \n\ndata\n\n"])] == [" a ", ""]


def test_bytes_that_are_no_utf8_cost_a_character_and_not_the_stream() -> None:
    assert [event.data for event in decode([b'data: "\xff"\n\ndata: 1\n\n'])] == ['"\ufffd"', "1"]


@pytest.mark.parametrize(
    ("ending", "data"),
    [
        (b"data: {}", ["{}"]),
        (b"data: {}\n", ["{}"]),
        (b"data:[DONE]", ["[DONE]"]),
        (b'data: {"a', []),
        (b": x", []),
    ],
)
def test_a_last_event_without_its_empty_line_counts_when_it_is_whole(ending: bytes, data: list[str]) -> None:
    assert [event.data for event in decode([ending])] == data


def test_an_event_beyond_the_limit_is_refused_although_its_lines_are_short() -> None:
    with pytest.raises(ModelError) as caught:
        decode([b"data: 12345678\n" * 200], limit=1000)
    assert caught.value.kind is ModelErrorKind.INVALID


@pytest.mark.parametrize("text", ["[DONE]", " [DONE] ", "[DONE]\n"])
def test_the_end_mark_is_recognised(text: str) -> None:
    assert ServerEvent(name="", data=text).is_done
    assert not ServerEvent(name="", data='["DONE"]').is_done


@pytest.mark.parametrize(
    ("data", "values"),
    [
        ('{"a": 1}', [{"a": 1}]),
        ('{\n "a": 1\n}', [{"a": 1}]),
        ('{"a": 1}\n{"a": 2}', [{"a": 1}, {"a": 2}]),
        ("ping", []),
        ("", []),
        ('ping\n{"a": 1}', [{"a": 1}]),
    ],
)
def test_event_data_is_read_as_one_value_or_one_a_line(data: str, values: list[object]) -> None:
    assert event_values(ServerEvent(name="", data=data)) == values


@pytest.mark.parametrize("data", ['{"a": ', '{"a": 1}\n{"b', "[1,", "{" * 50_000])
def test_broken_json_is_never_skipped_in_silence(data: str) -> None:
    with pytest.raises(ModelError) as caught:
        event_values(ServerEvent(name="", data=data))
    assert caught.value.kind is ModelErrorKind.INCOMPLETE


def test_a_large_event_in_small_pieces_takes_time_in_proportion_to_its_size() -> None:
    """Counted in bytes looked at for a line end, not in seconds: a decoder that rescans would look at gigabytes."""

    class Counted(bytes):
        looked_at = 0

        def splitlines(self, keepends: bool = False) -> list[bytes]:
            Counted.looked_at += len(self)
            return super().splitlines(keepends)

    text = json.dumps("x" * 1_000_000).encode()
    chunks: list[bytes] = [Counted(text[at : at + 1000]) for at in range(0, len(text), 1000)]
    [event] = decode([Counted(b"data: "), *chunks, Counted(b"\n\n")], limit=2_000_000)
    assert len(event.data) == len(text)
    assert Counted.looked_at <= len(text) + 100
