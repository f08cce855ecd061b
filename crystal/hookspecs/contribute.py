"""Contributions: what a plugin brings. They run once at load, before anything else of the plugin, in this order:

1. :func:`contribute_tools` 2. :func:`contribute_protocols` 3. :func:`contribute_classifiers`
4. :func:`contribute_commands` 5. :func:`contribute_placeholders` 6. :func:`contribute_status_fields`

Every entry is admitted or omitted on its own; an omitted entry is a note that names the plugin, the entry and the rule.
"""

from __future__ import annotations

from collections.abc import Sequence

from crystal.hookspecs._kinds import collect
from crystal.types.commands import Command, Placeholder, StatusField
from crystal.types.model import ClientFactory
from crystal.types.tools import Classifier, ToolContribution


@collect(
    "Names match ^[A-Za-z][A-Za-z0-9_-]*$ (1-64 characters) and are neither reserved nor taken; the definition has the "
    "same name; at least one catalog; the schema is an object schema."
)
def contribute_tools() -> Sequence[ToolContribution] | None:
    """Called once when the plugin loads, to bring tools the model can call.

    May return any number of contributions. May not replace a built-in tool: those names stay reserved even when the
    built-in is disabled. A later tool of a taken name is omitted with a note. ``None`` contributes nothing.
    """


@collect("A factory that claims a protocol this host ships, or one that is taken, is omitted.")
def contribute_protocols() -> Sequence[ClientFactory] | None:
    """Called once when the plugin loads, to bring factories for wire protocols.

    A protocol is a token of 1 to 64 characters: a letter, then letters, digits, ``_`` or ``-``; an operator names it as
    ``protocol`` in ``providers.json``. May not claim ``deepseek``, ``openai``, ``responses``, ``anthropic``,
    ``gemini``, ``ollama``, ``local`` or ``scripted``. A factory gets the operator's key and must not log it.
    """


@collect("Asked only about tools that the built-in classifiers do not know.")
def contribute_classifiers() -> Sequence[Classifier] | None:
    """Called once when the plugin loads, to bring classifiers that give tools their risk and authority.

    They are asked in load order and the first answer counts. May not reclassify a built-in tool. A classifier that
    raises or returns something else makes the call require the operator; the next one is asked for the class.
    """


@collect("Built-in verbs and their aliases win; names follow the rule of tool names.")
def contribute_commands() -> Sequence[Command] | None:
    """Called once when the plugin loads, to bring ``/name`` verbs for the interactive session.

    A command's text becomes notes. It may use the operations of its context; answering an approval is not among them.
    """


@collect("Names are a letter, then letters, digits or _, 1-64 characters; host names are rejected; the first one wins.")
def contribute_placeholders() -> Sequence[Placeholder] | None:
    """Called once when the plugin loads, to bring ``{{name}}`` tokens for prompt texts.

    ``resolve`` is called at every binding; its text is inserted as it is and not expanded again. A token whose
    ``resolve`` raises or returns nothing stays as it was written, with a note.
    """


@collect("Names are a letter, then letters, digits or single hyphens, at most 32 characters, stored lower-case.")
def contribute_status_fields() -> Sequence[StatusField] | None:
    """Called once when the plugin loads, to name fields that an operator may put on the custom status line.

    May not place a field: that is the operator's choice. A built-in field's name is omitted; the first one wins.
    """
