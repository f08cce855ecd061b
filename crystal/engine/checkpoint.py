"""The places where a turn can be interrupted although nothing in it waits."""

from __future__ import annotations

import asyncio

PASSES = 3
"""Passes of the loop until a signal that has arrived is heard: its wake-up, its handler, and the cancellation."""


async def checkpoint() -> None:
    """Let the loop hear signals and interrupts; a turn of fast steps would otherwise run to its end before it did.

    :raises asyncio.CancelledError: when the turn was interrupted.
    """
    for _ in range(PASSES):
        await asyncio.sleep(0)
