"""Risk and authority of built-in tool calls, from their arguments and resolved paths. Approves nothing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crystal import hookimpl
from crystal.types.approval import Authority, Classification, Risk
from crystal.types.paths import PathZone, ResolvedPath
from crystal.types.tools import Classifier, ClassifierFacts, ToolCall
from plugins_builtin.one_line import one_line

if TYPE_CHECKING:
    from crystal.workspace.fence import Fence

name = "classifiers"

READS = frozenset({"read", "list", "glob", "grep", "tree", "search", "skill"})
STATE = frozenset({"todoread", "todowrite", "question"})
"""They touch nothing but the session's own state."""

WRITES = frozenset({"edit", "write"})

_SAID = ("pattern", "query", "name")
"""Arguments worth a place in the summary of a call, besides its paths."""


class BuiltinClassifier:
    """Knows the tools that Crystal ships and no others."""

    def classify(self, call: ToolCall, facts: ClassifierFacts) -> Classification | None:
        """Return the class of a built-in call, ``None`` for every other tool."""
        if call.name == "bash":
            return _classify_bash(call, facts)
        summary = summarize(call, facts.paths)
        if call.name in STATE:
            return Classification(risk=Risk.READ, summary=summary)
        if call.name in READS:
            return Classification(
                risk=path_risk(Risk.READ, facts.paths), authority=path_authority(facts.paths), summary=summary
            )
        if call.name in WRITES:
            return Classification(
                risk=path_risk(Risk.WRITE, facts.paths),
                authority=path_authority(facts.paths),
                summary=summary,
            )
        return None


def path_risk(risk: Risk, paths: Sequence[ResolvedPath]) -> Risk:
    """Return the risk of a call that reads or writes ``paths``.

    :param risk: what the tool does: ``READ`` or ``WRITE``. A write whose place is not known is Privileged.
    """
    zones = {path.zone for path in paths}
    if zones & {PathZone.CREDENTIAL, PathZone.HOST}:
        return Risk.FORBIDDEN
    if risk is Risk.WRITE and (not zones or PathZone.GUARDED in zones):
        return Risk.PRIVILEGED
    return risk


def path_authority(paths: Sequence[ResolvedPath]) -> Authority:
    """Return what ``paths`` reach; a path outside does not reach the workspace."""
    inside = [path.inside and path.zone is not PathZone.OUTSIDE for path in paths]
    authority = Authority(0)
    if all(inside) or any(inside):
        authority |= Authority.WORKSPACE
    if not all(inside):
        authority |= Authority.OUTSIDE_WORKSPACE
    return authority


def summarize(call: ToolCall, paths: Sequence[ResolvedPath]) -> str:
    """Return one line such as ``edit src/a.py``."""
    said = [value for key in _SAID if isinstance(value := call.arguments.get(key), str)]
    return one_line(" ".join([call.name, *said, *(path.text for path in paths)]))


def _classify_bash(call: ToolCall, facts: ClassifierFacts) -> Classification:
    from plugins_builtin.shell_risk import classify_command

    command = call.arguments.get("command")
    if not isinstance(command, str):
        return Classification(risk=Risk.PRIVILEGED, summary="bash")
    return classify_command(command, _fence(facts))


def _fence(facts: ClassifierFacts) -> Fence:
    """Return the fence of one command; it asks for the user's home once, not at every path."""
    from crystal.workspace.fence import Fence

    user_home = Path(os.path.realpath(os.path.expanduser("~")))
    return Fence(workspace=facts.workspace, home=facts.home, user_home=user_home)


@hookimpl
def contribute_classifiers() -> list[Classifier]:
    """Bring the classifier of the built-in tools."""
    return [BuiltinClassifier()]
