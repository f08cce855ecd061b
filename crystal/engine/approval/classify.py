"""What a call is held to be before any hook: the classifiers, a plugin's own class, and the rules that only raise."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from crystal.host.admission import RegisteredClassifier, RegisteredTool
from crystal.types._frozen import Frozen
from crystal.types.approval import Authority, Classification, Risk
from crystal.types.paths import PathZone, ResolvedPath
from crystal.types.tools import ClassifierFacts, ToolCall

UNKNOWN = Classification(risk=Risk.PRIVILEGED, summary="no classifier knows this tool")


class Classified(Frozen):
    """A classification, and the plugins whose classifier failed; each of these requires the operator."""

    classification: Classification
    failed: tuple[str, ...] = ()


def classify(
    call: ToolCall,
    tool: RegisteredTool,
    facts: ClassifierFacts,
    classifiers: Iterable[RegisteredClassifier],
) -> Classified:
    """Return the host's classification of ``call``.

    Built-in classifiers are asked first, then the class that the tool's own plugin declared, then the classifiers of
    plugins, which are never asked about a built-in tool. A classifier that raises or answers junk counts as failed.
    """
    failed: list[str] = []
    found: Classification | None = None
    ordered = sorted(classifiers, key=lambda registered: not registered.plugin.startswith("builtin:"))
    for registered in ordered:
        is_builtin = registered.plugin.startswith("builtin:")
        if not is_builtin and (tool.is_builtin or tool.contribution.risk is not None):
            break
        try:
            answer = registered.classifier.classify(call, facts)
        except KeyboardInterrupt:
            raise
        except BaseException:
            # A plugin may raise anything, SystemExit included; a guard that fails must not end the turn.
            failed.append(registered.plugin)
            continue
        if answer is None:
            continue
        if not _is_well_formed(answer):
            failed.append(registered.plugin)
            continue
        found = answer
        break
    if found is None and tool.contribution.risk is not None:
        found = Classification(risk=tool.contribution.risk, authority=tool.contribution.authority)
    raised = raise_for_paths(found or UNKNOWN, facts.paths)
    return Classified(
        classification=dataclasses.replace(raised, summary=raised.summary or call.name), failed=tuple(failed)
    )


def raise_for_paths(classification: Classification, paths: Iterable[ResolvedPath]) -> Classification:
    """Raise a classification by where the declared path arguments lie; never lowers."""
    risk, authority = classification.risk, classification.authority
    for path in paths:
        if path.zone in (PathZone.CREDENTIAL, PathZone.HOST):
            risk = Risk.FORBIDDEN
        if path.zone is PathZone.GUARDED and risk is not Risk.READ:
            risk = max(risk, Risk.PRIVILEGED)
        if not path.inside:
            authority |= Authority.OUTSIDE_WORKSPACE
    return dataclasses.replace(classification, risk=risk, authority=authority)


def apply_pre_classifier(call: ToolCall, tool: RegisteredTool, classification: Classification) -> Classified:
    """Let the tool's own pre-classifier raise the class of one call; a failing one requires the operator."""
    pre_classifier = tool.contribution.pre_classifier
    if pre_classifier is None:
        return Classified(classification=classification)
    try:
        answer = pre_classifier(call, classification)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return Classified(classification=classification, failed=(tool.plugin,))
    if answer is None:
        return Classified(classification=classification)
    if not _is_well_formed(answer):
        return Classified(classification=classification, failed=(tool.plugin,))
    return Classified(
        classification=Classification(
            risk=max(classification.risk, answer.risk),
            authority=classification.authority | answer.authority,
            summary=answer.summary or classification.summary,
            require_prompt=classification.require_prompt or answer.require_prompt,
        )
    )


def _is_well_formed(answer: object) -> bool:
    return (
        isinstance(answer, Classification)
        and isinstance(answer.risk, Risk)
        and isinstance(answer.authority, Authority)
        and bool(answer.authority)
        and isinstance(answer.summary, str)
        and type(answer.require_prompt) is bool
    )
