"""Tool calls. The order inside one call is:

1. :func:`on_tool_call` 2. schema check 3. path fence 4. classification
5. :func:`crystal.hookspecs.approval.on_approval` 6. :func:`crystal.hookspecs.raw.rewrite_approval` 7. the policy
8. the tool runs, its output is truncated 9. :func:`on_tool_result`
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping

from crystal.hookspecs._kinds import ContractRefused, fold
from crystal.types._readonly import ReadOnlyDict, read_only, thaw
from crystal.types.items import IMAGE_TYPES, Image
from crystal.types.tools import ToolCall, ToolOutput


def accept_tool_call(previous: ToolCall, replacement: object, catalog: Collection[str]) -> ToolCall:
    """Return the replaced call with read-only arguments.

    :param catalog: names of the current catalog.
    :raises ContractRefused: for another id, a name outside the catalog, or arguments that are not JSON.
    """
    if not isinstance(replacement, ToolCall):
        raise ContractRefused(f"is {type(replacement).__name__}, not a ToolCall")
    if replacement.id != previous.id:
        raise ContractRefused("has another call id")
    if replacement.name != previous.name and replacement.name not in catalog:
        raise ContractRefused(f"names {replacement.name!r}, which the current catalog does not hold")
    if replacement.arguments is previous.arguments:
        return replacement
    if not isinstance(replacement.arguments, Mapping):
        raise ContractRefused(f"has {type(replacement.arguments).__name__} as arguments, not a mapping")
    if (fault := _not_json(replacement.arguments)) is not None:
        raise ContractRefused(f"has {fault} in its arguments, which JSON cannot hold")
    # Copied before it is frozen: a read-only object that the hook made itself may hold lists that it can still change.
    arguments: ReadOnlyDict = read_only(thaw(replacement.arguments))
    return dataclasses.replace(replacement, arguments=arguments)


def _not_json(value: object) -> str | None:
    if value is None or isinstance(value, (str, bool, int)):
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else repr(value)
    if isinstance(value, Mapping):
        for key, entry in value.items():
            if not isinstance(key, str):
                return f"a {type(key).__name__} key"
            if (fault := _not_json(entry)) is not None:
                return fault
        return None
    if isinstance(value, (list, tuple)):
        return next((fault for entry in value if (fault := _not_json(entry)) is not None), None)
    return f"a {type(value).__name__}"


def accept_tool_result(previous: ToolOutput, replacement: object, accepts_images: bool) -> ToolOutput:
    """Return the replaced output; whether the call failed stays the host's word.

    :param accepts_images: on a text-only turn returned images are ignored.
    :raises ContractRefused: for something else than a ``ToolOutput`` of text and known image types.
    """
    if not isinstance(replacement, ToolOutput):
        raise ContractRefused(f"is {type(replacement).__name__}, not a ToolOutput")
    if not isinstance(replacement.text, str):
        raise ContractRefused(f"has {type(replacement.text).__name__} as text")
    if not accepts_images:
        return ToolOutput(text=replacement.text, images=previous.images, failed=previous.failed)
    if not isinstance(replacement.images, tuple):
        raise ContractRefused(f"has {type(replacement.images).__name__} as images, not a tuple")
    for image in replacement.images:
        if not isinstance(image, Image) or not isinstance(image.data, bytes) or not isinstance(image.name, str):
            raise ContractRefused(f"has {type(image).__name__} among its images")
        if image.media_type not in IMAGE_TYPES:
            raise ContractRefused(f"has an image of type {image.media_type!r}; allowed are {', '.join(IMAGE_TYPES)}")
    return ToolOutput(text=replacement.text, images=replacement.images, failed=previous.failed)


@fold(
    "The same call id; a new name must be in the current catalog; arguments are a JSON object. The result is "
    "classified and approved afresh.",
    folds="call",
    accept=accept_tool_call,
)
def on_tool_call(call: ToolCall) -> ToolCall | None:
    """Called for every tool call before its schema check, whatever plugin the tool comes from.

    May replace the name or the arguments. May not change the id, skip the call or skip approval.

    :param call: ``id``, ``name`` and read-only ``arguments``.
    :return: the call to run, or ``None`` to keep it.
    """


@fold(
    "A ToolOutput: text, and on an image-capable turn png, jpeg, gif or webp images. Whether the call failed is kept.",
    folds="result",
    accept=accept_tool_result,
)
def on_tool_result(call: ToolCall, result: ToolOutput) -> ToolOutput | None:
    """Called with every result, failures and denials included, before it is stored.

    May replace the text and, on an image-capable turn, the images. May not mark a failure as a success or an approval
    as passed.

    :param call: the call as it ran.
    :param result: ``text`` (already truncated), ``images`` and ``failed``.
    :return: the output to store, or ``None`` to keep it.
    """
