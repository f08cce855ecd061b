from __future__ import annotations

import json
from typing import Any

import pytest

from crystal.store.config import Config
from crystal.store.home import Home, HomeFileError
from crystal.store.providers import ProviderDefinition, ProviderError, Providers, load_providers
from crystal.types.model import ModelSettings

MODEL = {"contextWindow": 1000}
PROTOCOL_NAME = "a protocol name: a letter, then letters, digits, _ or -, at most 64"
ADDRESS = "an address that begins with http:// or https://"


def providers(home: Home, value: Any | None = None) -> Providers:
    if value is not None:
        home.write_private(home.providers_file, json.dumps(value, indent=1).encode())
    loaded, notes = load_providers(home)
    assert notes == ()
    return loaded


def test_the_catalog_is_there_without_a_file(home: Home) -> None:
    known = providers(home)
    assert list(known.definitions) == [
        "deepseek",
        "openai",
        "anthropic",
        "gemini",
        "ollama",
        "local",
        "scripted",
    ]
    definition, model = known.choose("scripted", None, Config())
    assert (definition.protocol, definition.requires_api_key) == ("scripted", False)
    assert model == ModelSettings(name="scripted", context_window=200_000, image_input=True)
    assert not home.root.exists()


def test_every_field_is_read(home: Home) -> None:
    known = providers(
        home,
        {
            "acme": {
                "protocol": "openai",
                "baseUri": "https://api.acme.example/v1/",
                "apiKey": "{env:ACME}",
                "apiKeyEnvironment": "ACME_TOKEN",
                "requiresApiKey": False,
                "organization": "org",
                "project": "proj",
                "replayReasoningContent": True,
                "tokenLimit": "max_completion_tokens",
                "headers": {"X-Team": "core"},
                "models": {
                    "big": {
                        "contextWindow": 9000,
                        "temperature": 0.5,
                        "topP": 1,
                        "maxTokens": 100,
                        "thinking": "High",
                        "thinkingEfforts": ["low", "high"],
                        "imageInput": True,
                        "audioInput": True,
                        "videoInput": True,
                    }
                },
            }
        },
    )
    assert known.definitions["acme"] == (
        ProviderDefinition(
            name="acme",
            protocol="openai",
            base_uri="https://api.acme.example/v1",
            api_key="{env:ACME}",
            api_key_environment="ACME_TOKEN",
            requires_api_key=False,
            organization="org",
            project="proj",
            replay_reasoning_content=True,
            token_limit="max_completion_tokens",
            headers={"X-Team": "core"},
            models={
                "big": ModelSettings(
                    name="big",
                    context_window=9000,
                    temperature=0.5,
                    top_p=1,
                    max_tokens=100,
                    limit_field="max_completion_tokens",
                    thinking="high",
                    image_input=True,
                    audio_input=True,
                    video_input=True,
                )
            },
            thinking_efforts={"big": ("low", "high")},
        ),
    )


def test_a_repr_shows_no_key(home: Home) -> None:
    known = providers(
        home,
        {
            "acme": {
                "protocol": "openai",
                "baseUri": "https://a.example",
                "apiKey": "sk-very-secret",
                "headers": {"X-Key": "also-secret"},
                "models": {"m": MODEL},
            }
        },
    )
    assert "secret" not in repr(known)


def test_an_entry_without_an_address_extends_the_catalog(home: Home) -> None:
    known = providers(home, {"openai": {"models": {"mine": MODEL}}})
    (openai,) = known.definitions["openai"]
    assert openai.base_uri == "https://api.openai.com/v1"
    assert next(iter(openai.models)) == "mine"
    assert "gpt-5.4" in openai.models
    assert openai.models["mine"].limit_field == "max_completion_tokens"


def test_an_entry_with_an_address_has_nothing_of_the_catalogs_but_the_protocol(home: Home) -> None:
    known = providers(home, {"openai": {"baseUri": "https://gateway.example", "models": {"mine": MODEL}}})
    (openai,) = known.definitions["openai"]
    assert (openai.protocol, openai.base_uri, openai.token_limit) == ("openai", "https://gateway.example", "")
    assert list(openai.models) == ["mine"]


def test_a_gateway_may_speak_several_protocols(home: Home) -> None:
    known = providers(
        home,
        {
            "gate": [
                {"protocol": "openai", "baseUri": "https://g.example/v1", "models": {"a": MODEL}},
                {"protocol": "anthropic", "baseUri": "https://g.example", "models": {"b": MODEL}},
            ]
        },
    )
    assert known.choose("gate", "b", Config())[0].protocol == "anthropic"
    assert known.choose("gate", None, Config())[1].name == "a"


