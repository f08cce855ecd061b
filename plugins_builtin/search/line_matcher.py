"""The search backend for machines without ripgrep: a script of its own, run as a child so that it can be
ended.

It reads a JSON job, a NUL and NUL-separated paths from its standard input and prints what ``matches``
describes. It imports only the standard library, because it runs isolated from every package.
"""

from __future__ import annotations

import codecs
import functools
import json
import os
import re
import stat
import sys
from collections.abc import Iterator


class Job:
    """What is looked for.

    :param text: a JSON object: the patterns and the literal of a translation (see ``dialect``), ``files_only``,
        ``context`` and ``file_bytes``, the size above which a file is passed over.
    """

    def __init__(self, text: bytes) -> None:
        job = json.loads(text)
        self.files_only: bool = job["files_only"]
        self.context: int = job["context"]
        self.file_bytes: int = job["file_bytes"]
        self.literal: bytes = job["literal"].encode()
        self._plain: str = job["plain"]
        self._wide: str = job["wide"]

    @functools.cached_property
    def plain(self) -> re.Pattern[str]:
        """The pattern for ASCII text without a carriage return."""
        return re.compile(self._plain, re.ASCII | re.MULTILINE) if self._plain else self.wide

    @functools.cached_property
    def wide(self) -> re.Pattern[str]:
        """The pattern for any text."""
        return re.compile(self._wide)


def main() -> int:
    """Search; 0 when something matched, 1 when nothing did, 2 when the pattern cannot be used."""
    job_text, *paths = sys.stdin.buffer.read().split(b"\0")
    job = Job(job_text)
    try:
        _ = job.plain
        found = [search_file(path, job) for path in paths if path]
    except (re.error, OverflowError, RecursionError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0 if any(found) else 1


def search_file(path: bytes, job: Job) -> bool:
    """Print the matching lines of one file and their neighbours; return whether there are any."""
    text = read_text(path, job)
    if text is None:
        return False
    pattern = job.plain if text.isascii() and "\r" not in text else job.wide
    found = find_lines(text, pattern)
    if job.files_only:
        if next(found, None) is None:
            return False
        sys.stdout.buffer.write(path + b"\0")
        sys.stdout.buffer.flush()
        return True
    if job.context:
        matches = {number: column for number, column, _ in found}
        print_with_neighbours(path, text.split("\n"), matches, job.context)
        return bool(matches)
    matched = False
    for number, column, line in found:
        print_line(path, number, line, column)
        matched = True
    sys.stdout.buffer.flush()
    return matched


def find_lines(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, int, str]]:
    """Yield the matching lines of a text: number, index at which the match begins, the line.

    The pattern never matches a line break, so the whole text is searched at once.
    """
    at = counted = 0
    number = 1
    while at <= len(text) and (match := pattern.search(text, at)):
        start = match.start()
        number += text.count("\n", counted, start)
        counted = start
        begin = text.rfind("\n", 0, start) + 1
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield number, start - begin, text[begin:end]
        at = end + 1


def print_with_neighbours(path: bytes, lines: list[str], matches: dict[int, int], context: int) -> None:
    """Print matching lines and those around them, each once."""
    last = 0
    for match in matches:
        for number in range(max(last + 1, match - context), min(len(lines), match + context) + 1):
            print_line(path, number, lines[number - 1], matches.get(number))
            last = number
    sys.stdout.buffer.flush()


def print_line(path: bytes, number: int, line: str, column: int | None) -> None:
    """Print one line the way ripgrep does, with the carriage return that a reader takes away."""
    place = f"{number}-" if column is None else f"{number}\0{len(encoded(line[:column])) + 1}\0"
    sys.stdout.buffer.write(path + b"\0" + place.encode() + encoded(line) + b"\r\n")


def encoded(text: str) -> bytes:
    """Return text as UTF-8, foreign bytes as they were."""
    return text.encode("utf-8", "surrogateescape")


def read_text(path: bytes, job: Job) -> str | None:
    """Return the text of a regular file without its last line break, each line ending in a line feed.

    :return: ``None`` for anything else, for an empty file, a larger one, one that cannot be read, and one that
        cannot match.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        data = read_regular(descriptor, job.file_bytes)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = data.decode("utf-16", "replace")
    elif job.literal and job.literal not in data:
        return None
    else:
        text = data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
    return text.replace("\r\n", "\n").removesuffix("\n") if text else None


def read_regular(descriptor: int, limit: int) -> bytes:
    """Return the bytes of a regular file; nothing for anything else and for one with more than ``limit``."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
        return b""
    pieces: list[bytes] = []
    left = limit
    while left > 0 and (piece := os.read(descriptor, min(left, status.st_size + 1))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


if __name__ == "__main__":
    sys.exit(main())
