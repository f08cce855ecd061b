"""The work of the ``grep`` tool: run a backend, pass on only what the scope accepts, put it into words."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path

from crystal.types.tools import ToolCall, ToolContext, ToolOutput
from crystal.workspace.fence import Fence, printable
from crystal.workspace.limits import GREP_FILE_BYTES
from plugins_builtin.files.outcome import fence_of
from plugins_builtin.search.backend import printed_records
from plugins_builtin.search.background import in_thread
from plugins_builtin.search.matches import Report, parse_line
from plugins_builtin.search.ripgrep import ripgrep_arguments
from plugins_builtin.search.scope import SearchScope, SearchWish, read_wish

SEPARATOR = b"--"
"""What ripgrep prints between groups of context lines."""


async def grep_files(call: ToolCall, context: ToolContext, program: str | None) -> ToolOutput:
    """Answer a ``grep`` call.

    :param program: path of the ripgrep program, or ``None`` for the Python backend.
    :raises PathRefused: when the call cannot be done as it was made.
    :raises OSError: when the system does not allow it.
    """

    fence = fence_of(context)
    root = fence.admit(call.arguments.get("path", "."), context.permitted_paths).real
    wish = read_wish(call)
    scope = SearchScope(fence, root, context.permitted_paths, wish.glob)
    if program is None:
        arguments, given = await in_thread(lambda stopped: _python_job(scope, wish, stopped))
    else:
        arguments, given = ripgrep_arguments(program, scope, wish), None
    separator = b"\0" if wish.files_only else b"\n"
    report = Report(separated=wish.context > 0)
    printed = printed_records(arguments, scope.folder, separator, given=given)
    async with aclosing(printed), aclosing(printed if wish.files_only else _whole_records(printed)) as records:
        async for record in records:
            if not _take(record, report, scope, fence, wish):
                break
    text = report.text()
    return ToolOutput(text=text or _nothing(wish, fence.show(root)))


async def _whole_records(records: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Join what the newlines in a file's name have split: only after the name comes a NUL."""
    begun = b""
    async for record in records:
        if b"\0" in record:
            yield begun + record
            begun = b""
        elif record.removesuffix(b"\r") != SEPARATOR:
            begun += record + b"\n"


def _take(record: bytes, report: Report, scope: SearchScope, fence: Fence, wish: SearchWish) -> bool:
    """Add what one record tells to the report; ``False`` when the report wants no more."""
    if wish.files_only:
        real = scope.real(os.fsdecode(record))
        return not scope.accepts(real) or report.add_file(fence.show(real))
    found = parse_line(record)
    if found is None:
        return True
    real = scope.real(found.path)
    return not scope.accepts(real) or report.add(fence.show(real), found)


def _nothing(wish: SearchWish, shown: str) -> str:
    among = f" in files that match {printable(wish.glob)}" if wish.glob else ""
    return f"No line of {shown} matches {printable(wish.pattern)}{among}."


def _python_job(scope: SearchScope, wish: SearchWish, stopped: Callable[[], bool]) -> tuple[list[str], bytes]:
    """Return the command line of the Python backend and what it reads from its standard input."""
    import sys

    script = Path(__file__).with_name("line_matcher.py")
    job = {
        "pattern": wish.pattern,
        "ignore_case": wish.ignore_case,
        "files_only": wish.files_only,
        "context": wish.context,
        "file_bytes": GREP_FILE_BYTES,
    }
    given = b"\0".join([json.dumps(job).encode(), *map(os.fsencode, scope.files(stopped))])
    return [sys.executable, "-I", "-S", "-W", "ignore", str(script)], given
