"""Keeps the bytes of a growing transcript, so that a request costs the encoding of what is new and one copy."""

from __future__ import annotations

from crystal.types.items import ModelItem
from crystal.types.model import ImageLoader
from crystal.wire.json_text import encode_json
from plugins_builtin.protocols.chat_messages import MessageDialect, opens_round, round_messages, split_rounds


class RoundStore:
    """The encoded rounds of one transcript: all but the last, which may still grow.

    Stored rounds are checked against the items of every request, object by object, so a hook may replace any
    of them. Not for use by two threads at once.
    """

    def __init__(self, dialect: MessageDialect) -> None:
        self._dialect = dialect
        self._items: tuple[ModelItem, ...] = ()
        self._bytes = bytearray()
        self._spans: list[tuple[int, int, int, int]] = []
        """For each stored round: where its items start and end, and where its bytes do."""

    def encode(self, items: tuple[ModelItem, ...], load_image: ImageLoader) -> tuple[bytes | bytearray, bytes]:
        """Return two pieces, the older and the last round; joined by a comma they are the messages without
        brackets.

        :param items: system items left out. Either piece may be empty.
        """
        known = len(self._items)
        # Comparing tuples asks for identity first, so an unchanged transcript costs one pointer comparison an
        # item.
        if items[:known] != self._items or not opens_round(items, known):
            self._rebuild(items, load_image)
            known = len(self._items)
        rounds = split_rounds(items[known:])
        for closed in rounds[:-1]:
            self._append(closed, self._encode_round(closed, load_image))
        last = self._encode_round(rounds[-1], load_image, is_last=True) if rounds else b""
        return self._bytes, last

    def _encode_round(self, items: tuple[ModelItem, ...], load_image: ImageLoader, *, is_last: bool = False) -> bytes:
        return encode_json(round_messages(items, self._dialect, load_image, is_last=is_last))[1:-1]

    def _append(self, items: tuple[ModelItem, ...], encoded: bytes | memoryview) -> None:
        if self._bytes and encoded:
            self._bytes += b","
        first, start = len(self._items), len(self._bytes)
        self._items += items
        self._bytes += encoded
        self._spans.append((first, len(self._items), start, len(self._bytes)))

    def _rebuild(self, items: tuple[ModelItem, ...], load_image: ImageLoader) -> None:
        """Store the closed rounds of ``items``, with the bytes of those that were stored before."""
        kept = RoundStore(self._dialect)
        stored = {id(self._items[span[0]]): span for span in self._spans}
        for closed in split_rounds(items)[:-1]:
            span = stored.get(id(closed[0]))
            if span is not None and self._items[span[0] : span[1]] == closed:
                kept._append(closed, bytes(self._bytes[span[2] : span[3]]))
            else:
                kept._append(closed, self._encode_round(closed, load_image))
        self._items, self._bytes, self._spans = kept._items, kept._bytes, kept._spans
