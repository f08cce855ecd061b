"""Compose the system prompt of a mode from the host's text and the facts of the session. Pure."""

from __future__ import annotations

import os
from pathlib import Path

from crystal.engine.prompts.texts import PLAN, WORK
from crystal.types.session import PromptFacts, PromptMode
from crystal.types.tools import Catalog


def compose_system(mode: Catalog, workspace: Path, model_line: str, date: str) -> PromptFacts:
    """Return the host's system prompt; the hooks add to it.

    :param model_line: provider and model, for the model to know itself by.
    :param date: the day, ISO form; the time of day would change the prefix from request to request.
    """
    text = PLAN if mode is Catalog.PLAN else WORK
    has_git = (workspace / ".git").exists()
    machine = os.uname()
    facts = (
        f"Workspace: {workspace}{' (git repository)' if has_git else ''}\n"
        f"Platform: {machine.sysname} {machine.machine}\nDate: {date}\nModel: {model_line}"
    )
    prompt_mode = PromptMode.PLAN if mode is Catalog.PLAN else PromptMode.WORK
    return PromptFacts(mode=prompt_mode, text=f"{text}\n\n{facts}")
