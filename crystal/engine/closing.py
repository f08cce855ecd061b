"""Close model clients: one of a plugin may fail or hang, which must keep nothing else from ending."""

from __future__ import annotations

from crystal.engine.model_call import CLIENT_GRACE_SECONDS
from crystal.engine.state import SessionState
from crystal.host.isolation import run_isolated
from crystal.types.model import ModelClient
from crystal.types.notes import NoteCode

CLIENT_CLOSE_SECONDS = 5.0


async def close_client(state: SessionState, client: ModelClient) -> None:
    """Close one client within a limit; a fault becomes a note."""

    async def close() -> None:
        await client.aclose()

    _, error = await run_isolated(close(), grace=CLIENT_GRACE_SECONDS, limit=CLIENT_CLOSE_SECONDS)
    if error is not None:
        state.host.notes.add(
            NoteCode.CLIENT_ERROR,
            f"The client of the protocol '{state.model.protocol}' failed to close: {type(error).__name__}.",
        )
