"""A session: methods in, events out. Every surface drives this one class and reads its one stream of events."""

from __future__ import annotations

import asyncio

from crystal.engine.answers import Answer
from crystal.engine.closing import close_client
from crystal.engine.commands import run_command
from crystal.engine.reload import reload_extensions, retire_attached, retire_sinks
from crystal.engine.state import SessionState
from crystal.engine.turn import run_turn
from crystal.types.commands import Table, View
from crystal.types.events import SessionClosed, TurnFinished
from crystal.types.items import ImageRef
from crystal.types.model import Usage
from crystal.types.session import StopReason


class TurnRunning(Exception):
    """A turn is running; queue the text with ``follow_up`` or wait."""


class SessionUnavailable(Exception):
    """The session is loading its extensions anew, or it has been closed."""


INTERRUPTED_TURN = TurnFinished(
    stop_reason=StopReason.INTERRUPTED,
    detail="The turn was interrupted.",
    model_calls=0,
    tool_calls=0,
    denied=0,
    usage=Usage(),
)
"""How a turn ends that was interrupted before it did anything."""


class Session:
    """One open session. Made by :func:`crystal.engine.opening.open_session`."""

    def __init__(self, state: SessionState) -> None:
        self._state = state
        self._task: asyncio.Task[TurnFinished] | None = None
        self._reloading: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def id(self) -> str:
        """The session's id."""
        return self._state.session_id

    async def send(self, text: str, images: tuple[ImageRef, ...] = ()) -> TurnFinished:
        """Run one turn with a message of the operator and return how it ended.

        :raises TurnRunning: when a turn is running.
        :raises SessionUnavailable: while extensions are loaded anew, and when the session is closed.
        """
        self._require_open()
        if self._task is not None:
            raise TurnRunning("A turn is running in this session; wait for it or queue the text.")
        self._state.interrupted = False
        self._state.turn_is_open = True
        self._task = asyncio.create_task(run_turn(self._state, text, images))
        try:
            return await self._task
        except asyncio.CancelledError:
            if not self._state.interrupted:
                self._task.cancel()
                raise
            # Interrupted before its first step: nothing was stored.
            self._state.emit(INTERRUPTED_TURN)
            return INTERRUPTED_TURN
        finally:
            self._task = None

    def follow_up(self, text: str) -> None:
        """Queue a message for the running turn; it is delivered when the current tool batch or the turn ends."""
        self._state.follow_ups.append(text)

    def answer(self, request_id: str, answer: Answer) -> None:
        """Answer an approval or a question.

        :raises UnknownRequest: when no such request is open.
        """
        self._state.requests.answer(request_id, answer)

    def interrupt(self) -> None:
        """End the running turn promptly; streams, tools and their children end with it."""
        if self._task is not None and self._state.turn_is_open and not self._state.interrupted:
            self._state.interrupted = True
            self._task.cancel()

    async def command(self, name: str, text: str = "") -> Table | View | None:
        """Run a slash command; its text becomes a note, a table or view is returned for the surface to draw.

        :param name: a verb or an alias, without the slash.
        :raises UnknownCommand: when there is none of that name.
        """
        return await run_command(self._state, Operations(self), name, text)

    async def reload(self) -> None:
        """Load every extension anew: plugins that were added, changed, switched or removed take their places.

        Who stops waiting for it does not stop it: half of it would leave plugins that never heard of the session.

        :raises TurnRunning: when a turn is running.
        :raises SessionUnavailable: while another reload goes on, and when the session is closed.
        :raises StoreError: for a broken file of the home; nothing changes.
        :raises HostOptionError: when an option of this process names what is gone; nothing changes.
        """
        self._require_open()
        if self._task is not None:
            raise TurnRunning("A turn is running in this session; reload when it has ended.")
        self._reloading = asyncio.create_task(reload_extensions(self._state))
        self._reloading.add_done_callback(self._reloaded)
        await asyncio.shield(self._reloading)

    def _reloaded(self, task: asyncio.Task[None]) -> None:
        self._reloading = None
        if not task.cancelled():
            task.exception()  # whoever still waits gets it; who does not, does not want it

    def _require_open(self) -> None:
        if self._closed:
            raise SessionUnavailable("The session is closed.")
        if self._reloading is not None:
            raise SessionUnavailable("The session is loading its extensions anew; go on when that has ended.")

    async def close(self) -> None:
        """End the session: its hooks hear it, the store is closed. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        state = self._state
        if self._reloading is not None:
            await asyncio.wait({self._reloading})
        try:
            await state.host.hooks.on_session_ended(state.facts)
            await retire_attached(state)
            await close_client(state, state.client)
        finally:
            retire_sinks(state)
            for host in (*state.retired_hosts, state.host):
                host.close()
            state.store.close()
        state.emit(SessionClosed(session_id=state.session_id))


class Operations:
    """What a slash command may do with its session. Answering an approval or a question is not among it."""

    __slots__ = ("follow_up", "interrupt", "reload", "send")

    def __init__(self, session: Session) -> None:
        self.send = session.send
        self.follow_up = session.follow_up
        self.interrupt = session.interrupt
        self.reload = session.reload
