"""Model clients for plugins: new instances on the session's own provider and model, made on the first read.

Their calls enter neither the transcript nor the approval path nor a budget.
"""

from __future__ import annotations

from collections.abc import Callable

from crystal.types._frozen import Frozen
from crystal.types.model import ModelClient


class ClientMakers(Frozen):
    """How clients on the models in use are made; each call makes a new one.

    :param session: on the session model; the argument says whether it takes images.
    :param accepts_images: whether the session model does.
    :param review: on the review model, ``None`` while reviews use the session model.
    """

    session: Callable[[bool], ModelClient]
    accepts_images: bool
    review: Callable[[], ModelClient] | None = None


class ClientsRetired(Exception):
    """The session has ended, or the plugin was loaded anew; its new instance has clients of its own."""


class PluginClients:
    """The clients of one plugin.

    :param makers: read at each use, since the operator may change the models.
    """

    __slots__ = ("_made", "_makers", "_retired")

    def __init__(self, makers: Callable[[], ClientMakers]) -> None:
        self._makers = makers
        self._made: dict[str, ModelClient] = {}
        self._retired = False

    @property
    def session(self) -> ModelClient:
        """Text client for the session model."""
        return self._kept("session", lambda: self._makers().session(False))

    @property
    def images(self) -> ModelClient | None:
        """Image client for the session model, ``None`` when it accepts no images."""
        makers = self._makers()
        return self._kept("images", lambda: makers.session(True)) if makers.accepts_images else None

    @property
    def independent_review(self) -> bool:
        """Whether reviews use a model of their own; reading it makes no client."""
        return self._makers().review is not None

    @property
    def review(self) -> ModelClient | None:
        """Text client for the review model, ``None`` while reviews use the session model.

        :raises Exception: when the client cannot be made; the session's client stays.
        """
        make = self._makers().review
        return None if make is None else self._kept("review", make)

    def drop(self, *kinds: str) -> tuple[ModelClient, ...]:
        """Forget the clients of ``kinds`` (``session``, ``images``, ``review``; all when none is named).

        :return: those that had been made, for the caller to close.
        """
        found = [kind for kind in kinds or tuple(self._made) if kind in self._made]
        return tuple(self._made.pop(kind) for kind in found)

    def retire(self) -> tuple[ModelClient, ...]:
        """Make no client any more; every later reading raises :class:`ClientsRetired`.

        :return: those that had been made, for the caller to close.
        """
        self._retired = True
        return self.drop()

    def _kept(self, kind: str, make: Callable[[], ModelClient]) -> ModelClient:
        if self._retired:
            raise ClientsRetired("These model clients belong to a session or an instance that has ended.")
        if kind not in self._made:
            self._made[kind] = make()
        return self._made[kind]
