"""What the tokens of a template stand for in a session: the host's own values and those of the plugins."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from crystal.engine.prompts.binding import bind
from crystal.engine.prompts.texts import ENVIRONMENT
from crystal.engine.state import SessionState
from crystal.host.admission import RegisteredPlaceholder
from crystal.types.commands import PlaceholderContext
from crystal.types.tools import Catalog
from crystal.workspace.fence import printable

PRODUCT_NAME = "Crystal"


def host_values(state: SessionState) -> dict[str, str]:
    """Return the values that every template may use, by token; what the host does not have yet is empty.

    Day and time are local, of now: a template with ``{{time}}`` differs whenever it is bound, one with ``{{date}}``
    from day to day, and providers keep no cached prefix of a prompt that differs.
    """
    now = time.localtime(state.surroundings.now())
    machine = os.uname()
    values = {
        # A folder's name may hold line breaks; it must not write lines of the prompt.
        "workspace": printable(str(state.workspace)),
        "is_git_repo": "yes" if _is_in_git(state.workspace) else "no",
        "platform": sys.platform,
        "os": machine.sysname,
        "architecture": machine.machine,
        "date": time.strftime("%Y-%m-%d", now),
        "time": time.strftime("%H:%M", now),
        "provider": state.model.provider,
        "model": state.model.name,
        "model_line": f"{state.model.provider}/{state.model.name}",
        "mode": _mode(state),
        "product_name": PRODUCT_NAME,
        "session_id": state.session_id,
        "approval": state.approval.value,
        "skills": "",
        "instructions": "",
        "instructions_section": "",
    }
    return {**values, "env": bind(ENVIRONMENT, values).text}


def plugin_values(state: SessionState) -> dict[str, Callable[[], object]]:
    """Return what resolves the placeholders of the plugins, by token."""
    context = PlaceholderContext(
        mode=_mode(state),
        workspace=str(state.workspace),
        session_id=state.session_id,
        approval=state.approval.value,
        provider=state.model.provider,
        model=state.model.name,
        environment=state.environment,
        models=state.models,
    )

    def resolver(registered: RegisteredPlaceholder) -> Callable[[], object]:
        return lambda: registered.placeholder.resolve(context)

    return {name: resolver(registered) for name, registered in state.host.placeholders.items()}


def _mode(state: SessionState) -> str:
    return "plan" if state.mode is Catalog.PLAN else "work"


def _is_in_git(workspace: Path) -> bool:
    """Found by looking, not by asking git, which reads configuration that may name programs to run."""
    return any(os.path.lexists(folder / ".git") for folder in (workspace, *workspace.parents))
