"""The providers Crystal knows without a file. Data only: an entry of ``providers.json`` extends or replaces one.

Context windows are what the vendors promise for ordinary accounts; a model that is missing here is added in
``providers.json`` with its own window.
"""

from __future__ import annotations

from collections.abc import Mapping

from crystal.store.provider_definition import ProviderDefinition
from crystal.types.model import ModelSettings

SCRIPTED_WINDOW = 200_000
_OPENAI_LIMIT = "max_completion_tokens"


def catalog() -> dict[str, ProviderDefinition]:
    """Return the built-in definitions by provider name."""
    definitions = (
        ProviderDefinition(
            name="deepseek",
            protocol="deepseek",
            base_uri="https://api.deepseek.com",
            replay_reasoning_content=True,
            models=_models({"deepseek-v4-flash": 131_072, "deepseek-v4-pro": 131_072}),
        ),
        ProviderDefinition(
            name="openai",
            protocol="openai",
            base_uri="https://api.openai.com/v1",
            token_limit=_OPENAI_LIMIT,
            models=_models(
                {"gpt-5.6": 400_000, "gpt-5.4": 400_000, "gpt-5.3-codex": 400_000},
                images=True,
                limit_field=_OPENAI_LIMIT,
            ),
        ),
        ProviderDefinition(
            name="anthropic",
            protocol="anthropic",
            base_uri="https://api.anthropic.com",
            models=_models(
                {"claude-sonnet-5-5": 200_000, "claude-opus-5-5": 200_000, "claude-haiku-4-5": 200_000},
                images=True,
            ),
        ),
        ProviderDefinition(
            name="gemini",
            protocol="gemini",
            base_uri="https://generativelanguage.googleapis.com",
            models=_models({"gemini-3-pro-preview": 1_048_576, "gemini-2.5-flash": 1_048_576}, images=True),
        ),
        ProviderDefinition(
            name="ollama",
            protocol="ollama",
            base_uri="http://localhost:11434",
            requires_api_key=False,
            models=_models({"qwen3-coder": 32_768, "gpt-oss:20b": 32_768}),
        ),
        ProviderDefinition(
            name="local",
            protocol="local",
            base_uri="http://127.0.0.1:8080",
            requires_api_key=False,
            models=_models({"default": 32_768}),
        ),
        ProviderDefinition(
            name="scripted",
            protocol="scripted",
            requires_api_key=False,
            models=_models({"scripted": SCRIPTED_WINDOW}, images=True),
        ),
    )
    return {definition.name: definition for definition in definitions}


def _models(windows: Mapping[str, int], *, images: bool = False, limit_field: str = "") -> dict[str, ModelSettings]:
    return {
        name: ModelSettings(name=name, context_window=window, image_input=images, limit_field=limit_field)
        for name, window in windows.items()
    }
