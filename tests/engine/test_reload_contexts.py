"""The code of disk plugins leaves the process when a reload or the end of the session retires it."""

from __future__ import annotations

import asyncio
import gc
import linecache
import shutil
import sys
import weakref
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from crystal.host.build import HostOptionError
from crystal.host.loading.finder import ContextFinder
from crystal.host.loading.names import PREFIX
from tests.engine.runs import DONE
from tests.engine.surface import Surface
from tests.host.loading.folders import write_folder

SOURCE = """\
import sys
from crystal import Risk, hookimpl, tool
import helper

name = "Acme"


class Finder:
    def find_spec(self, name, path=None, target=None):
        return None


@tool(risk=Risk.READ)
def version() -> str:
    "Say which code this is."
    return helper.VERSION


@hookimpl
def contribute_tools():
    return [version]


@hookimpl
def on_prompt():
    return f"version {helper.VERSION}"


@hookimpl
def on_session_started():
    sys.meta_path.insert(0, Finder())
"""
CLIENT = """\
from crystal import hookimpl
from crystal.types.model import FinishDelta, FinishReason, TextDelta

name = "Parrot"


class Client:
    async def stream(self, request, load_image):
        import late
        yield TextDelta(text=late.WORD)
        yield FinishDelta(reason=FinishReason.STOP)

    async def aclose(self):
        pass


class Factory:
    protocols = ("parrot",)

    def create(self, request):
        return Client()


@hookimpl
def contribute_protocols():
    return [Factory()]
"""


@pytest.fixture
def surface(tmp_path: Path) -> Surface:
    return Surface(tmp_path)


@pytest.fixture
def folder(surface: Surface) -> Path:
    surface.home.root.mkdir(mode=0o700)
    return write_folder(
        surface.home.root / "plugins" / "Acme",
        {"plugin.json": '{"module": "acme.py"}', "acme.py": SOURCE, "helper.py": 'VERSION = "1"\n'},
    )


def contexts() -> set[str]:
    """Return the names of everything in the process that came from a plugin's folder."""
    return {name for name in sys.modules if name.startswith(PREFIX)}


def finders() -> list[Any]:
    return [finder for finder in sys.meta_path if type(finder).__module__.startswith(PREFIX)]


def module_of(surface: Surface, tail: str) -> ModuleType:
    [name] = [name for name in contexts() if name.endswith(f".{tail}")]
    return sys.modules[name]


def test_a_reload_lets_go_of_the_old_code_and_its_import_hooks(surface: Surface, folder: Path) -> None:
    before = contexts()

    async def talk() -> None:
        session = await surface.open([DONE])
        assert len(contexts() - before) == 3
        kept = [weakref.ref(module_of(surface, tail)) for tail in ("acme", "helper")]
        [finder] = map(weakref.ref, finders())
        (folder / "helper.py").write_text('VERSION = "2"\n')
        await session.reload()
        gc.collect()
        assert [reference() for reference in kept] == [None, None]
        assert finder() is None
        assert len(finders()) == 1, "that of the new instance"
        assert len(contexts() - before) == 3
        assert module_of(surface, "helper").VERSION == "2"
        await session.send("go")
        await session.close()

    asyncio.run(talk())
    assert "version 2" in surface.requests[0].items[0].text  # type: ignore[union-attr]


def test_many_reloads_leave_one_context_and_no_trace_of_the_others(surface: Surface, folder: Path) -> None:
    before, lines, modules = contexts(), set(linecache.cache), len(sys.modules)

    async def talk() -> None:
        session = await surface.open([DONE])
        for _ in range(5):
            await session.reload()
        assert len(contexts() - before) == 3
        assert len(finders()) == 1
        [owner] = [finder for finder in sys.meta_path if isinstance(finder, ContextFinder)]
        assert len(owner._owners) == 1
        await session.close()

    asyncio.run(talk())
    assert contexts() == before
    assert finders() == []
    assert not [path for path in set(linecache.cache) - lines if str(folder) in path]
    assert len(sys.modules) < modules + 500


def test_the_end_of_a_session_lets_go_of_the_code(surface: Surface, folder: Path) -> None:
    kept: list[weakref.ref[ModuleType]] = []

    async def talk() -> None:
        session = await surface.open([DONE])
        kept.append(weakref.ref(module_of(surface, "acme")))
        await session.close()

    asyncio.run(talk())
    gc.collect()
    assert kept[0]() is None
    assert finders() == []


def test_a_reload_that_fails_leaves_the_code_there_was(surface: Surface, folder: Path) -> None:
    before = contexts()
    other = write_folder(folder.parent / "Other", {"plugin.json": '{"module": "x.py"}', "x.py": 'name = "Other"\n'})

    async def talk() -> None:
        session = await surface.open([DONE], blocked_plugins=("Other",))
        old = module_of(surface, "acme")
        shutil.rmtree(other)
        with pytest.raises(HostOptionError):
            await session.reload()
        assert module_of(surface, "acme") is old
        assert len(contexts() - before) == 3
        await session.send("go")
        await session.close()

    asyncio.run(talk())


def test_a_client_that_stays_in_use_keeps_its_code(surface: Surface, folder: Path) -> None:
    parrot = write_folder(
        folder.parent / "Parrot",
        {"plugin.json": '{"module": "parrot.py"}', "parrot.py": CLIENT, "late.py": 'WORD = "squawk"\n'},
    )
    surface.home.providers_file.write_text(
        '{"bird": {"protocol": "parrot", "baseUri": "http://127.0.0.1:9", "requiresApiKey": false,'
        ' "models": {"m": {"contextWindow": 1000}}}}'
    )

    async def talk() -> str:
        session = await surface.open([], provider="bird", client_options={})
        (parrot / "plugin.json").write_text('{"module": "parrot.py", "enabled": false}')
        await session.reload()
        ended = await session.send("speak")
        await session.close()
        return str(ended.stop_reason.value)

    assert asyncio.run(talk()) == "done"
