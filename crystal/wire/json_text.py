"""JSON as bytes for a request body: compact, UTF-8, and valid whatever text a model or a file brought."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (tuple, set, frozenset)):
        return list(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain)


def encode_json(value: Any) -> bytes:
    """Return ``value`` as compact UTF-8 JSON; a lone half of a surrogate pair becomes U+FFFD.

    :raises TypeError: when a value has no JSON form.
    """
    text = _COMPACT.encode(value)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        # A \ud83d cut between two deltas leaves a lone surrogate, which has no UTF-8 form; a joined pair is
        # mended.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf-8")
