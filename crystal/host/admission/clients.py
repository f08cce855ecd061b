"""Admission of protocol factories and classifiers."""

from __future__ import annotations

from crystal.host.admission.entries import NAME, Omitted, check_each
from crystal.host.dispatch import Collected
from crystal.host.reserved import BUILTIN_PROTOCOLS
from crystal.types._frozen import Frozen
from crystal.types.model import ClientFactory
from crystal.types.notes import Note, NoteCode
from crystal.types.tools import Classifier


class RegisteredFactory(Frozen):
    """An admitted factory of model clients."""

    plugin: str
    factory: ClientFactory


def admit_factories(
    entries: tuple[Collected, ...],
) -> tuple[dict[str, RegisteredFactory], tuple[Note, ...]]:
    """Return the admitted factories by protocol, and a note for each omitted entry."""
    admitted: dict[str, RegisteredFactory] = {}

    def check(collected: Collected) -> None:
        factory = collected.entry
        protocols = getattr(factory, "protocols", None)
        if not callable(getattr(factory, "create", None)) or not isinstance(protocols, tuple):
            raise Omitted(NoteCode.CONTRIBUTION_INVALID, "has no 'protocols' tuple or no 'create'")
        for protocol in protocols:
            if not isinstance(protocol, str) or not NAME.fullmatch(protocol):
                raise Omitted(NoteCode.CONTRIBUTION_INVALID, f"claims {protocol!r}, which is not a protocol token")
            if protocol in BUILTIN_PROTOCOLS and not collected.plugin.startswith("builtin:"):
                raise Omitted(NoteCode.PROTOCOL_RESERVED, f"claims the built-in protocol '{protocol}'")
            if protocol in admitted:
                raise Omitted(
                    NoteCode.PROTOCOL_DUPLICATE, f"claims '{protocol}', which {admitted[protocol].plugin} serves"
                )
        for protocol in protocols:
            admitted[protocol] = RegisteredFactory(plugin=collected.plugin, factory=factory)

    return admitted, check_each(entries, "protocol factory", check)


class RegisteredClassifier(Frozen):
    """An admitted classifier."""

    plugin: str
    classifier: Classifier


def admit_classifiers(
    entries: tuple[Collected, ...],
) -> tuple[tuple[RegisteredClassifier, ...], tuple[Note, ...]]:
    """Return the admitted classifiers in order, and a note for each omitted entry."""
    admitted: list[RegisteredClassifier] = []

    def check(collected: Collected) -> None:
        if not callable(getattr(collected.entry, "classify", None)):
            raise Omitted(NoteCode.CONTRIBUTION_INVALID, "has no 'classify'")
        admitted.append(RegisteredClassifier(plugin=collected.plugin, classifier=collected.entry))

    notes = check_each(entries, "classifier", check)
    return tuple(admitted), notes
