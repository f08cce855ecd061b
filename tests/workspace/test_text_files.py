"""Bytes to text and back: nothing is lost, encodings are named, binary data is told apart."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.workspace.text_files import NotText, TextFile, begins_binary, decode_text, encode_text


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        (b"hi\n", "hi\n", "UTF-8"),
        ("é\n".encode(), "é\n", "UTF-8"),
        (codecs.BOM_UTF8 + b"hi\n", "hi\n", "UTF-8 with byte order mark"),
        (codecs.BOM_UTF16_LE + "hé\n".encode("utf-16-le"), "hé\n", "UTF-16 LE with byte order mark"),
        (
            codecs.BOM_UTF16_BE + "hé\U0001f600\n".encode("utf-16-be"),
            "hé\U0001f600\n",
            "UTF-16 BE with byte order mark",
        ),
        (b"", "", "UTF-8"),
    ],
)
def test_known_encodings_are_decoded_named_and_given_back(data: bytes, text: str, encoding: str) -> None:
    decoded = decode_text(data)
    assert (decoded.shown(), decoded.encoding, decoded.exact) == (text, encoding, True)
    assert encode_text(decoded, decoded.text) == data


def test_foreign_bytes_show_as_the_replacement_sign_and_survive() -> None:
    decoded = decode_text(b"// \xa9 ACME\r\n")
    assert decoded.shown() == "// \ufffd ACME\r\n"
    assert not decoded.exact
    assert encode_text(decoded, decoded.text.replace("ACME", "acme")) == b"// \xa9 acme\r\n"


@pytest.mark.parametrize(
    "data",
    [
        b"\x7fELF\x02\x01\x01\0\0\0",
        bytes(range(256)) * 2,
        b"\0\x01" * 256,
        b"\x01\0" * 256,
        codecs.BOM_UTF32_LE + "hi".encode("utf-32-le"),
        codecs.BOM_UTF16_LE + b"\0\0\x01\x02" * 128,
        b"\x1f\x8b\x08\x01\x02\x03\x04\x05\x06" * 20,
    ],
)
def test_binary_data_is_not_text(data: bytes) -> None:
    with pytest.raises(NotText):
        decode_text(data)
    assert begins_binary(data)


def test_terminal_colours_and_form_feeds_are_text() -> None:
    assert decode_text(b"\x1b[31mred\x1b[0m\x0c\n").text == "\x1b[31mred\x1b[0m\x0c\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_character_cut_at_the_end_of_a_beginning_is_left_out(encoding: str) -> None:
    data = "ab\U0001f600".encode(encoding)[:-1]
    assert decode_text(data, whole=False) == TextFile(
        text="ab",
        codec="utf-8" if encoding == "utf-8" else "utf-16-le",
        mark=b"" if encoding == "utf-8" else b"\xff\xfe",
    )


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200), st.sampled_from([b"", codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE]))
def test_what_is_decoded_encodes_to_the_same_bytes(body: bytes, mark: bytes) -> None:
    try:
        decoded = decode_text(mark + body)
    except NotText:
        return
    assert encode_text(decoded, decoded.text) == mark + body
    decoded.shown().encode("utf-8")
