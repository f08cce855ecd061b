"""A line terminal with a person at it: rows go out, one line at a time comes in. Its settings are never changed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import termios
from collections.abc import Mapping, Sequence
from typing import TextIO

from crystal.cli.page import Page, Row, Tone

_COLOURS = {Tone.HEADING: "\x1b[1m", Tone.ADDED: "\x1b[32m", Tone.REMOVED: "\x1b[31m", Tone.PLACE: "\x1b[36m"}
_PLAIN = "\x1b[0m"

_ROWS_AT_ONCE = 200
"""Rows written before an interrupt is heard."""

_LINE_BYTES = 4096
"""The longest line that Linux lets a terminal hand over."""

_SIZE = (80, 24)
"""Columns and lines of a terminal that does not know its own."""


class TerminalClosed(Exception):
    """Nobody is at the terminal any more."""


class Terminal:
    """Prompts on one stream and reads lines from one descriptor, both of them a terminal.

    :param encoding: of what is typed.
    """

    def __init__(self, descriptor: int, stream: TextIO, *, encoding: str, coloured: bool) -> None:
        self._descriptor = descriptor
        self._stream = stream
        self._encoding = encoding
        self._coloured = coloured

    @property
    def page(self) -> Page:
        """What it can show, as it is now."""
        return Page(width=self._size()[0], encoding=self._stream.encoding or "ascii")

    @property
    def lines(self) -> int:
        """Rows in sight."""
        return self._size()[1]

    async def show(self, rows: Sequence[Row]) -> None:
        """Write rows.

        :raises TerminalClosed: when they cannot be written.
        """
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            self._write("".join(f"{self._painted(row)}\n" for row in rows[start : start + _ROWS_AT_ONCE]))
            await asyncio.sleep(0)

    async def ask(self, prompt: str) -> str | None:
        """Write a prompt and return the line typed after it; ``None`` at the end of the input.

        What was typed before the prompt stood there is dropped: it was meant for something else.

        :raises TerminalClosed: when nothing can be written or read.
        """
        try:
            termios.tcflush(self._descriptor, termios.TCIFLUSH)
        except termios.error as error:
            raise TerminalClosed from error
        self._write(prompt)
        data = await self._read()
        if data.endswith(b"\n"):
            return data[:-1].decode(self._encoding, "replace")
        self._require_open()
        self._write("\n")
        return None

    async def _read(self) -> bytes:
        """Wait without a thread: an interrupt must not need another Enter."""
        loop = asyncio.get_running_loop()
        line: asyncio.Future[bytes] = loop.create_future()

        def read() -> None:
            if line.done():
                return
            try:
                line.set_result(os.read(self._descriptor, _LINE_BYTES))
            except OSError as error:
                line.set_exception(TerminalClosed(str(error)))

        loop.add_reader(self._descriptor, read)
        try:
            return await line
        finally:
            loop.remove_reader(self._descriptor)

    def _require_open(self) -> None:
        """Tell the end that a person typed from a terminal that went away."""
        try:
            termios.tcgetattr(self._descriptor)
        except termios.error as error:
            raise TerminalClosed from error

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError) as error:
            raise TerminalClosed from error

    def _painted(self, row: Row) -> str:
        colour = _COLOURS.get(row.tone) if self._coloured else None
        return row.text if colour is None else f"{colour}{row.text}{_PLAIN}"

    def _size(self) -> tuple[int, int]:
        with contextlib.suppress(OSError, ValueError):
            columns, lines = os.get_terminal_size(self._stream.fileno())
            if columns and lines:
                return columns, lines
        return _SIZE


def has_colours(environ: Mapping[str, str]) -> bool:
    """Whether a terminal is to be given colours: not when ``NO_COLOR`` says so, nor when it can do nothing."""
    return not environ.get("NO_COLOR") and environ.get("TERM", "dumb") != "dumb"
