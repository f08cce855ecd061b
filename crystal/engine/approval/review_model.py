"""Which model reviews calls: the session's own, or a separate one that the operator chose."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from crystal.engine.provider_client import ModelUnusable, make_client, model_facts
from crystal.engine.state import ReviewModel
from crystal.host.build import Host
from crystal.store.config import ApprovalModel, Config
from crystal.store.home import Home
from crystal.store.providers import ProviderDefinition, Providers, resolve_headers, resolve_key
from crystal.types.model import ModelClient, ModelSettings


def choose_review(
    wanted: ApprovalModel,
    providers: Providers,
    session: ProviderDefinition,
    environ: Mapping[str, str],
    home: Home,
    *,
    client_options: Mapping[str, Any],
    wrap_client: Callable[[ModelClient], ModelClient] | None,
) -> ReviewModel | None:
    """Return the separate review model; ``None`` when reviews use the session model.

    :param session: the provider of the session, which counts when none is named.
    :param client_options: given to a client of the session's own protocol only.
    :raises ModelUnusable: for a provider or model that is not known.
    :raises StoreError: when a key is missing or cannot be read.
    """
    if not wanted.enabled:
        return None
    definition, settings = _choose(wanted, providers, session)
    if wanted.thinking_effort != "default":
        settings = dataclasses.replace(settings, thinking=wanted.thinking_effort)
    key = resolve_key(definition, environ, home)
    headers = resolve_headers(definition, environ, home)
    options = client_options if definition.protocol == session.protocol else {}

    def make(host: Host) -> ModelClient:
        client = make_client(host, definition, settings, key, headers, options, accepts_images=False)
        return client if wrap_client is None else wrap_client(client)

    return ReviewModel(model=model_facts(definition, settings), make=make)


def _choose(
    wanted: ApprovalModel, providers: Providers, session: ProviderDefinition
) -> tuple[ProviderDefinition, ModelSettings]:
    name = wanted.provider or session.name
    definitions = providers.definitions.get(name)
    if definitions is None:
        known = ", ".join(sorted(providers.definitions))
        raise ModelUnusable(
            f"The approval model cannot be used: there is no provider '{name}'; name one of {known} with "
            f"--approval-provider or in approvalModel.provider of {providers.config_file}."
        )
    models = {model for definition in definitions for model in definition.models}
    if not models or (wanted.model and wanted.model not in models):
        raise ModelUnusable(
            f"The approval model cannot be used: provider '{name}' has no model '{wanted.model}'; add it to "
            f"{providers.file}, or name one of {', '.join(sorted(models)) or 'another provider'} with "
            f"--approval-model-id or in approvalModel.model of {providers.config_file}."
        )
    return providers.choose(name, wanted.model or None, Config())
