"""Make untrusted text safe to show: no control, escape or direction character of it reaches a terminal."""

from __future__ import annotations

import os
import re
from typing import TextIO

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ud800-\udfff]"
)


def safe_text(text: str) -> str:
    """Return ``text`` with line ends as ``\\n`` and every unsafe character shown as an escape such as ``\\x1b``."""
    return _UNSAFE.sub(_escape, text.replace("\r\n", "\n"))


def safe_line(text: str, limit: int = 200) -> str:
    """Return ``text`` safe and on one line, cut at ``limit`` characters."""
    line = safe_text(text).replace("\n", "\\n").replace("\t", " ")
    return line if len(line) <= limit else f"{line[: limit - 7]}<cut>"


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def reliable(stream: TextIO | None) -> TextIO:
    """Return a stream that can hold any text; a closed one swallows it."""
    if stream is None or stream.closed:
        return open(os.devnull, "w", encoding="utf-8")
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    return stream
