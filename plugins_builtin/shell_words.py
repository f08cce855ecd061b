"""Splits a bash command into simple commands and words, strictly: it says what it does not understand.

Pure. It knows quotes, pipes, lists, comments, plain redirections and simple variables; at everything else
(substitutions, subshells, braces, backslashes, heredocs, control characters) it stops and names the reason. What
it returns up to there is complete and in order, so that a judge may still find the worst in it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_CONNECTORS = ("&&", "||", "|&", ";", "&", "|", "\n")
_REDIRECTORS = ("&>>", "&>", ">>", ">|", ">&", "<>", "<&", ">", "<")
_REFUSED = {
    "<<": "a heredoc",
    "<(": "a process substitution",
    ">(": "a process substitution",
    ";;": "a case",
    ";&": "a case",
    "(": "a parenthesis",
    ")": "a parenthesis",
}
_OPERATORS = sorted((*_CONNECTORS, *_REDIRECTORS, *_REFUSED), key=len, reverse=True)
_WORD_ENDS = frozenset(" \t\n|&;<>()")
_NAME = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\}|([0-9?#@*!$-]))")
_FOLDERS = {"HOME": "~", "PWD": "."}


class Word(NamedTuple):
    """One word after quote removal.

    :param text: the word; where it is opaque, what it looks like without the values (``$HOME`` and ``$PWD`` at
        the start stand as ``~`` and ``.``).
    :param opaque: whether a part of it is known only when the command runs.
    :param glob: where in ``text`` the first unquoted pattern character stands, ``-1`` for none.
    """

    text: str
    opaque: bool = False
    glob: int = -1


class Redirection(NamedTuple):
    """One redirection with a target; duplications such as ``2>&1`` have a number or ``-`` for one."""

    operator: str
    target: Word


class SimpleCommand(NamedTuple):
    """A program with its arguments; assignments stand among the words."""

    words: tuple[Word, ...]
    redirections: tuple[Redirection, ...] = ()


class Pipeline(NamedTuple):
    """Commands joined by pipes.

    :param follower: the operator after it: ``&&``, ``||``, ``;``, ``&`` or empty; a newline counts as ``;``.
    """

    commands: tuple[SimpleCommand, ...]
    follower: str = ""


class ShellLine(NamedTuple):
    """A whole command line.

    :param unclear: what stopped the reading; empty when all of it was understood.
    :param rest: the text from where the reading stopped.
    """

    pipelines: tuple[Pipeline, ...]
    unclear: str = ""
    rest: str = ""


class _Unclear(Exception):
    """Raised inside the reader where it does not understand the text."""


def read_line(command: str) -> ShellLine:
    """Split ``command``; never raises."""
    reader = _Reader(command)
    unclear = ""
    try:
        reader.read()
    except _Unclear as reason:
        unclear = str(reason)
    reader.flush()
    return ShellLine(tuple(reader.pipelines), unclear, command[reader.at :] if unclear else "")


class _Reader:
    """Reads from left to right and keeps what is complete."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.pipelines: list[Pipeline] = []
        self._commands: list[SimpleCommand] = []
        self._words: list[Word] = []
        self._redirections: list[Redirection] = []
        self._redirector = ""
        self._joined = ""

    def read(self) -> None:
        """Read all of the text.

        :raises _Unclear: at the first thing that is not understood.
        """
        while self.at < len(self.text):
            character = self.text[self.at]
            if character in " \t":
                self.at += 1
            elif character == "#":
                end = self.text.find("\n", self.at)
                self._plain(self.text[self.at : end if end >= 0 else len(self.text)])
                self.at = end if end >= 0 else len(self.text)
            elif operator := self._operator():
                self._take_operator(operator)
            else:
                self._take_word(self._word())
        if self._redirector:
            raise _Unclear("a redirection without a target")
        if self._joined and not self._words and not self._redirections:
            raise _Unclear("an operator without a command after it")

    def flush(self) -> None:
        """Close the command and the pipeline that are open."""
        self._end_command()
        self._end_pipeline("")

    def _operator(self) -> str:
        return next((operator for operator in _OPERATORS if self.text.startswith(operator, self.at)), "")

    def _take_operator(self, operator: str) -> None:
        if operator in _REFUSED:
            raise _Unclear(_REFUSED[operator])
        if self._redirector:
            raise _Unclear("a redirection without a target")
        if operator in _REDIRECTORS:
            self._redirector = operator
        elif not self._words and not self._redirections:
            if operator != "\n":
                raise _Unclear("an operator without a command before it")
        elif operator in ("|", "|&"):
            self._end_command()
            self._joined = operator
        else:
            self._end_command()
            self._end_pipeline(";" if operator == "\n" else operator)
            self._joined = operator if operator in ("&&", "||") else ""
        self.at += len(operator)

    def _take_word(self, word: Word) -> None:
        if self._redirector:
            self._redirections.append(Redirection(self._redirector, word))
            self._redirector = ""
        else:
            self._words.append(word)

    def _end_command(self) -> None:
        if self._words or self._redirections:
            self._commands.append(SimpleCommand(tuple(self._words), tuple(self._redirections)))
            self._joined = ""
        self._words, self._redirections, self._redirector = [], [], ""

    def _end_pipeline(self, follower: str) -> None:
        if self._commands:
            self.pipelines.append(Pipeline(tuple(self._commands), follower))
        self._commands = []

    def _word(self) -> Word:
        start = self.at
        parts: list[str] = []
        opaque, glob, length = False, -1, 0
        while self.at < len(self.text) and self.text[self.at] not in _WORD_ENDS:
            character = self.text[self.at]
            if character == "'":
                part = self._single_quoted()
            elif character == '"':
                part, found = self._double_quoted(not parts)
                opaque = opaque or found
            elif character == "$":
                part = self._variable(not parts)
                opaque = True
            else:
                part = character
                if character in "`\\{}":
                    raise _Unclear(f"an unquoted {character}")
                self._plain(character)
                if not character.isascii():
                    # Where a locale takes a byte of it for a blank, bash splits the word there.
                    raise _Unclear("an unquoted character that is not ASCII")
                if character in "*?[" and glob < 0:
                    glob = length
                self.at += 1
            parts.append(part)
            length += len(part)
        text = "".join(parts)
        if self._is_descriptor(start, text):
            return self._after_descriptor()
        return Word(text, opaque, -1 if text == "[" else glob)

    def _is_descriptor(self, start: int, text: str) -> bool:
        """Whether the word is the number before a redirection, such as the 2 of ``2>file``."""
        raw = self.text[start : self.at]
        return raw == text and raw.isdigit() and self.text[self.at : self.at + 1] in ("<", ">")

    def _after_descriptor(self) -> Word:
        """Take the redirection that the number belongs to and return its target."""
        if self._redirector:
            raise _Unclear("a redirection without a target")
        self._take_operator(self._operator())
        while self.text[self.at : self.at + 1] in (" ", "\t"):
            self.at += 1
        if self.at >= len(self.text) or self.text[self.at] in _WORD_ENDS:
            raise _Unclear("a redirection without a target")
        return self._word()

    def _single_quoted(self) -> str:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise _Unclear("an unfinished quote")
        inner = self.text[self.at + 1 : end]
        self._plain(inner)
        self.at = end + 1
        return inner

    def _double_quoted(self, first: bool) -> tuple[str, bool]:
        """Return the text and whether a variable stands in it.

        :param first: whether nothing stands before the quote in its word.
        """
        self.at += 1
        parts: list[str] = []
        opaque = False
        while self.text[self.at : self.at + 1] != '"':
            character = self.text[self.at : self.at + 1]
            if not character:
                raise _Unclear("an unfinished quote")
            if character in "`\\":
                raise _Unclear(f"a {character} in double quotes")
            if character == "$":
                parts.append(self._variable(first and not parts))
                opaque = True
                continue
            self._plain(character)
            parts.append(character)
            self.at += 1
        self.at += 1
        return "".join(parts), opaque

    def _variable(self, first: bool) -> str:
        match = _NAME.match(self.text, self.at)
        if match is None:
            raise _Unclear("a substitution")
        self.at = match.end()
        name = match[1] or match[2] or ""
        return _FOLDERS[name] if first and name in _FOLDERS else match[0]

    def _plain(self, text: str) -> None:
        """Refuse control characters; a tab or a newline inside quotes or a comment is text."""
        if any((character < " " and character not in "\t\n") or character == "\x7f" for character in text):
            raise _Unclear("a control character")