@pytest.mark.parametrize(
    ("address", "protocol", "given", "required"),
    [
        ("https://api.example", "openai", {}, True),
        ("http://localhost:8000/v1", "openai", {}, False),
        ("http://127.0.0.2:8000", "openai", {}, False),
        ("http://[::1]:8000", "openai", {}, False),
        ("http://127.evil.example", "openai", {}, True),
        ("http://localhost.evil.example", "openai", {}, True),
        ("http://localhost:8000", "openai", {"apiKeyEnvironment": "X"}, True),
        ("http://localhost:8000", "openai", {"requiresApiKey": True}, True),
        ("https://ollama.example", "ollama", {}, False),
        ("https://api.example", "openai", {"requiresApiKey": False}, False),
    ],
)
def test_whether_a_key_is_required(
    home: Home, address: str, protocol: str, given: dict[str, Any], required: bool
) -> None:
    known = providers(home, {"x": {"protocol": protocol, "baseUri": address, "models": {"m": MODEL}, **given}})
    assert known.definitions["x"][0].requires_api_key is required


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (
            {"openai": {"models": {"x": {"contextWindow": "big"}}}},
            'line 5, field openai.models.x.contextWindow: expected a positive integer, found "big"',
        ),
        ({"openai": {"models": {"x": {}}}}, "line 4, field openai.models.x.contextWindow: this field is required"),
        (
            {"openai": {"models": {"x": {"contextWindow": True}}}},
            "line 5, field openai.models.x.contextWindow: expected a positive integer, found true",
        ),
        ({"acme": {"baseUri": "https://a.example"}}, "line 2, field acme.protocol: this field is required"),
        ({"acme": {"protocol": "openai"}}, "line 2, field acme.baseUri: this field is required"),
        (
            {"gate": [{"protocol": "openai", "baseUri": "https://a.example"}, {"protocol": "my proto"}]},
            f'line 8, field gate[1].protocol: expected {PROTOCOL_NAME}, found "my proto"',
        ),
        (
            {"acme": {"baseUri": "ftp://a.example"}},
            f'line 3, field acme.baseUri: expected {ADDRESS}, found "ftp://a.example"',
        ),
        (
            {"acme": {"baseUri": "https://${HOST}/v1"}},
            f'line 3, field acme.baseUri: expected {ADDRESS}, found "https://${{HOST}}/v1"',
        ),
        ({"acme": "openai"}, 'line 2, field acme: expected an object, found "openai"'),
        (
            {"acme": {"models": {"x": {"contextWindow": 5, "topP": 2}}}},
            "line 6, field acme.models.x.topP: expected a number from 0 to 1, found 2",
        ),
    ],
)
def test_a_wrong_value_is_named_with_its_place(home: Home, value: Any, sentence: str) -> None:
    home.write_private(home.providers_file, json.dumps(value, indent=1).encode())
    with pytest.raises(HomeFileError) as raised:
        load_providers(home)
    assert str(raised.value) == f"{home.providers_file}, {sentence}"


@pytest.mark.parametrize(
    "entry",
    [
        {"apiKey": ["sk-very-secret"]},
        {"apiKey": {"a": "sk-very-secret"}},
        {"apiKeyEnvironment": "sk-very-secret"},
        {"headers": {"X-Key": "sk-very-secret\n"}},
        {"headers": "sk-very-secret"},
        {"baseUri": "https://user:sk-very-secret@a.example"},
        {"baseUri": "htps://user:sk-very-secret@a.example"},
    ],
)
def test_an_error_never_shows_what_could_be_a_key(home: Home, entry: Any) -> None:
    home.write_private(home.providers_file, json.dumps({"openai": entry}).encode())
    with pytest.raises(HomeFileError) as raised:
        load_providers(home)
    assert "secret" not in str(raised.value)
    assert "openai." in raised.value.field


def test_unknown_keys_are_noted_at_every_depth(home: Home) -> None:
    home.write_private(
        home.providers_file,
        json.dumps({"openai": {"baseUrl": "x", "models": {"m": {"contextWindow": 5, "context": 6}}}}).encode(),
    )
    first = load_providers(home)
    assert [note.text.partition("unknown field ")[2] for note in first[1]] == [
        "openai.baseUrl; it is kept and ignored; did you mean baseUri?",
        "openai.models.m.context; it is kept and ignored; did you mean contextWindow?",
    ]
    assert load_providers(home) == first


def test_the_command_line_beats_the_configuration(home: Home) -> None:
    known = providers(home, {"gemini": {"models": {"own": MODEL, "other": MODEL}}})
    config = Config(provider="gemini", model="other")
    assert known.choose(None, None, config)[1].name == "other"
    assert known.choose(None, "own", config)[1].name == "own"
    assert known.choose("scripted", None, config)[1].name == "scripted"
    assert known.choose("gemini", None, Config())[1].name == "own"


def test_without_any_provider_the_operator_is_told_how_to_choose(home: Home) -> None:
    with pytest.raises(ProviderError) as raised:
        providers(home).choose(None, "gpt-5.4", Config())
    assert str(raised.value) == (
        f"no provider is chosen: name one with -p, or write provider into {home.config_file}; "
        "known are anthropic, deepseek, gemini, local, ollama, openai, scripted"
    )


def test_an_unknown_provider_or_model_is_named_with_the_nearest(home: Home) -> None:
    known = providers(home, {"bare": {"protocol": "custom"}})
    with pytest.raises(ProviderError) as raised:
        known.choose("opnai", None, Config())
    assert str(raised.value) == (
        f"there is no provider opnai (did you mean openai?); add it to {home.providers_file}, or name another with -p"
    )
    with pytest.raises(ProviderError) as raised:
        known.choose("scripted", "script", Config())
    assert str(raised.value) == (
        "provider scripted has no model script (did you mean scripted?); add it with its contextWindow to the "
        f"models of scripted in {home.providers_file}, or name another with -m"
    )
    with pytest.raises(ProviderError, match="provider bare has no models"):
        known.choose("bare", None, Config())
