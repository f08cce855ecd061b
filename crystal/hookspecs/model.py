"""Model calls. The order inside one call is:

1. :func:`crystal.hookspecs.raw.rebuild_model`, every implementation 2. :func:`transform_model`, every implementation
3. the request 4. :func:`on_model_response`

Work, plan, side, compaction and topic requests pass these hooks; approval review and a plugin's own clients do not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from crystal.hookspecs._items import images_of, read_items
from crystal.hookspecs._kinds import ContractRefused, fold, notify
from crystal.types.items import AssistantItem, ImageRef, ModelItem, ToolResultItem, UserItem
from crystal.types.model import ModelRequest, ModelResponse


def accept_transformed(previous: ModelRequest, replacement: object, facts: object) -> ModelRequest:
    """Return the request with the new items.

    :raises ContractRefused: when more than the text of user, assistant and result items changed, or an image was added.
    """
    items = read_items(replacement)
    if len(items) != len(previous.items):
        raise ContractRefused(f"has {len(items)} items where the request has {len(previous.items)}")
    kept = tuple(
        _accept_item(position, before, after)
        for position, (before, after) in enumerate(zip(previous.items, items, strict=True))
    )
    return dataclasses.replace(previous, items=kept)


def _accept_item(position: int, before: ModelItem, after: ModelItem) -> ModelItem:
    if after is before:
        return before
    if type(after) is not type(before) or after.id != before.id:
        raise ContractRefused(f"reorders, adds, drops or changes the kind of items at position {position}")
    if not isinstance(after, (UserItem, AssistantItem, ToolResultItem)):
        if after != before:
            raise ContractRefused(
                f"changes a {type(before).__name__} at position {position}, which is not its to change"
            )
        return before
    original: Any = before
    if isinstance(after, AssistantItem) and after.state is None:
        # An item made anew without the state, which authors need not know of, says nothing about it.
        after = dataclasses.replace(after, state=original.state)
    kept = dataclasses.replace(original, text=after.text)
    if isinstance(after, (UserItem, ToolResultItem)):
        if not _is_subsequence(after.images, images_of(before)):
            raise ContractRefused(f"adds or reorders images at position {position}; images may only be dropped")
        kept = dataclasses.replace(kept, images=after.images)
    if after != kept:
        raise ContractRefused(f"changes more than the text and images of the item at position {position}")
    if isinstance(kept, AssistantItem) and kept != before:
        # Provider-bound state belongs to the exact text it came with.
        return dataclasses.replace(kept, state=None)
    result: ModelItem = kept
    return result


def _is_subsequence(images: Sequence[ImageRef], of: Sequence[ImageRef]) -> bool:
    remaining = iter(of)
    return all(any(image == candidate for candidate in remaining) for image in images)


@fold(
    "The same items in the same order with the same ids and kinds; only the text of user, assistant and tool-result "
    "items may differ, and image references may only be dropped.",
    folds="request",
    accept=accept_transformed,
)
def transform_model(request: ModelRequest) -> Sequence[ModelItem] | None:
    """Called before each request, after every raw hook, to change what is sent on this one call.

    May change user, assistant and tool-result text and drop image references. May not reorder, add or drop items, edit
    system messages, reasoning or calls, or add an image. The stored transcript stays as it was.

    :param request: ``purpose``, ``items`` (the system message is an item) and ``accepts_images``.
    :return: the items to send, or ``None`` to keep them.
    """


@notify("May read; the host uses the candidate it received.")
def on_model_response(response: ModelResponse) -> None:
    """Called after a complete response and before the host stores it or runs its calls; never for approval review.

    :param response: ``purpose``, ``finish``, the candidate's ``items`` and ``usage``.
    """
