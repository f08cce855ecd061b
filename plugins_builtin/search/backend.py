"""Runs a search backend as a child and hands on what it prints; the child never outlives the call."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING, cast

from crystal.workspace.fence import printable
from plugins_builtin.files.outcome import CallRefused

if TYPE_CHECKING:
    import asyncio

_PIECE = 1 << 16
_ERROR_BYTES = 4096


async def printed_records(
    arguments: list[str], folder: str, separator: bytes, *, given: bytes | None = None
) -> AsyncGenerator[bytes, None]:
    """Yield the records a backend prints.

    :param folder: the folder it runs in.
    :param separator: the byte that ends a record.
    :param given: what it gets on its standard input; ``None`` for nothing.
    :raises CallRefused: when it cannot use the pattern.
    """
    import asyncio
    from asyncio.subprocess import DEVNULL, PIPE

    child = await asyncio.create_subprocess_exec(
        *arguments,
        cwd=folder,
        stdin=DEVNULL if given is None else PIPE,
        stdout=PIPE,
        stderr=PIPE,
        start_new_session=True,
    )
    output, complaints = cast("asyncio.StreamReader", child.stdout), cast("asyncio.StreamReader", child.stderr)
    errors = asyncio.create_task(_first_bytes(complaints))
    feeding = asyncio.create_task(_feed(child.stdin, given or b""))
    try:
        printed = False
        async for record in _split(output, separator):
            printed = True
            yield record
        # A file that cannot be read is silent and also ends with 2; only a pattern at fault leaves a message.
        if await child.wait() == 2 and not printed and (message := await errors):
            raise unusable(_reason(message))
    finally:
        if child.returncode is None:
            child.kill()
        # The pipes are emptied, because a full one keeps the event loop from seeing that the child has ended.
        await asyncio.gather(_first_bytes(output), errors, feeding, return_exceptions=True)
        await child.wait()


async def _split(stream: asyncio.StreamReader, separator: bytes) -> AsyncIterator[bytes]:
    """Yield what stands between separators; a record may be longer than what the stream buffers."""
    buffer = bytearray()
    while piece := await stream.read(_PIECE):
        searched = len(buffer)
        buffer += piece
        if buffer.find(separator, searched) < 0:
            continue
        *records, rest = bytes(buffer).split(separator)
        buffer = bytearray(rest)
        for record in records:
            yield record
    if buffer:
        yield bytes(buffer)


async def _first_bytes(stream: asyncio.StreamReader) -> bytes:
    """Read a stream to its end and return its beginning."""
    first = b""
    while piece := await stream.read(_PIECE):
        first += piece[: _ERROR_BYTES - len(first)]
    return first


async def _feed(stream: asyncio.StreamWriter | None, data: bytes) -> None:
    """Give a child its input; one that ends before it has read everything wants no more."""
    if stream is None:
        return
    try:
        stream.write(data)
        await stream.drain()
        stream.close()
        await stream.wait_closed()
    except (BrokenPipeError, ConnectionResetError):
        return


def _reason(message: bytes) -> str:
    """Return the one line of a backend's message that says what is wrong with the pattern."""
    lines = [line.strip() for line in message.decode("utf-8", "replace").splitlines() if line.strip()]
    reason = next((line for line in lines if line.startswith("error:")), lines[0] if lines else "unknown fault")
    return printable(reason.removeprefix("error:").removeprefix("rg:").strip().rstrip("."))


def unusable(reason: str) -> CallRefused:
    """Return the refusal of a pattern that a backend cannot use."""
    return CallRefused(f"grep cannot use the pattern: {reason}; mend it or escape its special signs.")
