"""The search backend for machines without ripgrep: a script of its own, run as a child so that it can be
ended.

It reads a JSON job, a NUL and NUL-separated paths from its standard input and prints what ``matches``
describes. It imports only the standard library, because it runs isolated from every package.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import stat
import sys
from typing import Any


def main() -> int:
    """Search; 0 when something matched, 1 when nothing did, 2 when the pattern cannot be used."""
    job_text, *paths = sys.stdin.buffer.read().split(b"\0")
    job: dict[str, Any] = json.loads(job_text)
    try:
        pattern = re.compile(job["pattern"], re.IGNORECASE if job["ignore_case"] else 0)
    except (re.error, OverflowError, RecursionError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    found = False
    for path in paths:
        if path:
            found |= search_file(path, pattern, job)
            sys.stdout.flush()
    return 0 if found else 1


def search_file(path: bytes, pattern: re.Pattern[str], job: dict[str, Any]) -> bool:
    """Print the matching lines of one file and their neighbours; return whether there are any."""
    lines = read_lines(path, job["file_bytes"])
    matches = {}
    for index, line in enumerate(lines):
        match = pattern.search(line)
        if match is None:
            continue
        if job["files_only"]:
            sys.stdout.buffer.write(path + b"\0")
            return True
        matches[index] = match.start()
    shown = sorted({near for index in matches for near in range(index - job["context"], index + job["context"] + 1)})
    for index in shown:
        if 0 <= index < len(lines):
            print_line(path, index, lines[index], matches.get(index))
    return bool(matches)


def print_line(path: bytes, index: int, line: str, start: int | None) -> None:
    """Print one line the way ripgrep does."""
    place = f"{index + 1}-" if start is None else f"{index + 1}:{len(encoded(line[:start])) + 1}:"
    sys.stdout.buffer.write(path + b"\0" + place.encode() + encoded(line) + b"\n")


def encoded(text: str) -> bytes:
    """Return text as UTF-8, foreign bytes as they were."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def read_lines(path: bytes, limit: int) -> list[str]:
    """Return the lines of a regular file; none for anything else, for a larger one and for one that cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return []
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
            return []
        data = file.read(limit)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = data.decode("utf-16", "replace")
    else:
        text = data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


if __name__ == "__main__":
    sys.exit(main())
