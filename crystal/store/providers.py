"""The providers a session can use: the built-in catalog overlaid by ``providers.json``, and the choice of one model.

Reading never writes the file; keys are resolved in ``keys``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from crystal.store.config import Config
from crystal.store.errors import ProviderError
from crystal.store.home import Home
from crystal.store.json_files import JsonFile, JsonPath, read_json_object
from crystal.store.keys import resolve_headers, resolve_key
from crystal.store.provider_catalog import catalog
from crystal.store.provider_definition import KEYLESS_PROTOCOLS, ProviderDefinition, is_loopback
from crystal.store.validated import validate_once
from crystal.types._frozen import Frozen
from crystal.types._readonly import EMPTY
from crystal.types.model import ModelSettings
from crystal.types.notes import Note

__all__ = [
    "ProviderDefinition",
    "ProviderError",
    "Providers",
    "load_providers",
    "resolve_headers",
    "resolve_key",
]


class Providers(Frozen):
    """Every definition by provider name.

    :param file: ``providers.json``, named in errors.
    :param config_file: ``config.json``, named in errors.
    """

    definitions: Mapping[str, tuple[ProviderDefinition, ...]]
    file: Path
    config_file: Path

    def choose(
        self, provider: str | None, model: str | None, config: Config
    ) -> tuple[ProviderDefinition, ModelSettings]:
        """Choose the definition and the model of a session.

        :param provider: as the operator named it for this process, else the configured one counts.
        :param model: likewise; the configured model counts only for the configured provider, and without either the
            provider's first model is taken.
        :raises ProviderError: when no provider is named anywhere, or a name is not known.
        """
        name = provider or config.provider
        if not name:
            raise ProviderError(
                f"no provider is chosen: name one with -p, or write provider into {self.config_file}; "
                f"known are {', '.join(sorted(self.definitions))}"
            )
        definitions = self.definitions.get(name)
        if definitions is None:
            hint = _hint(name, self.definitions)
            raise ProviderError(f"there is no provider {name} ({hint}); add it to {self.file}, or name another with -p")
        wanted = model or (config.model if name == config.provider else "")
        for definition in definitions:
            if not wanted and definition.models:
                return definition, next(iter(definition.models.values()))
            if wanted in definition.models:
                return definition, definition.models[wanted]
        if not wanted:
            raise ProviderError(f"provider {name} has no models: add one to its models in {self.file}")
        known = {model for definition in definitions for model in definition.models}
        raise ProviderError(
            f"provider {name} has no model {wanted} ({_hint(wanted, known)}); "
            f"add it with its contextWindow to the models of {name} in {self.file}, or name another with -m"
        )


def load_providers(home: Home) -> tuple[Providers, tuple[Note, ...]]:
    """Read ``providers.json`` over the catalog; a missing file gives the catalog.

    An entry with the name of a catalog provider and without ``baseUri`` extends it: what it leaves out comes from the
    catalog, its models come first. With ``baseUri`` it stands alone, except that ``protocol`` may still be left out.

    :returns: the providers, and one note for each unknown key.
    :raises HomeFileError: when the file is broken, with its line and field.
    """
    known = catalog()
    definitions: dict[str, tuple[ProviderDefinition, ...]] = {name: (definition,) for name, definition in known.items()}
    notes: tuple[Note, ...] = ()
    file = read_json_object(home.providers_file)
    if file is not None:
        notes = validate_once(home, file, _validate)
        for name, entry in file.value.items():
            definitions[name] = tuple(_definitions(file, name, entry, known.get(name)))
    return Providers(definitions=definitions, file=home.providers_file, config_file=home.config_file), notes


def _definitions(
    file: JsonFile, name: str, entry: Any, known: ProviderDefinition | None
) -> Iterable[ProviderDefinition]:
    if isinstance(entry, dict):
        yield _definition(file, (name,), entry, known)
        return
    for position, one in enumerate(entry):
        yield _definition(file, (name, position), one, known)


def _definition(
    file: JsonFile, place: JsonPath, entry: dict[str, Any], known: ProviderDefinition | None
) -> ProviderDefinition:
    protocol = entry.get("protocol") or (known.protocol if known else "")
    if not protocol:
        file.refuse((*place, "protocol"), "this field is required")
    # A definition of another endpoint or dialect has nothing of the catalog's: its models live elsewhere.
    extended = known if known and not entry.get("baseUri") and protocol == known.protocol else None
    base_uri = (entry.get("baseUri") or (extended.base_uri if extended else "")).rstrip("/")
    if not base_uri and protocol in _NEED_ENDPOINT:
        file.refuse((*place, "baseUri"), "this field is required")
    token_limit = entry.get("tokenLimit") or (extended.token_limit if extended else "")
    models = {model: _model(model, settings, token_limit) for model, settings in entry.get("models", EMPTY).items()}
    for model, inherited in (extended.models if extended else EMPTY).items():
        models.setdefault(model, inherited)
    efforts = {
        model: tuple(settings["thinkingEfforts"])
        for model, settings in entry.get("models", EMPTY).items()
        if settings.get("thinkingEfforts")
    }
    replay = entry.get("replayReasoningContent")
    return ProviderDefinition(
        name=str(place[0]),
        protocol=protocol,
        base_uri=base_uri,
        api_key=entry.get("apiKey", ""),
        api_key_environment=entry.get("apiKeyEnvironment") or "",
        requires_api_key=_requires_key(entry, protocol, base_uri),
        organization=entry.get("organization", ""),
        project=entry.get("project", ""),
        replay_reasoning_content=protocol == "deepseek" if replay is None else replay,
        token_limit=token_limit,
        headers=entry.get("headers", EMPTY),
        models=models,
        thinking_efforts=efforts,
    )


def _model(name: str, settings: dict[str, Any], token_limit: str) -> ModelSettings:
    return ModelSettings(
        name=name,
        context_window=settings["contextWindow"],
        temperature=settings.get("temperature"),
        top_p=settings.get("topP"),
        max_tokens=settings.get("maxTokens"),
        limit_field=token_limit,
        thinking=(settings.get("thinking") or "").lower(),
        image_input=settings.get("imageInput", False),
        audio_input=settings.get("audioInput", False),
        video_input=settings.get("videoInput", False),
    )


def _requires_key(entry: dict[str, Any], protocol: str, base_uri: str) -> bool:
    """Without ``requiresApiKey``: not for the keyless protocols, nor for this machine unless a key is given."""
    if entry.get("requiresApiKey") is not None:
        return bool(entry["requiresApiKey"])
    given = bool(entry.get("apiKey") or entry.get("apiKeyEnvironment"))
    return protocol not in KEYLESS_PROTOCOLS and (given or not is_loopback(base_uri))


def _hint(name: str, known: Iterable[str]) -> str:
    import difflib

    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=2, cutoff=0.5)
    return f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(names) or 'none'}"


_NEED_ENDPOINT = frozenset({"openai", "deepseek", "responses", "anthropic", "gemini", "ollama"})


def _validate(file: JsonFile) -> tuple[str, ...]:
    from crystal.store.providers_schema import validate_providers  # pydantic: only for a file that changed

    return validate_providers(file)
