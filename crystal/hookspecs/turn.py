"""Turns: from the operator's message to the last answer. The order inside a turn is:

1. :func:`on_user_message` 2. :func:`on_turn_started` … the model and tool hooks of each round …
3. :func:`on_turn_finished`
"""

from __future__ import annotations

import dataclasses

from crystal.hookspecs._kinds import ContractRefused, fold, notify
from crystal.types.session import TurnFacts, UserMessage


def accept_user_message(previous: UserMessage, replacement: object, facts: object) -> UserMessage:
    """Return the message with the new text.

    :raises ContractRefused: when the replacement is not a text, or is blank.
    """
    if not isinstance(replacement, str):
        raise ContractRefused(f"is {type(replacement).__name__}, not a text")
    if not replacement.strip():
        raise ContractRefused("is blank, and a stored message may not be")
    return dataclasses.replace(previous, text=replacement)


@fold("A text that is not blank.", folds="message", accept=accept_user_message)
def on_user_message(message: UserMessage) -> str | None:
    """Called before a message of the operator is stored; what is returned is stored in its place.

    May replace the text. May not leave it blank, nor change the images. Not called for side questions.

    :param message: ``text`` and ``images`` as they stand after earlier implementations.
    :return: the new text, or ``None`` to keep it.
    """


@notify("May read the stored text and mode; may not change the transcript.")
def on_turn_started(turn: TurnFacts) -> None:
    """Called when the message is stored and before the first model call; ``stop_reason`` is ``None``."""


@notify("May read the stored text, mode and stop reason; may not change the transcript.")
def on_turn_finished(turn: TurnFacts) -> None:
    """Called when the turn ended, done or not, with the reason in ``stop_reason``.

    It is left out when the session cannot be stored any more or the process is being ended.
    """
