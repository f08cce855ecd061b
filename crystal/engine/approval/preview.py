"""What a call would change, as its tool shows it to the operator who is asked. A preview changes nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from crystal.engine.budgets import Spent
from crystal.engine.state import SessionState
from crystal.engine.tool_context import make_context
from crystal.host.admission import RegisteredTool
from crystal.host.isolation import LimitReached, call_in_thread, run_isolated
from crystal.types.notes import NoteCode
from crystal.types.tools import ToolCall, ToolOutput

PREVIEW_SECONDS = 3.0
PREVIEW_GRACE_SECONDS = 1.0
LONGEST_PREVIEW = 100_000
"""Characters of a preview that are shown; nobody reads more before a yes."""


async def preview_call(state: SessionState, call: ToolCall, tool: RegisteredTool) -> str:
    """Return the preview of ``call``, without secrets; empty when its tool has none or fails at it."""
    preview = tool.contribution.preview
    if preview is None:
        return ""
    context = make_context(state, call, tool, frozenset(), _refuse_child, Spent())
    context = dataclasses.replace(context, progress=lambda text: None)
    shown, error = await run_isolated(
        call_in_thread(lambda: preview(call, context)), grace=PREVIEW_GRACE_SECONDS, limit=PREVIEW_SECONDS
    )
    if error is None and isinstance(shown, str):
        return _cut(state.redactor.apply(shown))
    fault = f"answered {type(shown).__name__}, not a text"
    if isinstance(error, LimitReached):
        fault = f"took longer than {PREVIEW_SECONDS:g} s"
    elif error is not None:
        fault = f"raised {type(error).__name__}"
    state.host.notes.add(
        NoteCode.CONTRIBUTION_INVALID,
        f"Plugin '{tool.plugin}': the preview of '{call.name}' {fault}; the operator is asked without it.",
        tool.plugin,
    )
    return ""


def _cut(text: str) -> str:
    if len(text) <= LONGEST_PREVIEW:
        return text
    return f"{text[:LONGEST_PREVIEW]}\n(cut: the first {LONGEST_PREVIEW:,} of {len(text):,} characters)"


async def _refuse_child(name: str, arguments: Mapping[str, Any]) -> ToolOutput:
    return ToolOutput(text=f"A preview calls no tools; '{name}' was not run.", failed=True)
