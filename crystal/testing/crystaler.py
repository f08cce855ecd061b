"""The object behind the ``crystaler`` fixture: a home, a workspace, plugins in process, a scripted model, and runs.

Runs come through the same code as ``crystal run``; there is no second engine for tests.
"""

from __future__ import annotations

import asyncio
import io
import itertools
import json
import os
import shutil
import subprocess
import sys
import textwrap
import types
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from crystal.cli.app import report_failure
from crystal.cli.log import contained_output
from crystal.cli.run import parse_run
from crystal.cli.task import Operator, TaskRequest, execute_task
from crystal.engine.state import Surroundings
from crystal.host.sources.builtin import FoundPlugin
from crystal.store.home import Home
from crystal.testing.result import RunResult, parse_lines
from crystal.types.events import Event, SessionOpened
from crystal.types.model import ImageLoader, ModelClient, ModelDelta, ModelRequest

SUBPROCESS_SECONDS = 60


class NotInSubprocess(Exception):
    """A plugin made in process cannot be seen by a subprocess; disk plugins will make that possible."""


class Crystaler:
    """One fresh home and workspace below ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        self.environ: dict[str, str] = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("CRYSTAL_") and "API_KEY" not in name
        }
        self._folder = folder
        self._plugins: list[FoundPlugin] = []
        self._script: Path | None = None
        self._modules: list[str] = []
        self._numbers = itertools.count(1)

    def makefile(self, path: str, content: str | bytes) -> Path:
        """Write a file of the workspace, its folders included."""
        target = self.workspace / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else textwrap.dedent(content).encode())
        return target

    def makeconfig(self, **fields: Any) -> Path:
        """Write ``config.json`` of the home."""
        return self._write_home("config.json", fields)

    def makeproviders(self, **providers: Any) -> Path:
        """Write ``providers.json`` of the home."""
        return self._write_home("providers.json", providers)

    def _write_home(self, name: str, value: Any) -> Path:
        self.home.mkdir(mode=0o700, exist_ok=True)
        path = self.home / name
        path.write_text(json.dumps(value), "utf-8")
        return path

    def makeplugin(self, name: str, source: str | object) -> None:
        """Register a plugin for the following runs in process.

        :param source: Python source of a module with hookimpls, the path of such a file, or a ready object; a module
            without a ``name`` gets ``name``.
        """
        plugin: Any = source
        if isinstance(source, Path):
            plugin = self._module(name, source.read_text("utf-8"), str(source))
        elif isinstance(source, str):
            plugin = self._module(name, textwrap.dedent(source), f"<plugin {name}>")
        self._plugins.append(FoundPlugin(name=f"plugin:test/{name}", plugin=plugin))

    def installplugin(self, folder: Path) -> Path:
        """Copy a plugin folder into the home for the following runs, as an operator would.

        :return: the folder in the home.
        """
        target = self.home / "plugins" / folder.resolve().name
        target.parent.mkdir(parents=True, exist_ok=True)
        self.home.chmod(0o700)
        shutil.copytree(
            folder, target, ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache"), dirs_exist_ok=True
        )
        return target

    def _module(self, name: str, source: str, file: str) -> types.ModuleType:
        module = types.ModuleType(f"crystaler_{id(self)}_{len(self._modules)}")
        module.__dict__["name"] = name
        # Dataclasses, pickle and type hints look a class's module up by its name.
        sys.modules[module.__name__] = module
        self._modules.append(module.__name__)
        exec(compile(source, file, "exec"), module.__dict__)
        return module

    def close(self) -> None:
        """Forget the modules of made plugins; the fixture calls it."""
        for name in self._modules:
            sys.modules.pop(name, None)
        self._modules.clear()

    def script(self, rounds: Sequence[Mapping[str, Any]]) -> Path:
        """Set the scripted model's rounds for the following runs; they are run with ``--script``."""
        self._script = self._folder / f"script{next(self._numbers)}.json"
        self._script.write_text(json.dumps({"rounds": list(rounds)}), "utf-8")
        return self._script

    def run(
        self,
        task: str = "do it",
        *options: str,
        in_process: bool = True,
        operator: Operator | None = None,
        listener: Callable[[Event], None] | None = None,
        sleep: Callable[[float], Awaitable[None]] | None = None,
    ) -> RunResult:
        """Run ``crystal run TASK OPTIONS`` in the workspace.

        :param in_process: run in this process (typed events, made plugins) or as a command of its own.
        :param operator: answers approvals and questions; without one they are denied, as in every headless run.
        :param listener: hears every event.
        :param sleep: waits between retries instead of the clock.
        :raises NotInSubprocess: for a subprocess while plugins are registered in process.
        """
        arguments = [task, *self._standing_options(options), *options]
        if not in_process:
            if self._plugins:
                names = ", ".join(found.name for found in self._plugins)
                raise NotInSubprocess(f"A subprocess cannot see the plugins made in this process: {names}")
            return self._run_subprocess(arguments)
        return self._run_in_process(arguments, operator, listener, sleep)

    def _standing_options(self, options: Sequence[str]) -> list[str]:
        standing = ["--home", str(self.home)]
        if "-w" not in options and "-r" not in options:
            standing += ["-w", str(self.workspace)]
        if self._script is not None and "--script" not in options and "-p" not in options:
            standing += ["--script", str(self._script)]
        return standing

    def command(self, *arguments: str, stdin: bytes | None = b"") -> RunResult:
        """Run any ``crystal`` command as a process of its own, in the workspace."""
        finished = subprocess.run(
            [sys.executable, "-P", "-c", "from crystal.cli.main import main; main()", *arguments],
            cwd=self.workspace,
            env={**self.environ, "CRYSTAL_HOME": str(self.home)},
            input=stdin,
            capture_output=True,
            timeout=SUBPROCESS_SECONDS,
            check=False,
        )
        stdout = finished.stdout.decode()
        return RunResult(exit_code=finished.returncode, stdout=stdout, stderr=finished.stderr.decode())

    def _run_subprocess(self, arguments: Sequence[str]) -> RunResult:
        import dataclasses

        result = self.command("run", *arguments)
        if not _prints_lines(arguments):
            return result
        lines = parse_lines(result.stdout)
        session_id = lines[0]["sessionID"] if lines else ""
        return dataclasses.replace(result, lines=lines, session_id=session_id)

    def _run_in_process(
        self,
        arguments: Sequence[str],
        operator: Operator | None,
        listener: Callable[[Event], None] | None,
        sleep: Callable[[float], Awaitable[None]] | None,
    ) -> RunResult:
        stdout, stderr = io.StringIO(), io.StringIO()
        recorder = _Recorder()
        try:
            parsed = parse_run(arguments, stdout, stderr, self.environ)
            request = self._request(parsed, recorder, operator, listener, sleep)
            with contained_output():
                exit_code = execute_task(request).exit_code
        except Exception as error:
            exit_code = report_failure(error, stderr, Home(root=self.home))
            recorder.error = str(error)
        output = stdout.getvalue()
        return RunResult(
            exit_code=exit_code,
            stdout=output,
            stderr=stderr.getvalue(),
            events=tuple(recorder.events),
            lines=parse_lines(output) if _prints_lines(arguments) else (),
            requests=tuple(recorder.requests),
            session_id=recorder.session_id,
            error=recorder.error,
        )

    def _request(
        self,
        request: TaskRequest,
        recorder: _Recorder,
        operator: Operator | None,
        listener: Callable[[Event], None] | None,
        sleep: Callable[[float], Awaitable[None]] | None,
    ) -> TaskRequest:
        import dataclasses
        import random
        import time

        options = dataclasses.replace(
            request.options,
            extra_plugins=tuple(self._plugins),
            wrap_client=recorder.wrap,
        )
        listeners = (recorder.hear,) if listener is None else (recorder.hear, listener)
        around = Surroundings(
            now=time.time, monotonic=time.monotonic, chance=random.random, sleep=sleep or asyncio.sleep
        )
        return dataclasses.replace(
            request,
            options=options,
            listeners=listeners,
            operator=operator or request.operator,
            surroundings=around,
        )


def _prints_lines(arguments: Sequence[str]) -> bool:
    """Whether a run is told to print JSON lines."""
    pairs = itertools.pairwise(arguments)
    return "--format=json" in arguments or any(pair == ("--format", "json") for pair in pairs)


class _Recorder:
    """Keeps the events of a run and what its model was sent."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.requests: list[ModelRequest] = []
        self.session_id = ""
        self.error = ""

    def hear(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, SessionOpened):
            self.session_id = event.session_id

    def wrap(self, client: ModelClient) -> ModelClient:
        return _RecordingClient(client, self.requests)


class _RecordingClient:
    """A model client that keeps each request and passes it on."""

    def __init__(self, client: ModelClient, requests: list[ModelRequest]) -> None:
        self._client = client
        self._requests = requests

    def stream(self, request: ModelRequest, load_image: ImageLoader) -> AsyncIterator[ModelDelta]:
        self._requests.append(request)
        return self._client.stream(request, load_image)

    async def aclose(self) -> None:
        await self._client.aclose()
