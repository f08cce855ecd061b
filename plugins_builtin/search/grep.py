"""The work of the ``grep`` tool: run a backend, pass on only what the scope accepts, put it into words."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path

from crystal.types.tools import ToolCall, ToolContext, ToolOutput
from crystal.workspace.fence import printable
from crystal.workspace.limits import GREP_FILE_BYTES
from plugins_builtin.search.backend import printed_records, unusable
from plugins_builtin.search.background import Clock, in_thread
from plugins_builtin.search.matches import Report, parse_line
from plugins_builtin.search.ripgrep import naming_arguments, portions, printing_arguments
from plugins_builtin.search.roots import SearchRoot
from plugins_builtin.search.scope import SearchScope, SearchWish, read_wish

SEPARATOR = b"--"
"""What ripgrep prints between groups of context lines."""

_FILES_PRINTED = 100
"""Files whose lines are asked for at once; mostly few of them fill the report."""

_FILES_NAMED = 10_000


async def grep_files(call: ToolCall, context: ToolContext, program: str | None, clock: Clock) -> ToolOutput:
    """Answer a ``grep`` call.

    :param program: path of the ripgrep program, or ``None`` for the Python backend.
    :param clock: says to work in a thread when to stop.
    :raises PathRefused: when the call cannot be done as it was made.
    :raises OSError: when the system does not allow it.
    """
    root = SearchRoot(call, context)
    wish = read_wish(call)
    search = _Search(SearchScope(root, wish.glob), wish, clock)
    if program is None:
        await search.by_python()
    else:
        await search.by_ripgrep(program)
    text = search.report.text() or _nothing(wish, root.show(root.real))
    return ToolOutput(text="\n".join([text, *(f"({note})" for note in root.unread())]))


class _Search:
    """One search that is under way."""

    def __init__(self, scope: SearchScope, wish: SearchWish, clock: Clock) -> None:
        self.report = Report(separated=wish.context > 0)
        self._scope = scope
        self._wish = wish
        self._clock = clock

    async def by_python(self) -> None:
        """Let a child of our own walk through the files in their order."""
        arguments, given = await in_thread(
            lambda: _python_job(self._scope, self._wish, self._clock.stopped), self._clock
        )
        await self._take_printed(arguments, given)

    async def by_ripgrep(self, program: str) -> None:
        """Let ripgrep name the files with a match, on as many threads as it likes, then print them in their order."""
        scope, wish = self._scope, self._wish
        if scope.single_file and not wish.files_only:
            await self._take_printed(printing_arguments(program, wish, [scope.argument]))
            return
        named = await self._name_files(program)
        accepted = portions((path for path in named if scope.accepts(scope.real(path))), _FILES_PRINTED)
        while portion := await in_thread(lambda: next(accepted, None), self._clock):
            if wish.files_only:
                if not all(self.report.add_file(scope.root.show(scope.real(path))) for path in portion):
                    return
            elif not await self._take_printed(printing_arguments(program, wish, portion)):
                return

    async def _name_files(self, program: str) -> list[str]:
        """Return the files with a match, in the order of a walk."""
        import asyncio

        scope = self._scope
        # Most trees are plain; ripgrep is through with them by the time that is known.
        plain = asyncio.create_task(in_thread(lambda: scope.is_plain(self._clock.stopped), self._clock))
        try:
            named = await self._named(program, None)
        except BaseException:
            plain.cancel()
            await asyncio.gather(plain, return_exceptions=True)
            raise
        if not await plain:
            files = await in_thread(lambda: list(scope.files(self._clock.stopped)), self._clock)
            named = [name for job in portions(files, _FILES_NAMED) for name in await self._named(program, job)]
        return sorted(named, key=lambda path: os.fsencode(path).split(b"/"))

    async def _named(self, program: str, files: list[str] | None) -> list[str]:
        """Return those of ``files`` with a match, or of everything there is."""
        arguments = naming_arguments(program, self._scope, self._wish, files)
        async with aclosing(printed_records(arguments, self._scope.folder, b"\0")) as records:
            return [os.fsdecode(record) async for record in records]

    async def _take_printed(self, arguments: list[str], given: bytes | None = None) -> bool:
        """Take what a backend prints; ``False`` when the report wants no more."""
        files_only = self._wish.files_only
        printed = printed_records(arguments, self._scope.folder, b"\0" if files_only else b"\n", given=given)
        async with aclosing(printed), aclosing(printed if files_only else _whole_records(printed)) as records:
            async for record in records:
                if not self._take(record):
                    return False
        return True

    def _take(self, record: bytes) -> bool:
        """Add what one record tells to the report; ``False`` when the report wants no more."""
        scope = self._scope
        if self._wish.files_only:
            real = scope.real(os.fsdecode(record))
            return not scope.accepts(real) or self.report.add_file(scope.root.show(real))
        found = parse_line(record)
        if found is None:
            return True
        real = scope.real(found.path)
        return not scope.accepts(real) or self.report.add(scope.root.show(real), found)


async def _whole_records(records: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Join what the newlines in a file's name have split: only after the name comes a NUL."""
    begun = b""
    async for record in records:
        if b"\0" in record:
            yield begun + record
            begun = b""
        elif record.removesuffix(b"\r") != SEPARATOR:
            begun += record + b"\n"


def _nothing(wish: SearchWish, shown: str) -> str:
    among = f" in files that match {printable(wish.glob)}" if wish.glob else ""
    return f"No line of {shown} matches {printable(wish.pattern)}{among}."


def _python_job(scope: SearchScope, wish: SearchWish, stopped: Callable[[], bool]) -> tuple[list[str], bytes]:
    """Return the command line of the Python backend and what it reads from its standard input."""
    import sys

    from plugins_builtin.search.dialect import PatternFault, translate

    try:
        translation = translate(wish.pattern, ignore_case=wish.ignore_case)
    except PatternFault as fault:
        raise unusable(str(fault)) from None
    script = Path(__file__).with_name("line_matcher.py")
    job = {
        "plain": translation.plain,
        "wide": translation.wide,
        "literal": translation.literal,
        "files_only": wish.files_only,
        "context": wish.context,
        "file_bytes": GREP_FILE_BYTES,
    }
    given = b"\0".join([json.dumps(job).encode(), *map(os.fsencode, scope.files(stopped))])
    return [sys.executable, "-I", "-S", "-W", "ignore", str(script)], given
