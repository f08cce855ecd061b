"""Bytes of a file as text and back: encodings, the mark of binary data, line endings. Works on bytes, opens nothing."""

from __future__ import annotations

import codecs
import re

from crystal.types._frozen import Frozen

SNIFF_BYTES = 8192
"""How much of a file's beginning decides whether it is binary."""

_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\r\f\b\x1b") + b"\x7f"
_CONTROLS_TOLERATED = 10
"""Share of control characters, one in so many, from which on bytes without a NUL count as binary."""

_DECODED_PIECE = 1 << 18
"""Bytes of a beginning that are decoded at once."""

_SURROGATES = re.compile("[\ud800-\udfff]")


class NotText(ValueError):
    """The bytes are not text in an encoding that is understood here."""


class TextFile(Frozen):
    """A decoded file.

    :param text: its characters without the byte order mark. Bytes that do not belong to the encoding are lone
        surrogates, so that encoding gives them back; :meth:`shown` replaces them.
    :param codec: ``utf-8``, ``utf-16-le`` or ``utf-16-be``.
    :param mark: the byte order mark the file begins with, or nothing.
    :param exact: whether every byte belongs to the encoding.
    :param tail: a last byte that is half a UTF-16 unit.
    """

    text: str
    codec: str = "utf-8"
    mark: bytes = b""
    exact: bool = True
    tail: bytes = b""

    @property
    def encoding(self) -> str:
        """The encoding in words, such as ``UTF-8`` or ``UTF-16 LE with byte order mark``."""
        name = {"utf-8": "UTF-8", "utf-16-le": "UTF-16 LE", "utf-16-be": "UTF-16 BE"}[self.codec]
        return f"{name} with byte order mark" if self.mark else name

    def shown(self, characters: int | None = None) -> str:
        """The text for a reader: what is not in the encoding becomes U+FFFD.

        :param characters: the most that are wanted, from the start.
        """
        text = self.text[:characters]
        return text if self.exact else _SURROGATES.sub("\ufffd", text)


def decode_text(data: bytes, *, whole: bool = True, limit: int | None = None) -> TextFile:
    """Decode the bytes of a file: UTF-16 when it begins with such a mark, else UTF-8.

    :param whole: ``False`` when ``data`` is only the beginning of a file: a character cut at its end is left
        out.
    :param limit: characters after which the decoding of a beginning may stop.
    :raises NotText: when the bytes look binary.
    """
    for mark, codec in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if data.startswith(mark):
            return _decode_utf_16(data[2:], codec, mark, whole)
    if looks_binary(data[:SNIFF_BYTES]):
        raise NotText("the bytes look binary")
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    body = data[len(mark) :]
    if not whole:
        return _decode_beginning(body, mark, limit)
    try:
        return TextFile(text=body.decode("utf-8"), mark=mark)
    except UnicodeDecodeError:
        return TextFile(text=body.decode("utf-8", "surrogateescape"), mark=mark, exact=False)


def encode_text(original: TextFile, text: str) -> bytes:
    """Encode changed text the way the file was: same encoding, mark and foreign bytes.

    :param original: what :func:`decode_text` gave for the whole file.
    """
    errors = "surrogateescape" if original.codec == "utf-8" else "surrogatepass"
    return original.mark + text.encode(original.codec, errors) + original.tail


def looks_binary(sample: bytes) -> bool:
    """Whether the beginning of a file is binary: it holds a NUL or is full of control characters."""
    if b"\0" in sample:
        return True
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    return controls * _CONTROLS_TOLERATED > len(sample)


def begins_binary(sample: bytes) -> bool:
    """Whether a file that begins so is binary, UTF-16 with a mark being text."""
    try:
        decode_text(sample, whole=False)
    except NotText:
        return True
    return False


def _decode_utf_16(body: bytes, codec: str, mark: bytes, whole: bool) -> TextFile:
    tail = body[len(body) - len(body) % 2 :]
    text = body[: len(body) - len(tail)].decode(codec, "surrogatepass")
    if not whole:
        tail = b""
        text = text[:-1] if "\ud800" <= text[-1:] <= "\udbff" else text
    # UTF-32 and binary data that happen to begin with the mark are full of NULs when read as UTF-16.
    if "\0" in text[:SNIFF_BYTES]:
        raise NotText("the bytes look binary")
    exact = not tail and _SURROGATES.search(text) is None
    return TextFile(text=text, codec=codec, mark=mark, exact=exact, tail=tail)


def _decode_beginning(body: bytes, mark: bytes, limit: int | None) -> TextFile:
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    pieces: list[str] = []
    length = start = 0
    # One character outside the first plane makes a whole string four bytes wide, so no more is decoded than needed.
    while start < len(body) and (limit is None or length < limit):
        pieces.append(decoder.decode(body[start : start + _DECODED_PIECE], False))
        start += _DECODED_PIECE
        length += len(pieces[-1])
    text = "".join(pieces)
    return TextFile(text=text, mark=mark, exact=_SURROGATES.search(text) is None)
