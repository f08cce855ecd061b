"""The ``openai`` plugin: what it contributes, and what loading it costs."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from crystal.types.model import (
    ClientFactory,
    ClientRequest,
    ModelClient,
    ModelError,
    ModelErrorKind,
    ModelRequest,
    ModelSettings,
    Purpose,
    TextDelta,
)
from plugins_builtin.protocols import openai
from tests.local_server import LocalServer, chat_answer
from tests.plugins_builtin.protocols.transcripts import load_image, user


def request_for(base_uri: str) -> ClientRequest:
    return ClientRequest(
        provider="p",
        protocol="openai",
        base_uri=base_uri,
        api_key="k",
        model=ModelSettings(name="m", context_window=1000),
    )


def test_it_contributes_one_factory_for_its_protocol() -> None:
    assert openai.name == "openai"
    [factory] = openai.contribute_protocols()
    assert isinstance(factory, ClientFactory)
    assert factory.protocols == ("openai",)


def test_its_client_talks_to_the_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")

    async def inside() -> list[str]:
        client = openai.OpenAiFactory().create(request_for(server.base_uri))
        assert isinstance(client, ModelClient)
        request = ModelRequest(purpose=Purpose.WORK, items=(user("hi"),))
        texts = [delta.text async for delta in client.stream(request, load_image) if isinstance(delta, TextDelta)]
        await client.aclose()
        return texts

    with LocalServer([chat_answer("hello")]) as server:
        assert asyncio.run(inside()) == ["hello"]


def test_an_address_that_is_none_is_said_before_anything_starts() -> None:
    with pytest.raises(ModelError, match="baseUri of provider 'p'") as caught:
        openai.OpenAiFactory().create(request_for("http://[::1"))
    assert caught.value.kind is ModelErrorKind.INVALID


def test_loading_the_plugin_and_making_a_client_import_no_http_library() -> None:
    code = (
        "import sys; from plugins_builtin.protocols.openai import OpenAiFactory; "
        "print(sorted({'httpx', 'asyncio', 'pydantic', 'crystal.wire.http'} & sys.modules.keys())); "
        "from crystal.types.model import ClientRequest, ModelSettings; "
        "OpenAiFactory().create(ClientRequest(provider='p', protocol='openai', base_uri='http://x', api_key='', "
        "model=ModelSettings(name='m', context_window=1))); print('httpx' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "False"]
