"""Reloading extensions in an open session: new instances take over, what the old ones held is closed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from crystal import hookimpl, tool
from crystal.engine.session import TurnRunning
from crystal.host.sources.builtin import FoundPlugin
from crystal.store.errors import StoreError
from crystal.types.commands import StatusField
from crystal.types.environment import ModelClients, StatusUpdates
from crystal.types.events import TurnFinished
from crystal.types.items import UserItem
from crystal.types.model import FinishDelta, FinishReason, ModelRequest, TextDelta
from tests.engine.runs import DONE
from tests.engine.surface import Surface


@pytest.fixture
def surface(tmp_path: Path) -> Surface:
    return Surface(tmp_path)


def counting(made: list[Any]) -> FoundPlugin:
    """A plugin class that keeps each of its instances in ``made``; a host makes one of its own."""

    class Counting:
        name = "Counting"

        def __init__(self) -> None:
            self.heard: list[str] = []
            made.append(self)

        @hookimpl
        def contribute_tools(self) -> list[Any]:
            number = len(made)

            def numbered() -> str:
                """Say which."""
                return str(number)

            numbered.__name__ = f"numbered_{number}"
            return [tool(numbered)]

        @hookimpl
        def contribute_status_fields(self) -> list[StatusField]:
            return [StatusField(name="count", description="")]

        @hookimpl
        def attach_status(self, updates: StatusUpdates) -> None:
            self.updates = updates

        @hookimpl
        def attach_clients(self, clients: ModelClients) -> None:
            self.clients = clients

        @hookimpl
        def on_prompt(self) -> str:
            return f"instance {len(made)}"

        @hookimpl
        def on_session_started(self) -> None:
            self.heard.append("started")

        @hookimpl
        def on_session_ended(self) -> None:
            self.heard.append("ended")

    return FoundPlugin(name="plugin:test/Counting", plugin=Counting)


def test_new_instances_take_over_and_the_conversation_stays(surface: Surface) -> None:
    made: list[Any] = []

    async def talk() -> None:
        session = await surface.open([{"text": "One."}, {"text": "Two."}], extra_plugins=(counting(made),))
        await session.send("first")
        await session.reload()
        await session.send("second")
        await session.close()

    asyncio.run(talk())
    assert len(made) == 2
    before, after = surface.requests
    assert {name for name in (found.name for found in before.tools) if "numbered" in name} == {"numbered_1"}
    assert {name for name in (found.name for found in after.tools) if "numbered" in name} == {"numbered_2"}
    assert "instance 1" in before.items[0].text  # type: ignore[union-attr]
    assert "instance 2" in after.items[0].text  # type: ignore[union-attr]
    assert [item.text for item in after.items if isinstance(item, UserItem)] == ["first", "second"]
    assert [plugin.heard for plugin in made] == [["started"], ["started", "ended"]]


def test_what_the_old_instances_held_is_closed(surface: Surface) -> None:
    made: list[Any] = []

    async def talk() -> None:
        session = await surface.open([DONE], extra_plugins=(counting(made),))
        board = session._state.host.status
        made[0].updates.set("count", "old")
        kept = made[0].clients.session
        await session.reload()
        made[0].updates.set("count", "late")
        made[1].updates.set("count", "new")
        assert dict(board.texts) == {}
        assert dict(session._state.host.status.texts) == {"count": "new"}
        assert made[1].clients.session is not kept
        await session.close()

    asyncio.run(talk())


def test_no_reload_while_a_turn_runs(surface: Surface) -> None:
    async def talk() -> None:
        session = await surface.open([{"text": "slow", "delayMs": 60_000}])
        turn = asyncio.create_task(session.send("first"))
        while not surface.requests:
            await surface.more()
        with pytest.raises(TurnRunning):
            await session.reload()
        session.interrupt()
        await turn
        await session.close()

    asyncio.run(talk())


def test_nothing_changes_when_the_configuration_is_broken(surface: Surface) -> None:
    made: list[Any] = []

    async def talk() -> TurnFinished:
        session = await surface.open([DONE], extra_plugins=(counting(made),))
        surface.home.config_file.write_text("{", "utf-8")
        with pytest.raises(StoreError, match=r"config\.json"):
            await session.reload()
        ended = await session.send("go on")
        await session.close()
        return ended

    assert asyncio.run(talk()).stop_reason.value == "done"
    assert len(made) == 1
    assert "instance 1" in surface.requests[0].items[0].text  # type: ignore[union-attr]


def test_a_plugins_protocol_is_served_by_its_new_instance(surface: Surface) -> None:
    made: list[Any] = []

    class Client:
        def __init__(self, number: int) -> None:
            self.number = number
            self.closed = False

        async def stream(self, request: ModelRequest, load_image: Any) -> Any:
            yield TextDelta(text=f"client {self.number}")
            yield FinishDelta(reason=FinishReason.STOP)

        async def aclose(self) -> None:
            self.closed = True

    class Parrot:
        name = "Parrot"
        protocols = ("parrot",)

        def create(self, request: Any) -> Client:
            made.append(Client(len(made) + 1))
            return made[-1]

        @hookimpl
        def contribute_protocols(self) -> list[Any]:
            return [self]

    surface.home.root.mkdir(mode=0o700)
    surface.home.providers_file.write_text(
        '{"bird": {"protocol": "parrot", "baseUri": "http://127.0.0.1:9", "requiresApiKey": false,'
        ' "models": {"m": {"contextWindow": 1000}}}}'
    )

    async def talk() -> None:
        session = await surface.open(
            [], provider="bird", extra_plugins=(FoundPlugin(name="plugin:test/Parrot", plugin=Parrot),)
        )
        await session.reload()
        await session.send("speak")
        await session.close()

    asyncio.run(talk())
    assert [client.closed for client in made] == [True, True]
    assert surface.requests == [], "the new client answered, not the recorded old one"
