"""Where a provider's key comes from. Reads files that the operator named; never prints a key or part of one."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping

from crystal.store.errors import ProviderError
from crystal.store.home import Home, describe, expand_user
from crystal.store.interpolation import VariableError, fill_variables
from crystal.store.json_files import kind, read_json_object
from crystal.store.provider_definition import ProviderDefinition, key_variable

SHARED_VARIABLE = "CRYSTAL_API_KEY"
_LARGEST_KEY_FILE = 65_536


def resolve_key(definition: ProviderDefinition, environ: Mapping[str, str], home: Home) -> str:
    """Find the key of a provider; the first place that has one counts.

    Places in order: the variable named by ``apiKeyEnvironment``, ``<PROVIDER>_API_KEY``, ``CRYSTAL_API_KEY`` (only for
    a provider that requires a key), ``apiKey`` in ``providers.json``, ``credentials.json``.

    :returns: the key without surrounding white space; empty for a provider that needs none and has none.
    :raises ProviderError: when a required key is nowhere, or the place that should hold it cannot be used.
    :raises HomeFileError: when ``credentials.json`` is broken.
    """
    for variable in key_variables(definition):
        if environ.get(variable, "").strip():
            return _checked(environ[variable], definition, f"the environment variable {variable}")
    if definition.api_key:
        place = f"{home.providers_file}, field {definition.name}.apiKey"
        return _checked(resolve_value(definition.api_key, place, environ, home), definition, place)
    stored = read_credentials(home).get(definition.name, "")
    if stored.strip():
        return _checked(stored, definition, str(home.credentials_file))
    if definition.requires_api_key:
        raise ProviderError(_missing(definition, home))
    return ""


def resolve_headers(definition: ProviderDefinition, environ: Mapping[str, str], home: Home) -> dict[str, str]:
    """Return the extra headers of a provider with their variables and files filled in.

    :raises ProviderError: for a variable that is not set or a file that cannot be used.
    """
    return {
        name: resolve_value(text, f"{home.providers_file}, field {definition.name}.headers.{name}", environ, home)
        for name, text in definition.headers.items()
    }


def resolve_value(text: str, place: str, environ: Mapping[str, str], home: Home) -> str:
    """Return what a key or header of ``providers.json`` stands for: ``{file:path}``, variables, or itself.

    :param place: file and field, for the error.
    :raises ProviderError: for a variable that is not set or a file that cannot be used.
    """
    if text.startswith("{file:") and text.endswith("}"):
        return _read_key_file(text[len("{file:") : -1], place, environ, home)
    try:
        return fill_variables(text, environ)
    except VariableError as error:
        raise ProviderError(f"{place}: {error}") from error


def key_variables(definition: ProviderDefinition) -> Iterator[str]:
    """Yield the environment variables that may hold the key, in order."""
    if definition.api_key_environment:
        yield definition.api_key_environment
    yield key_variable(definition.name)
    if definition.requires_api_key:
        yield SHARED_VARIABLE


def read_credentials(home: Home) -> Mapping[str, str]:
    """Return the stored keys by provider name; empty when there is no file.

    :raises HomeFileError: when the file is broken.
    """
    file = read_json_object(home.credentials_file)
    if file is None:
        return {}
    for name, key in file.value.items():
        if not isinstance(key, str):
            file.refuse((name,), f"expected a key as text, found {kind(key)}")
    return file.value


def _read_key_file(name: str, place: str, environ: Mapping[str, str], home: Home) -> str:
    path = os.path.join(home.root, expand_user(name, environ))
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            state = os.fstat(descriptor)
            if not stat.S_ISREG(state.st_mode):
                raise ProviderError(f"{place}: {path} is not a regular file")
            if state.st_mode & 0o077:
                raise ProviderError(f"{place}: others may read {path}; run: chmod 600 on it")
            data = os.read(descriptor, _LARGEST_KEY_FILE)
        finally:
            os.close(descriptor)
        return data.decode().rstrip("\r\n")
    except OSError as error:
        raise ProviderError(f"{place}: {path} cannot be read: {describe(error)}") from error
    except UnicodeDecodeError as error:
        raise ProviderError(f"{place}: {path} is not a text file") from error


def _checked(key: str, definition: ProviderDefinition, place: str) -> str:
    key = key.strip()
    if not key:
        raise ProviderError(f"the key of provider {definition.name} is empty: {place}")
    if not key.isascii() or not key.isprintable():
        raise ProviderError(f"the key of provider {definition.name} holds characters no key has: {place}")
    return key


def _missing(definition: ProviderDefinition, home: Home) -> str:
    variables = " or ".join(key_variables(definition))
    return (
        f"provider {definition.name} needs an API key and none was found: set {variables}, "
        f"write apiKey for it in {home.providers_file}, or write it into {home.credentials_file} "
        f'as {{"{definition.name}": "KEY"}}'
    )
