"""A reload, the end of a session and a failed opening exclude each other and leave nothing behind."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from crystal import hookimpl
from crystal.engine.approval.grants import AllowRule
from crystal.engine.plugin_clients import ClientsRetired
from crystal.engine.preflight import SetupError
from crystal.engine.session import SessionUnavailable
from crystal.host.loading.names import PREFIX
from crystal.host.sources.builtin import FoundPlugin
from crystal.store.errors import SessionBusy, StoreError
from crystal.types.environment import ModelClients, StatusUpdates
from tests.engine.runs import DONE
from tests.engine.surface import Surface
from tests.host.loading.folders import write_folder


@pytest.fixture
def surface(tmp_path: Path) -> Surface:
    return Surface(tmp_path)


class Waiting:
    """Plugin classes whose second instance waits at its start until it is told to go on."""

    def __init__(self) -> None:
        self.made: list[Any] = []
        self.waits = asyncio.Event()
        self.go_on = asyncio.Event()

    def plugin(self) -> FoundPlugin:
        waiting = self

        class Slow:
            name = "Slow"

            def __init__(self) -> None:
                self.heard: list[str] = []
                waiting.made.append(self)

            @hookimpl
            def attach_clients(self, clients: ModelClients) -> None:
                self.clients = clients

            @hookimpl
            def attach_status(self, updates: StatusUpdates) -> None:
                self.updates = updates

            @hookimpl
            async def on_session_started(self) -> None:
                if len(waiting.made) == 2:
                    waiting.waits.set()
                    await waiting.go_on.wait()
                self.heard.append("started")

            @hookimpl
            def on_session_ended(self) -> None:
                self.heard.append("ended")

        return FoundPlugin(name="plugin:test/Slow", plugin=Slow)


def test_while_a_reload_goes_on_no_turn_and_no_other_reload_begins(surface: Surface) -> None:
    async def talk() -> None:
        waiting = Waiting()
        session = await surface.open([DONE], extra_plugins=(waiting.plugin(),))
        reload = asyncio.create_task(session.reload())
        await waiting.waits.wait()
        with pytest.raises(SessionUnavailable, match="go on when that has ended"):
            await session.send("now")
        with pytest.raises(SessionUnavailable):
            await session.reload()
        waiting.go_on.set()
        await reload
        assert (await session.send("now")).stop_reason.value == "done"
        await session.close()
        assert [plugin.heard for plugin in waiting.made] == [["started"], ["started", "ended"]]

    asyncio.run(talk())


def test_a_reload_goes_on_when_its_caller_stops_waiting_and_a_close_waits_for_it(surface: Surface) -> None:
    async def talk() -> None:
        waiting = Waiting()
        session = await surface.open([DONE], extra_plugins=(waiting.plugin(),))
        reload = asyncio.create_task(session.reload())
        await waiting.waits.wait()
        reload.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reload
        closing = asyncio.create_task(session.close())
        await asyncio.sleep(0)
        assert not closing.done()
        waiting.go_on.set()
        await closing
        assert [plugin.heard for plugin in waiting.made] == [["started"], ["started", "ended"]]
        with pytest.raises(SessionUnavailable, match="closed"):
            await session.reload()
        with pytest.raises(SessionUnavailable, match="closed"):
            await session.send("now")

    asyncio.run(talk())


def test_clients_of_an_old_instance_and_of_an_ended_session_are_refused(surface: Surface) -> None:
    async def talk() -> None:
        waiting = Waiting()
        waiting.go_on.set()
        session = await surface.open([DONE], extra_plugins=(waiting.plugin(),))
        await session.reload()
        old, new = waiting.made
        with pytest.raises(ClientsRetired):
            _ = old.clients.session
        assert new.clients.session is new.clients.session
        await session.close()
        for clients in (old.clients, new.clients):
            with pytest.raises(ClientsRetired):
                _ = clients.session

    asyncio.run(talk())


@pytest.mark.parametrize(
    "options",
    [
        {"provider": "nobody"},
        {"allow": (AllowRule(tool="no_such_tool"),)},
        {"approval_provider": "nobody"},
        {"resume": "ses_0000"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_an_opening_that_fails_leaves_no_code_of_plugins_behind(surface: Surface, options: dict[str, Any]) -> None:
    before = {name for name in sys.modules if name.startswith(PREFIX)}
    surface.home.root.mkdir(mode=0o700)
    write_folder(
        surface.home.root / "plugins" / "Acme", {"plugin.json": '{"module": "acme.py"}', "acme.py": 'name = "Acme"\n'}
    )

    async def talk() -> None:
        await (await surface.open([DONE])).close()
        with pytest.raises((SetupError, StoreError)):
            await surface.open([DONE], **options)

    asyncio.run(talk())
    assert {name for name in sys.modules if name.startswith(PREFIX)} == before


def test_a_session_that_another_holds_leaves_no_code_of_plugins_behind(surface: Surface) -> None:
    surface.home.root.mkdir(mode=0o700)
    write_folder(
        surface.home.root / "plugins" / "Acme", {"plugin.json": '{"module": "acme.py"}', "acme.py": 'name = "Acme"\n'}
    )

    async def talk() -> None:
        first = await surface.open([DONE])
        held = {name for name in sys.modules if name.startswith(PREFIX)}
        with pytest.raises(SessionBusy):
            await surface.open([DONE], continue_latest=True)
        assert {name for name in sys.modules if name.startswith(PREFIX)} == held
        await first.close()

    asyncio.run(talk())
