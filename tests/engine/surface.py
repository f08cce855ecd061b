"""A surface for tests that drive a session directly."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crystal.engine.opening import open_session
from crystal.engine.preflight import SessionOptions
from crystal.engine.session import Session
from crystal.store.home import Home
from crystal.types.events import Event
from crystal.types.model import ImageLoader, ModelClient, ModelRequest


class Surface:
    """A surface that keeps every event and what the model was sent.

    :param folder: holds the home and the workspace.
    """

    def __init__(self, folder: Path) -> None:
        self.home = Home(root=folder / "home")
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        self.events: list[Event] = []
        self.requests: list[ModelRequest] = []
        self.news = asyncio.Event()

    async def open(self, rounds: Sequence[dict[str, Any]], **options: Any) -> Session:
        """Open a session whose model plays ``rounds``."""
        return await open_session(
            SessionOptions(
                home=self.home,
                workspace=self.workspace,
                wrap_client=self.record,
                **({"provider": "scripted", "client_options": {"script": {"rounds": list(rounds)}}} | options),
            ),
            self.hear,
            "a title",
            {},
        )

    def hear(self, event: Event) -> None:
        self.events.append(event)
        self.news.set()

    def record(self, client: ModelClient) -> ModelClient:
        requests, news = self.requests, self.news

        class Recorded:
            def stream(self, request: ModelRequest, load_image: ImageLoader) -> Any:
                requests.append(request)
                news.set()
                return client.stream(request, load_image)

            async def aclose(self) -> None:
                await client.aclose()

        return Recorded()

    async def until(self, kind: type[Any]) -> Any:
        """Let the session run until an event of a kind was heard."""
        while True:
            for event in self.events:
                if isinstance(event, kind):
                    return event
            await self.more()

    async def more(self) -> None:
        """Let the session run until something happened."""
        self.news.clear()
        await self.news.wait()
