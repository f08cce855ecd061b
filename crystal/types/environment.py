"""What the attach hooks receive: read-only views of what was loaded and of the models in use."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Protocol

from crystal.types._frozen import Frozen
from crystal.types.model import ModelClient
from crystal.types.tools import Catalog


class ExtensionSource(Enum):
    """The tree an extension was found in."""

    HOME = "home"
    PROJECT = "project"


class ExtensionFacts(Frozen):
    """One discovered plugin or tool-set directory.

    :param enabled: ``None`` when the manifest could not say.
    :param skipped: why it is not loaded; empty when it is.
    """

    directory: str
    source: ExtensionSource
    display_name: str
    enabled: bool | None
    effective: bool
    loaded: bool
    skipped: str = ""


class ExternalToolFacts(Frozen):
    """One tool of a tool set that loaded."""

    name: str
    tool_set: str
    source: ExtensionSource
    catalogs: Catalog


class SkillFacts(Frozen):
    """One skill that can be loaded right now."""

    name: str
    description: str


class Environment(Frozen):
    """The catalog snapshot (seed plugins, "Catalog snapshot"). Built-in tools are not listed."""

    plugins: tuple[ExtensionFacts, ...] = ()
    tool_sets: tuple[ExtensionFacts, ...] = ()
    external_tools: tuple[ExternalToolFacts, ...] = ()
    skills: tuple[SkillFacts, ...] = ()


class ModelFacts(Frozen):
    """One model in use. No key, endpoint, organization or project is among the facts.

    :param thinking: ``default``, ``off`` or a lower-case effort word.
    """

    provider: str
    protocol: str
    name: str
    context_window: int
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    image_input: bool = False
    audio_input: bool = False
    video_input: bool = False
    thinking: str = "default"


class ReviewFacts(Frozen):
    """The review model; ``model`` is ``None`` while reviews use the session model."""

    independent: bool = False
    model: ModelFacts | None = None


class SessionModels:
    """A live view of the models: each read gives what is in use now.

    :param session: gives the facts of the session model, or ``None`` before one is chosen.
    """

    __slots__ = ("_review", "_session")

    def __init__(
        self, session: Callable[[], ModelFacts | None], review: Callable[[], ReviewFacts] = ReviewFacts
    ) -> None:
        self._session = session
        self._review = review

    @property
    def session(self) -> ModelFacts | None:
        """The session model."""
        return self._session()

    @property
    def review(self) -> ReviewFacts:
        """The review model."""
        return self._review()


class ModelClients(Protocol):
    """Clients on the session's own provider and model, for a plugin that implements ``attach_clients``."""

    @property
    def session(self) -> ModelClient:
        """Text client for the session model; made on the first read."""

    @property
    def images(self) -> ModelClient | None:
        """Image client, or ``None`` when the model accepts no images."""

    @property
    def independent_review(self) -> bool:
        """Whether reviews use their own model."""

    @property
    def review(self) -> ModelClient | None:
        """Text client for the review model, ``None`` while reviews use the session model."""


class StatusUpdates(Protocol):
    """The sink for a plugin's own status fields."""

    def set(self, name: str, text: str) -> None:
        """Replace the text of a field; blank text removes it. May be called from any thread."""

    def clear(self, name: str) -> None:
        """Remove a field."""
