"""The places where a turn can be interrupted although nothing in it waits."""

from __future__ import annotations

import asyncio


async def checkpoint() -> None:
    """Let an interrupt in; a turn of fast steps would otherwise run to its end before it was heard.

    :raises asyncio.CancelledError: when the turn was interrupted.
    """
    await asyncio.sleep(0)
