"""How a workspace tool turns its call into an answer: the fence of the call, and refusals as failed results."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from crystal.types.tools import ToolCall, ToolContext, ToolOutput
from crystal.workspace.fence import Fence, PathRefused, printable


class CallRefused(PathRefused):
    """A call that cannot be done as it was made. The message is one sentence for the model."""


def fence_of(context: ToolContext) -> Fence:
    """Return the fence a call runs under."""
    user_home = Path(os.path.realpath(os.path.expanduser("~")))
    return Fence(workspace=context.workspace, home=context.home, user_home=user_home)


def answer(run: Callable[[ToolCall, ToolContext], ToolOutput], call: ToolCall, context: ToolContext) -> ToolOutput:
    """Run a tool's work and give a refusal or a fault of the file system as a failed result."""
    try:
        return run(call, context)
    except (PathRefused, OSError) as error:
        return failure(error, call)


def failure(error: PathRefused | OSError, call: ToolCall) -> ToolOutput:
    """Return the failed result for a refusal or a fault of the file system."""
    if isinstance(error, PathRefused):
        return ToolOutput(text=str(error), failed=True)
    path = printable(str(call.arguments.get("path", ".")))
    reason = error.strerror or type(error).__name__
    return ToolOutput(text=f"{call.name} cannot use {path}: {reason}; choose another path or mend it.", failed=True)


def positive(call: ToolCall, name: str, default: int) -> int:
    """Return a whole-number argument that counts from 1.

    :raises CallRefused: when it is below 1.
    """
    value = int(call.arguments.get(name, default))
    if value < 1:
        raise CallRefused(f"{name} is {value}, but it counts from 1; give 1 or more or leave it out.")
    return value


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, such as ``1 line`` or ``5 lines``.

    :param plural: the plural when it is not made with an ``s``.
    """
    return f"1 {noun}" if number == 1 else f"{number} {plural or noun + 's'}"


def unspellable(text: str) -> str:
    """Say why a name that was copied from a listing is not found; empty when it holds no sign for undecodable bytes."""
    if "\ufffd" not in text:
        return ""
    return " U+FFFD stands for bytes that are not UTF-8 and cannot be given in a path; rename the file with bash."


def parent_of(real: str) -> tuple[str, str]:
    """Split a real path into its folder and its last name."""
    return os.path.split(real)
