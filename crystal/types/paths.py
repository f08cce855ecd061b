"""Where a path lies, as the fence saw it when the call was judged."""

from __future__ import annotations

from enum import Enum

from crystal.types._frozen import Frozen


class PathZone(Enum):
    """What kind of place a path is; decided on the real path."""

    WORKSPACE = "workspace"
    GUARDED = "guarded"
    """Inside the workspace under ``.git/`` or ``.crystal/``: reading is ordinary, writing is Privileged."""
    OUTSIDE = "outside"
    CREDENTIAL = "credential"
    HOST = "host"
    """A file of the Crystal home that holds configuration, permissions, keys or sessions."""


class ResolvedPath(Frozen):
    """One path argument of a call after resolution.

    :param text: what the model wrote.
    :param real: the absolute real path.
    :param inside: whether the real path lies in the workspace.
    """

    text: str
    real: str
    zone: PathZone
    inside: bool
