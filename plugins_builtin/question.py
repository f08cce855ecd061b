"""``question``: puts questions to the operator and answers with the labels chosen. Shows nothing itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from crystal import hookimpl
from crystal.types.capabilities import BuiltinContext, Question, QuestionOption
from crystal.types.tools import Catalog, ToolCall, ToolContext, ToolContribution, ToolDefinition, ToolOutput

name = "question"

DISMISSED = "The operator dismissed the question."

DEFINITION = ToolDefinition(
    name="question",
    description="Ask the operator. Answers an object of header to the labels chosen.",
    schema={
        "type": "object",
        "properties": {
            "questions": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "properties": {
                        "header": {"type": "string", "description": "Short and unique"},
                        "text": {"type": "string"},
                        "options": {
                            "type": "array",
                            "items": {
                                "type": "object",
                                "properties": {
                                    "label": {"type": "string"},
                                    "description": {"type": "string"},
                                },
                                "required": ["label"],
                                "additionalProperties": False,
                            },
                        },
                        "multiple": {"type": "boolean"},
                        "custom": {"type": "boolean", "description": "Accept own text (default true)"},
                    },
                    "required": ["header", "text"],
                    "additionalProperties": False,
                },
            },
        },
        "required": ["questions"],
        "additionalProperties": False,
    },
)


class QuestionsRefused(ValueError):
    """Raised for questions that cannot be asked; the message names the question and the mend."""


class QuestionTool:
    """Asks and waits for the operator."""

    definition = DEFINITION

    async def invoke(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Answer a JSON object of header to array of labels; a dismissal is a failed result."""
        ask = cast(BuiltinContext, context).ask
        if ask is None:
            raise TypeError("the host gave the question tool no way to ask; its contribution declares 'ask'")
        try:
            questions = parse_questions(call.arguments["questions"])
        except QuestionsRefused as error:
            return ToolOutput(text=str(error), failed=True)
        answers = await ask(questions)
        if answers is None:
            return ToolOutput(text=DISMISSED, failed=True)
        return ToolOutput(text=render_answers(questions, answers))


def parse_questions(items: Sequence[Mapping[str, Any]]) -> tuple[Question, ...]:
    """Return the questions as values, in order.

    :raises QuestionsRefused: no question, a blank or repeated header, a blank text, a blank or repeated label,
        or a question that nobody could answer.
    """
    if not items:
        raise QuestionsRefused("question: there is no question; ask at least one.")
    questions: dict[str, Question] = {}
    for number, item in enumerate(items, 1):
        question = Question(
            header=str(item["header"]).strip(),
            text=str(item["text"]).strip(),
            options=tuple(
                QuestionOption(label=str(option["label"]).strip(), description=str(option.get("description", "")))
                for option in item.get("options", ())
            ),
            multiple=bool(item.get("multiple", False)),
            custom=bool(item.get("custom", True)),
        )
        _check_question(question, number)
        if question.header in questions:
            raise QuestionsRefused(f"question: the header {question.header!r} comes twice; make each its own.")
        questions[question.header] = question
    return tuple(questions.values())


def _check_question(question: Question, number: int) -> None:
    labels = [option.label for option in question.options]
    if not question.header or not question.text:
        raise QuestionsRefused(f"question: question {number} needs a header and a text that are not blank.")
    if not all(labels) or len(set(labels)) != len(labels):
        raise QuestionsRefused(
            f"question: the options of {question.header!r} need labels that are not blank and differ."
        )
    if not labels and not question.custom:
        raise QuestionsRefused(f"question: {question.header!r} has no options; give some or leave custom on.")


def render_answers(questions: Sequence[Question], answers: Sequence[tuple[str, ...]]) -> str:
    """Return the answers as a JSON object of header to array of labels, in the order of the questions."""
    chosen = {question.header: list(labels) for question, labels in zip(questions, answers, strict=True)}
    return json.dumps(chosen, ensure_ascii=False)


@hookimpl
def contribute_tools() -> list[ToolContribution]:
    """Bring ``question``."""
    return [
        ToolContribution(
            name="question",
            tool=QuestionTool(),
            catalogs=Catalog.BOTH,
            capabilities=frozenset({"ask"}),
            parallel=False,
        )
    ]
