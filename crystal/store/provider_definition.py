"""What one provider is, as a value: endpoint, key sources and models. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from crystal.types._frozen import Frozen
from crystal.types._readonly import EMPTY
from crystal.types.model import ModelSettings

KEYLESS_PROTOCOLS = frozenset({"scripted", "ollama", "local"})
"""Protocols that work without a key unless the definition says otherwise."""


class ProviderDefinition(Frozen):
    """One endpoint that speaks one protocol.

    :param name: the provider's name; several definitions may share it.
    :param base_uri: http or https address without the protocol's own path and without a trailing slash; empty for a
        protocol that has no endpoint.
    :param api_key: as written in the file: ``{env:NAME}``, ``{file:path}`` or the key itself. Do not log.
    :param api_key_environment: name of the variable looked at first; empty for none.
    :param token_limit: name of the output limit on the wire; empty for the protocol's own.
    :param headers: extra headers as written in the file, variables not filled in. Do not log.
    :param models: settings by model name; the first is the default model.
    :param thinking_efforts: by model name, the effort words that model takes; absent when the file does not say.
    """

    name: str
    protocol: str
    base_uri: str = ""
    api_key: str = ""
    api_key_environment: str = ""
    requires_api_key: bool = True
    organization: str = ""
    project: str = ""
    replay_reasoning_content: bool = False
    token_limit: str = ""
    headers: Mapping[str, str] = EMPTY
    models: Mapping[str, ModelSettings] = EMPTY
    thinking_efforts: Mapping[str, tuple[str, ...]] = EMPTY

    def __repr__(self) -> str:
        return f"ProviderDefinition({self.name}, {self.protocol}, {self.base_uri or 'no endpoint'})"


def key_variable(provider: str) -> str:
    """Return the name of a provider's own variable: ``my-gateway`` has ``MY_GATEWAY_API_KEY``."""
    return "".join(sign if sign.isalnum() else "_" for sign in provider).upper() + "_API_KEY"


def is_loopback(base_uri: str) -> bool:
    """Tell whether an address names this machine; it then needs no key unless one is given."""
    host = base_uri.partition("://")[2].partition("/")[0]
    if host.startswith("["):
        return host[1:].partition("]")[0] == "::1"
    name = host.partition(":")[0]
    return name == "localhost" or (name.startswith("127.") and name.replace(".", "").isdigit())
