"""The work of the ``search`` tool: files ranked by how well their names and contents match plain words."""

from __future__ import annotations

import heapq
import math
import re

from crystal.types._frozen import Frozen
from crystal.types.tools import ToolCall, ToolContext, ToolOutput
from crystal.workspace.fence import PathRefused, printable
from crystal.workspace.hard_links import has_other_names
from crystal.workspace.open_files import open_regular, read_bytes
from crystal.workspace.text_files import NotText, decode_text
from crystal.workspace.walk import walk
from plugins_builtin.files.outcome import CallRefused, counted, positive
from plugins_builtin.search.background import Clock
from plugins_builtin.search.matches import cut_line
from plugins_builtin.search.roots import SearchRoot

LIMIT = 10
LINES_SHOWN = 3
FILES_READ = 20_000
FILE_BYTES = 1024 * 1024
"""A larger file is known by its name only."""

WORDS = 12
_NAME_WEIGHT = 3.0


class CountedFile(Frozen):
    """How often each word stands in a file.

    :param path: relative to the searched folder.
    :param in_name: for each word, whether the path holds it.
    :param in_text: for each word, how often the content holds it.
    """

    path: str
    in_name: tuple[bool, ...]
    in_text: tuple[int, ...]


def search_files(call: ToolCall, context: ToolContext, clock: Clock) -> ToolOutput:
    """Answer a ``search`` call.

    :param clock: says when to stop; then what was found by that time is the answer.
    :raises PathRefused: when the call cannot be done as it was made.
    :raises OSError: when the system does not allow it.
    """
    root = SearchRoot(call, context)
    root.require_folder()
    query = call.arguments["query"]
    words = split_words(query)
    if not words:
        raise CallRefused("The query holds no word; give one or more words, or use grep for signs.")
    limit = positive(call, "limit", LIMIT)
    files, read = _count_files(root, words, clock)
    blocks: list[str] = []
    for file in rank(files, read):
        real = root.path(file.path)
        if len(blocks) < limit and _may_be_shown(root, real):
            blocks.append("\n".join([root.show(real), *best_lines(_read_text(real), words)]))
    if not blocks:
        blocks.append(f"No file in {root.show(root.real)} holds a word of {printable(query)}.")
    notes = []
    if len(files) > limit:
        notes.append(f"{limit} of {counted(len(files), 'file')} that hold a word; a higher limit shows more.")
    if clock.expired or read == FILES_READ:
        when = f", in {clock.seconds:g} seconds" if clock.expired else ""
        notes.append(f"Only the first {counted(read, 'file')} were searched{when}; name a folder to search others.")
    return ToolOutput(text="\n".join([*blocks, *(f"({note})" for note in [*notes, *root.unread()])]))


def _count_files(root: SearchRoot, words: tuple[str, ...], clock: Clock) -> tuple[list[CountedFile], int]:
    """Return the files that hold a word, and how many were looked at."""
    files: list[CountedFile] = []
    read = 0
    for entry in walk(root.real, root.rules(), root.admits, stopped=clock.stopped, unreadable=root.unreadable):
        if read == FILES_READ or clock.stopped():
            break
        read += 1
        counted_file = count_words(entry.path, _read_text(root.path(entry.path)), words)
        if any(counted_file.in_name) or any(counted_file.in_text):
            files.append(counted_file)
    return files, read


def _may_be_shown(root: SearchRoot, real: str) -> bool:
    """Whether a file may still be shown, also under the other names it may have."""
    status = has_other_names(real)
    return status is None or root.admits.names_file(real)


def split_words(query: str) -> tuple[str, ...]:
    """Return the distinct words of a query in lower case, at most twelve."""
    return tuple(dict.fromkeys(re.findall(r"\w+", query.lower())))[:WORDS]


def count_words(path: str, text: str, words: tuple[str, ...]) -> CountedFile:
    """Count the words in a file's name and content, without regard to case and also inside longer words."""
    name, content = path.lower(), text.lower()
    return CountedFile(
        path=path,
        in_name=tuple(word in name for word in words),
        in_text=tuple(content.count(word) for word in words),
    )


def rank(files: list[CountedFile], total: int) -> list[CountedFile]:
    """Order files, the best first: rare words weigh more, names more than contents, many words more than often one.

    :param total: how many files were looked at.
    """
    if not files:
        return []
    holding = [0] * len(files[0].in_name)
    for file in files:
        for index, (named, count) in enumerate(zip(file.in_name, file.in_text, strict=True)):
            holding[index] += named or count > 0
    weights = [math.log(1 + total / (1 + held)) for held in holding]

    def score(file: CountedFile) -> float:
        held = 0
        points = 0.0
        for weight, named, count in zip(weights, file.in_name, file.in_text, strict=True):
            held += named or count > 0
            points += weight * (_NAME_WEIGHT * named + math.log1p(count))
        return points * (held / len(weights)) ** 2

    return sorted(files, key=lambda file: (-score(file), file.path))


def best_lines(text: str, words: tuple[str, ...]) -> list[str]:
    """Return the lines that hold the most of the words, in their order, numbered."""
    scored: list[tuple[int, int, str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        lower = line.lower()
        held = sum(word in lower for word in words)
        if held:
            scored.append((held, -number, line))
    best = heapq.nlargest(LINES_SHOWN, scored)
    best.sort(key=lambda entry: -entry[1])
    return [f"  {-number}: {_shown(line, words)}" for _, number, line in best]


def _shown(line: str, words: tuple[str, ...]) -> str:
    lower = line.lower()
    at = min(position for position in (lower.find(word) for word in words) if position >= 0)
    text = line.strip().encode("utf-8", "replace")
    return cut_line(text, len(line[:at].lstrip().encode("utf-8", "replace")) + 1)


def _read_text(real: str) -> str:
    """Return a file's text; nothing for a binary, large or vanished one."""
    try:
        with open_regular(real, real) as opened:
            if opened.status.st_size > FILE_BYTES:
                return ""
            return decode_text(read_bytes(opened, FILE_BYTES)).shown()
    except (PathRefused, OSError, NotText):
        return ""
