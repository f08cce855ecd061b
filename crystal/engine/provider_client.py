"""What the engine makes of a provider's definition: facts for hooks, and clients by the factories of a host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crystal.host.build import Host
from crystal.host.isolation import describe_error
from crystal.store.providers import ProviderDefinition
from crystal.types.environment import ModelFacts
from crystal.types.model import ClientRequest, ModelClient, ModelError, ModelSettings


class ModelUnusable(Exception):
    """A model cannot be used as asked; the message is one sentence, which may hold the key that a factory was given."""


def model_facts(definition: ProviderDefinition, settings: ModelSettings) -> ModelFacts:
    """Return what hooks may know of a model."""
    return ModelFacts(
        provider=definition.name,
        protocol=definition.protocol,
        name=settings.name,
        context_window=settings.context_window,
        max_tokens=settings.max_tokens,
        temperature=settings.temperature,
        top_p=settings.top_p,
        image_input=settings.image_input,
        audio_input=settings.audio_input,
        video_input=settings.video_input,
        thinking=settings.thinking or "default",
    )


def make_client(
    host: Host,
    definition: ProviderDefinition,
    settings: ModelSettings,
    key: str,
    headers: Mapping[str, str],
    client_options: Mapping[str, Any],
    accepts_images: bool,
) -> ModelClient:
    """Make a client by the factory that serves the provider's protocol.

    :param client_options: protocol-specific values of this process.
    :raises ModelUnusable: when nothing serves the protocol or the factory fails; its words may hold the key.
    """
    registered = host.factories.get(definition.protocol)
    if registered is None:
        known = ", ".join(sorted(host.factories))
        raise ModelUnusable(
            f"Provider '{definition.name}' speaks the protocol '{definition.protocol}', which nothing here serves; "
            f"served are: {known}."
        )
    request = ClientRequest(
        provider=definition.name,
        protocol=definition.protocol,
        base_uri=definition.base_uri,
        api_key=key,
        model=settings,
        organization=definition.organization,
        project=definition.project,
        headers=headers,
        accepts_images=accepts_images,
        accepts_audio=settings.audio_input,
        accepts_video=settings.video_input,
        options={"replayReasoningContent": definition.replay_reasoning_content, **client_options},
    )
    try:
        return registered.factory.create(request)
    except ModelError as error:
        raise ModelUnusable(error.message) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise ModelUnusable(
            f"Plugin '{registered.plugin}' could not make a client for '{definition.protocol}': {describe_error(error)}"
        ) from error
