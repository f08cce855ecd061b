"""What a running tool is given: host facts, and for built-in tools the capabilities they declared."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from crystal.engine.answers import Reply
from crystal.engine.attaching import data_names
from crystal.engine.budgets import Spent
from crystal.engine.state import SessionState
from crystal.host.admission import RegisteredTool
from crystal.types.capabilities import BuiltinContext, Question
from crystal.types.events import QuestionAsked, RequestAnswered, ToolProgressed
from crystal.types.tools import ToolCall, ToolContext, ToolOutput
from crystal.workspace.data_directories import link_on_the_way

CallChild = Callable[[str, Mapping[str, Any]], Awaitable[ToolOutput]]


def make_context(
    state: SessionState,
    call: ToolCall,
    tool: RegisteredTool,
    permitted_paths: frozenset[str],
    call_child: CallChild,
    spent: Spent,
) -> ToolContext:
    """Return the context of one call; only a built-in tool can have capabilities."""
    names = data_names(tool.plugin)

    def progress(text: str) -> None:
        state.emit(ToolProgressed(call_id=call.id, text=state.redactor.apply(str(text))))

    facts: dict[str, Any] = {
        "workspace": state.workspace,
        "home": state.fence.home,
        "session_id": state.session_id,
        "call_id": call.id,
        "approval": state.approval,
        "mode": state.mode,
        "global_data": state.home.root.joinpath(*names),
        "project_data": state.workspace.joinpath(".crystal", *names),
        "accepts_images": state.model.image_input,
        "permitted_paths": permitted_paths,
        "progress": progress,
        "tools": state.catalog.definitions,
        "call": call_child,
        "program_timeout": state.program_timeout,
        "login_shell": state.login_shell,
    }
    if not tool.is_builtin:
        return ToolContext(**facts)
    wanted = tool.contribution.capabilities

    async def ask(questions: Sequence[Question]) -> Sequence[tuple[str, ...]] | None:
        return await ask_operator(state, call, questions, spent)

    return BuiltinContext(
        **facts,
        ask=ask if "ask" in wanted else None,
        todos=state.todos if "todos" in wanted else None,
        file_state=state.files if "file_state" in wanted else None,
        registry={name: found.plugin for name, found in state.host.tools.items()} if "registry" in wanted else None,
    )


def link_to_data(state: SessionState, tool: RegisteredTool) -> Path | None:
    """Return the link that stands where the runtime directories of a tool's plugin would lie; ``None`` without one."""
    if tool.is_builtin:
        return None
    names = data_names(tool.plugin)
    return link_on_the_way(state.workspace, (".crystal", *names)) or link_on_the_way(state.home.root, names)


async def ask_operator(
    state: SessionState, call: ToolCall, questions: Sequence[Question], spent: Spent
) -> Sequence[tuple[str, ...]] | None:
    """Put questions to the operator; ``None`` when they are dismissed, which counts as a denied prompt."""
    request_id = state.ids.new("request")
    waiting = state.requests.open(request_id)
    state.emit(QuestionAsked(request_id=request_id, call_id=call.id, questions=tuple(questions)))
    try:
        answer = await waiting
    finally:
        state.requests.close(request_id)
    labels = answer.labels if isinstance(answer, Reply) and _fits(answer, questions) else None
    word = "dismiss" if labels is None else "reply"
    state.emit(RequestAnswered(request_id=request_id, call_id=call.id, answer=word))
    if labels is None:
        spent.denied += 1
    return labels


def _fits(reply: Reply, questions: Sequence[Question]) -> bool:
    """Whether a reply answers every question, with words of the operator's own only where they are accepted."""
    if len(reply.labels) != len(questions):
        return False
    return all(
        question.custom or set(labels) <= {option.label for option in question.options}
        for question, labels in zip(questions, reply.labels, strict=True)
    )
