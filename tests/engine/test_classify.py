"""What a call is held to be: who is asked in which order, what counts as failed, and what can only raise."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.engine.approval.classify import apply_pre_classifier, classify, raise_for_paths
from crystal.host.admission import RegisteredClassifier, RegisteredTool
from crystal.types._readonly import read_only
from crystal.types.approval import Authority, Classification, Risk
from crystal.types.paths import PathZone, ResolvedPath
from crystal.types.tools import (
    ClassifierFacts,
    ToolCall,
    ToolContext,
    ToolContribution,
    ToolDefinition,
    ToolOutput,
)

CALL = ToolCall(id="call_1", name="sample", arguments=read_only({"path": "a"}))
READ = Classification(risk=Risk.READ, summary="looks")
WRITE = Classification(risk=Risk.WRITE, summary="changes")
PLUGIN = "plugin:test/Acme"


class Sample:
    """A tool of the name ``sample``."""

    definition = ToolDefinition(name="sample", description="A sample.", schema={"type": "object"})

    async def invoke(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        return ToolOutput(text="done")


class Says:
    """A classifier that answers by a function and remembers that it was asked."""

    def __init__(self, answer: Callable[[], Any]) -> None:
        self.answer = answer
        self.asked = 0

    def classify(self, call: ToolCall, facts: ClassifierFacts) -> Classification | None:
        self.asked += 1
        answer: Classification | None = self.answer()
        return answer


def raises(error: BaseException) -> Callable[[], Any]:
    def answer() -> Any:
        raise error

    return answer


def tool(plugin: str = PLUGIN, **contributed: Any) -> RegisteredTool:
    contribution = ToolContribution(name="sample", tool=Sample(), **contributed)
    return RegisteredTool(plugin=plugin, contribution=contribution, definition=Sample.definition)


def facts(*paths: ResolvedPath, plugin: str = PLUGIN) -> ClassifierFacts:
    return ClassifierFacts(workspace=Path("/ws"), home=Path("/home"), paths=paths, plugin=plugin)


def by(plugin: str, answer: Any) -> RegisteredClassifier:
    says = answer if isinstance(answer, Says) else Says(lambda: answer)
    return RegisteredClassifier(plugin=plugin, classifier=says)


def path(zone: PathZone, inside: bool) -> ResolvedPath:
    return ResolvedPath(text="a", real="/ws/a", zone=zone, inside=inside)


def test_a_tool_that_nobody_knows_is_privileged_in_the_workspace() -> None:
    found = classify(CALL, tool(), facts(), [by("builtin:classifiers", None), by(PLUGIN, None)])
    assert (found.classification.risk, found.classification.authority) == (Risk.PRIVILEGED, Authority.WORKSPACE)
    assert found.failed == ()
    assert found.classification.summary


def test_built_in_classifiers_are_asked_first_whatever_the_order() -> None:
    plugins = Says(lambda: READ)
    found = classify(CALL, tool(), facts(), [by(PLUGIN, plugins), by("builtin:classifiers", WRITE)])
    assert found.classification == WRITE
    assert plugins.asked == 0


def test_the_first_answer_of_the_plugins_counts() -> None:
    later = Says(lambda: READ)
    found = classify(
        CALL, tool(), facts(), [by("plugin:test/A", None), by("plugin:test/B", WRITE), by("plugin:test/C", later)]
    )
    assert found.classification == WRITE
    assert later.asked == 0


def test_a_built_in_classifier_outranks_the_declared_class() -> None:
    declared = tool(risk=Risk.READ)
    assert classify(CALL, declared, facts(), [by("builtin:classifiers", WRITE)]).classification == WRITE


def test_the_declared_class_of_the_tools_own_plugin_outranks_other_plugins() -> None:
    others = Says(lambda: READ)
    declared = tool(risk=Risk.WRITE, authority=Authority.NETWORK)
    found = classify(CALL, declared, facts(), [by("plugin:test/B", others)]).classification
    assert (found.risk, found.authority, found.summary) == (Risk.WRITE, Authority.NETWORK, "sample")
    assert others.asked == 0


def test_a_plugin_cannot_reclassify_a_built_in_tool() -> None:
    plugins = Says(lambda: READ)
    found = classify(CALL, tool("builtin:files"), facts(), [by(PLUGIN, plugins)])
    assert found.classification.risk is Risk.PRIVILEGED
    assert plugins.asked == 0


JUNK: list[tuple[str, Callable[[], Any]]] = [
    ("raises", raises(ValueError("no"))),
    ("exits", raises(SystemExit(3))),
    ("raises its own BaseException", raises(type("Own", (BaseException,), {})("no"))),
    ("text", lambda: "Read"),
    ("risk as a number", lambda: Classification(risk=0)),  # type: ignore[arg-type]
    ("risk as a text", lambda: Classification(risk="READ")),  # type: ignore[arg-type]
    ("no authority", lambda: Classification(risk=Risk.READ, authority=Authority(0))),
    ("authority as a text", lambda: Classification(risk=Risk.READ, authority="all")),  # type: ignore[arg-type]
    ("summary that is no text", lambda: Classification(risk=Risk.READ, summary=None)),  # type: ignore[arg-type]
]
junk = pytest.mark.parametrize("answer", [row[1] for row in JUNK], ids=[row[0] for row in JUNK])


@junk
def test_a_classifier_that_fails_is_named_and_the_call_is_privileged(answer: Callable[[], Any]) -> None:
    found = classify(CALL, tool(), facts(), [by(PLUGIN, Says(answer))])
    assert found.failed == (PLUGIN,)
    assert found.classification.risk is Risk.PRIVILEGED


@junk
def test_a_failed_classifier_stays_named_when_a_later_one_answers(answer: Callable[[], Any]) -> None:
    found = classify(CALL, tool(), facts(), [by("plugin:test/A", Says(answer)), by("plugin:test/B", READ)])
    assert found.failed == ("plugin:test/A",)


@pytest.mark.parametrize("zone", list(PathZone))
@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("risk", list(Risk))
def test_a_path_raises_by_where_it_lies(zone: PathZone, inside: bool, risk: Risk) -> None:
    before = Classification(risk=risk)
    after = raise_for_paths(before, [path(zone, inside)])
    if zone in (PathZone.CREDENTIAL, PathZone.HOST):
        assert after.risk is Risk.FORBIDDEN
    elif zone is PathZone.GUARDED and risk is Risk.WRITE:
        assert after.risk is Risk.PRIVILEGED
    else:
        assert after.risk is risk
    assert (Authority.OUTSIDE_WORKSPACE in after.authority) is not inside


authorities = st.sets(st.sampled_from(list(Authority)), min_size=1).map(
    lambda members: functools.reduce(operator.or_, members)
)
classifications = st.builds(
    Classification, risk=st.sampled_from(Risk), authority=authorities, require_prompt=st.booleans()
)
paths = st.lists(st.builds(path, st.sampled_from(PathZone), st.booleans()), max_size=4)


@given(classifications, paths)
@settings(max_examples=100, deadline=None)
def test_paths_only_raise(before: Classification, resolved: list[ResolvedPath]) -> None:
    after = raise_for_paths(before, resolved)
    assert after.risk >= before.risk
    assert before.authority in after.authority
    assert after.require_prompt is before.require_prompt


@given(classifications, classifications)
@settings(max_examples=100, deadline=None)
def test_a_pre_classifier_only_raises(before: Classification, answer: Classification) -> None:
    own = tool(pre_classifier=lambda call, classification: answer)
    after = apply_pre_classifier(CALL, own, before).classification
    assert after.risk is max(before.risk, answer.risk)
    assert after.authority == before.authority | answer.authority
    assert after.require_prompt is (before.require_prompt or answer.require_prompt)


def test_without_a_word_of_the_pre_classifier_the_class_stands() -> None:
    for own in (tool(), tool(pre_classifier=lambda call, classification: None)):
        assert apply_pre_classifier(CALL, own, WRITE).classification == WRITE


def test_the_summary_of_a_pre_classifier_replaces_the_other_unless_empty() -> None:
    def says(summary: str) -> Classification:
        answer = Classification(risk=Risk.READ, summary=summary)
        own = tool(pre_classifier=lambda call, classification: answer)
        return apply_pre_classifier(CALL, own, WRITE).classification

    assert says("writes to the index").summary == "writes to the index"
    assert says("").summary == "changes"


@junk
def test_a_pre_classifier_that_fails_is_named_and_changes_nothing(answer: Callable[[], Any]) -> None:
    own = tool(pre_classifier=lambda call, classification: answer())
    found = apply_pre_classifier(CALL, own, WRITE)
    assert (found.classification, found.failed) == (WRITE, (PLUGIN,))
