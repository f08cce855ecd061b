"""Which values are secret, and their removal from text before anyone sees it. Must not itself print one.

A secret is 8 characters or more; each occurrence becomes ``[redacted:NAME]``. Where several could begin at one place
the longest wins, and text that was put in is not looked at again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from crystal.store.errors import ProviderError
from crystal.store.home import Home
from crystal.store.keys import SHARED_VARIABLE, key_variables, read_credentials, resolve_value
from crystal.store.provider_definition import ProviderDefinition
from crystal.store.providers import Providers

SHORTEST_SECRET = 8
_SECRET_HEADER = re.compile("key|token|secret|password|authorization|cookie", re.IGNORECASE)


def collect_secrets(providers: Providers, environ: Mapping[str, str], home: Home) -> tuple[tuple[str, str], ...]:
    """Gather the keys of every configured or catalogued provider and the headers whose name says that they are secret.

    :returns: pairs of a printable name and the value; every value once, under its first name.
    :raises HomeFileError: when ``credentials.json`` is broken.
    """
    found: dict[str, str] = {}
    for name, value in _candidates(providers, environ, home):
        value = value.strip()
        if len(value) >= SHORTEST_SECRET:
            found.setdefault(value, name)
    return tuple((name, value) for value, name in found.items())


def _candidates(providers: Providers, environ: Mapping[str, str], home: Home) -> Iterator[tuple[str, str]]:
    yield SHARED_VARIABLE, environ.get(SHARED_VARIABLE, "")
    for definitions in providers.definitions.values():
        for definition in definitions:
            for variable in key_variables(definition):
                yield variable, environ.get(variable, "")
            yield from _written(definition, environ, home)
    for name, key in read_credentials(home).items():
        yield f"{name}.key", key


def _written(definition: ProviderDefinition, environ: Mapping[str, str], home: Home) -> Iterator[tuple[str, str]]:
    if definition.api_key:
        yield f"{definition.name}.apiKey", _value(definition.api_key, environ, home)
    for header, text in definition.headers.items():
        if _SECRET_HEADER.search(header):
            value = _value(text, environ, home)
            name = f"{definition.name}.{header}"
            yield name, value
            yield name, value.partition(" ")[2]  # the token of "Bearer TOKEN" is as secret as the whole


def _value(text: str, environ: Mapping[str, str], home: Home) -> str:
    try:
        return resolve_value(text, "", environ, home)
    except ProviderError:
        return ""  # a value that cannot be had cannot leak; using the provider reports it


class Redactor:
    """Removes secrets from whole texts.

    :param secrets: pairs of name and value, as :func:`collect_secrets` returns them.
    """

    __slots__ = ("_first", "_longest", "_marks", "_pattern", "_values")

    def __init__(self, secrets: Sequence[tuple[str, str]]) -> None:
        self._marks = {value: f"[redacted:{name}]" for name, value in reversed(secrets) if value}
        self._values = tuple(sorted(self._marks, key=len, reverse=True))
        self._pattern = re.compile("|".join(map(re.escape, self._values)))
        self._first = frozenset(value[0] for value in self._values)
        self._longest = len(self._values[0]) if self._values else 0

    @property
    def marks(self) -> tuple[str, ...]:
        """Every mark this redactor can put in; a text of the model that holds one would destroy the secret it hides."""
        return tuple(self._marks.values())

    def apply(self, text: str) -> str:
        """Return ``text`` with every secret replaced; the same object when there is none."""
        for value in self._values:
            if value in text:
                return self._pattern.sub(lambda found: self._marks[found[0]], text)
        return text

    def split(self, text: str) -> tuple[str, str]:
        """Return what is decided about ``text``, redacted, and the tail that more text could still change."""
        if not self._values:
            return text, ""
        done: list[str] = []
        start = 0
        while True:
            hold = self._hold(text, start)
            found = self._pattern.search(text, start)
            if found is None or found.start() >= hold:
                done.append(text[start:hold])
                return "".join(done), text[hold:]
            done.append(text[start : found.start()])
            done.append(self._marks[found[0]])
            start = found.end()

    def _hold(self, text: str, start: int) -> int:
        """Return where the longest tail of ``text`` begins that a secret continues."""
        length = len(text)
        for at in range(max(start, length - self._longest + 1), length):
            if text[at] in self._first:
                tail = text[at:]
                if any(len(value) > len(tail) and value.startswith(tail) for value in self._values):
                    return at
        return length


class StreamRedactor:
    """Removes secrets from a text that arrives in pieces; the pieces given out join to what :class:`Redactor` gives."""

    __slots__ = ("_redactor", "_tail")

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._tail = ""

    def feed(self, text: str) -> str:
        """Take the next piece and return what can be shown; only a tail that may begin a secret is held back."""
        shown, self._tail = self._redactor.split(self._tail + text)
        return shown

    def finish(self) -> str:
        """Return what was held back; the stream ends."""
        tail, self._tail = self._tail, ""
        return self._redactor.apply(tail)
