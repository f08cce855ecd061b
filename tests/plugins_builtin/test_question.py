"""Questions to the operator: asked in order, answered by header, and a dismissal is told."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from crystal.types._readonly import read_only
from crystal.types.capabilities import Question, QuestionOption
from crystal.types.tools import Catalog, ToolCall, ToolOutput
from plugins_builtin import question
from tests.plugins_builtin.test_shell import make_context


class Operator:
    """Answers what it is asked and keeps the questions."""

    def __init__(self, answers: Sequence[tuple[str, ...]] | None) -> None:
        self.answers = answers
        self.asked: list[Question] = []

    async def __call__(self, questions: Sequence[Question]) -> Sequence[tuple[str, ...]] | None:
        self.asked.extend(questions)
        return self.answers


def ask(operator: Operator, *questions: dict[str, Any]) -> ToolOutput:
    context = dataclasses.replace(make_context(Path("/")), ask=operator)
    call = ToolCall(id="1", name="question", arguments=read_only({"questions": list(questions)}))
    return asyncio.run(question.QuestionTool().invoke(call, context))


COLOUR = {
    "header": "Colour",
    "text": "Which one?",
    "options": [{"label": "red", "description": "warm"}, {"label": "blue"}],
    "multiple": True,
    "custom": False,
}
NAME = {"header": "Name", "text": "What is it called?"}


def test_questions_are_asked_in_order_and_answered_by_header() -> None:
    operator = Operator([("red", "blue"), ("Zoë",)])
    output = ask(operator, COLOUR, NAME)
    assert output == ToolOutput(text='{"Colour": ["red", "blue"], "Name": ["Zoë"]}')
    assert list(json.loads(output.text)) == ["Colour", "Name"]
    assert operator.asked == [
        Question(
            header="Colour",
            text="Which one?",
            options=(QuestionOption(label="red", description="warm"), QuestionOption(label="blue")),
            multiple=True,
            custom=False,
        ),
        Question(header="Name", text="What is it called?", options=(), multiple=False, custom=True),
    ]


def test_an_answer_without_a_choice_is_an_empty_array() -> None:
    assert ask(Operator([()]), COLOUR) == ToolOutput(text='{"Colour": []}')


def test_a_dismissed_question_is_a_failed_result() -> None:
    assert ask(Operator(None), NAME) == ToolOutput(text="The operator dismissed the question.", failed=True)


@pytest.mark.parametrize(
    ("questions", "said"),
    [
        ([], "ask at least one"),
        ([{"header": " ", "text": "x"}], "question 1 needs a header and a text"),
        ([NAME, {"header": "x", "text": "\n"}], "question 2 needs a header and a text"),
        ([NAME, NAME], "the header 'Name' comes twice"),
        ([{**COLOUR, "options": [{"label": "a"}, {"label": " a"}]}], "labels that are not blank and differ"),
        ([{**COLOUR, "options": [{"label": ""}]}], "labels that are not blank and differ"),
        ([{**COLOUR, "options": []}], "has no options"),
    ],
)
def test_questions_that_nobody_could_answer_are_not_asked(questions: list[dict[str, Any]], said: str) -> None:
    operator = Operator([])
    output = ask(operator, *questions)
    assert output.failed
    assert said in output.text
    assert operator.asked == []


def test_it_is_in_both_catalogs_and_never_beside_other_calls() -> None:
    (contribution,) = question.contribute_tools()
    definition = contribution.tool.definition
    assert contribution.name == definition.name == "question"
    assert contribution.catalogs == Catalog.BOTH
    assert contribution.capabilities == {"ask"}
    assert not contribution.parallel
    assert len(definition.description) + len(json.dumps(definition.schema)) < 800
