"""JSON lines come out the same wherever the network cuts the stream."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.types.model import ModelError, ModelErrorKind
from crystal.wire.json_lines import JsonLinesDecoder

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def decode(chunks: list[bytes]) -> list[object]:
    decoder = JsonLinesDecoder()
    return [value for chunk in chunks for value in decoder.feed(chunk)] + decoder.close()


@settings(max_examples=100, deadline=None)
@given(st.lists(JSON, max_size=5), st.sampled_from(["\n", "\r\n", "\n\n"]), st.booleans(), st.integers(1, 9))
def test_values_survive_any_boundary(values: list[object], end: str, ends: bool, size: int) -> None:
    text = end.join(json.dumps(value, ensure_ascii=False) for value in values) + (end if ends else "")
    stream = text.encode("utf-8", "surrogatepass")
    assert decode([stream[at : at + size] for at in range(0, len(stream), size)]) == values


@pytest.mark.parametrize("stream", [b'{"a":1}\n{"b"', b'{"a"\n{"b":1}\n', b"<html>\n"])
def test_a_line_that_is_cut_or_no_json_is_an_error(stream: bytes) -> None:
    with pytest.raises(ModelError) as caught:
        decode([stream])
    assert caught.value.kind is ModelErrorKind.INCOMPLETE
