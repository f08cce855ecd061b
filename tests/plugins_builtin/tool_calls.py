"""Calls of workspace tools as the host makes them: a real context with a memory of files."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from crystal.types._readonly import read_only
from crystal.types.approval import ApprovalMode
from crystal.types.capabilities import BuiltinContext, FileStamp
from crystal.types.tools import Catalog, Tool, ToolCall, ToolOutput


class FileMemory:
    """What a session remembers of files, held in memory instead of the store."""

    def __init__(self) -> None:
        self.stamps: dict[str, FileStamp] = {}
        self.before_images: list[tuple[str, bytes | None, str]] = []

    def seen(self, path: str) -> FileStamp | None:
        return self.stamps.get(path)

    def remember(self, path: str, stamp: FileStamp) -> None:
        self.stamps[path] = stamp

    def keep_before_image(self, path: str, content: bytes | None, call_id: str) -> None:
        self.before_images.append((path, content, call_id))


class Session:
    """A session in a workspace that makes calls one after the other.

    :param folder: a real folder; the workspace is ``ws`` in it and the Crystal home is ``home``.
    """

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "ws"
        self.home = folder / "home"
        self.memory = FileMemory()
        self.accepts_images = True
        self.permitted: frozenset[str] = frozenset()
        self.workspace.mkdir(exist_ok=True)
        self.home.mkdir(exist_ok=True)

    def context(self) -> BuiltinContext:
        async def no_calls(name: str, arguments: Any) -> ToolOutput:
            raise AssertionError(f"{name} was called")

        return BuiltinContext(
            workspace=self.workspace,
            home=self.home,
            session_id="session",
            call_id="call",
            approval=ApprovalMode.DEFAULT,
            mode=Catalog.WORK,
            global_data=self.home / "data",
            project_data=self.workspace / ".crystal" / "data",
            accepts_images=self.accepts_images,
            permitted_paths=self.permitted,
            progress=lambda text: None,
            tools=(),
            call=no_calls,
            file_state=self.memory,
        )

    def call(self, tool: Tool, **arguments: Any) -> ToolOutput:
        """Make one call and return its output."""
        call = ToolCall(id="call", name=tool.definition.name, arguments=read_only(arguments))
        return asyncio.run(tool.invoke(call, self.context()))

    def write(self, path: str, content: str | bytes = "needle\n") -> Path:
        """Put a file into the workspace without a tool."""
        file = self.workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file
