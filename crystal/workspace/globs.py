"""Glob patterns over relative paths: ``*``, ``?``, ``[…]``, ``**`` for any number of folders, ``{a,b}``.

Matching is linear in the path for every pattern, so a pattern from a model cannot hang it. Names that begin
with a dot match like others.
"""

from __future__ import annotations

import re

from crystal.types._frozen import Frozen

_EXPANSIONS = 256
_PATTERN_CHARACTERS = 1_000


class GlobError(ValueError):
    """A pattern that cannot be used. The message is one sentence that names it and the mend."""


class GlobPattern(Frozen):
    """A compiled pattern; make one with :func:`compile_glob`.

    :param alternatives: for each expansion of the braces its path parts; ``None`` stands for ``**``.
    """

    alternatives: tuple[tuple[re.Pattern[str] | None, ...], ...]

    def matches(self, path: str) -> bool:
        """Whether the whole of a relative path with ``/`` between its parts matches."""
        name = path.rpartition("/")[2]
        for alternative in self.alternatives:
            last = alternative[-1] if alternative else None
            # Most paths of a tree fail by their last part, and most patterns say no more than that.
            if last is not None and not last.match(name):
                continue
            if (last is not None and alternative[:-1] == (None,)) or _match(path.split("/"), alternative):
                return True
        return False

    def depth(self) -> int | None:
        """How many parts a matching path has at most, or ``None`` when there is no bound."""
        if any(None in alternative for alternative in self.alternatives):
            return None
        return max(len(alternative) for alternative in self.alternatives)


def compile_glob(pattern: str) -> GlobPattern:
    """Compile a pattern.

    :raises GlobError: when it is empty or too long, when its braces do not pair or stand for too many
        patterns, or when a part of it is ``..``.
    """
    if not pattern or len(pattern) > _PATTERN_CHARACTERS or "\0" in pattern:
        raise GlobError(f"A glob pattern has 1 to {_PATTERN_CHARACTERS} characters and no NUL; write another one.")
    alternatives = []
    for expanded in expand_braces(pattern):
        parts = [part for part in expanded.split("/") if part not in ("", ".")]
        if ".." in parts:
            raise GlobError(f"The pattern {pattern!r} leads upwards after a wildcard; name the folder in path instead.")
        if expanded.endswith("/"):
            parts.append("**")
        if parts[-1:] == ["**"]:
            # What a folder holds, not the folder itself.
            parts.append("*")
        alternatives.append(tuple(None if part == "**" else _compile_part(part) for part in parts))
    return GlobPattern(alternatives=tuple(alternatives))


def expand_braces(pattern: str) -> list[str]:
    """Return the patterns without braces that a pattern with braces stands for, in order.

    :raises GlobError: when the braces do not pair or stand for more than 256 patterns.
    """
    done: list[str] = []
    pending = [pattern]
    while pending:
        current = pending.pop()
        group = _first_group(current, pattern)
        if group is None:
            done.append(current)
        else:
            start, end, choices = group
            pending.extend(current[:start] + choice + current[end:] for choice in reversed(choices))
        if len(done) + len(pending) > _EXPANSIONS:
            raise GlobError(f"The braces of {pattern!r} stand for more than {_EXPANSIONS} patterns; write fewer.")
    return done


def literal_prefix(pattern: str) -> tuple[str, str]:
    """Split a pattern into the folder it names in full and the rest, which holds the wildcards.

    The folder is empty when the first part already holds a wildcard, and ends in ``/`` otherwise.
    """
    parts = pattern.split("/")
    count = 0
    while count < len(parts) - 1 and not set(parts[count]) & set("*?[{\\"):
        count += 1
    prefix = "".join(part + "/" for part in parts[:count])
    return prefix, "/".join(parts[count:])


def _first_group(pattern: str, whole: str) -> tuple[int, int, list[str]] | None:
    """Find the first brace group: its start, the position after it, and its choices, nested groups left as they are."""
    depth = start = piece = 0
    choices: list[str] = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == "\\":
            position += 1
        elif character == "{":
            if depth == 0:
                start, piece = position, position + 1
            depth += 1
        elif character == "," and depth == 1:
            choices.append(pattern[piece:position])
            piece = position + 1
        elif character == "}" and depth > 0:
            depth -= 1
            if depth == 0:
                return start, position + 1, [*choices, pattern[piece:position]]
        position += 1
    if depth:
        raise GlobError(f"The braces of {whole!r} do not pair; close them or write '\\{{' for a plain brace.")
    return None


def _compile_part(part: str) -> re.Pattern[str]:
    """Compile one path part; ``fnmatch`` gives each star an atomic group, so that many stars stay linear."""
    import fnmatch

    translated: list[str] = []
    position = 0
    while position < len(part):
        character = part[position]
        if character == "\\" and position + 1 < len(part):
            position += 1
            translated.append(f"[{part[position]}]" if part[position] in "*?[" else part[position])
        elif part.startswith("[^", position):
            position += 1
            translated.append("[!")
        else:
            translated.append(character)
        position += 1
    return re.compile(fnmatch.translate("".join(translated)))


def _match(parts: list[str], pattern: tuple[re.Pattern[str] | None, ...]) -> bool:
    """Match path parts greedily: a later ``**`` can take over whatever an earlier one left, so one way back
    suffices."""
    at = wanted = 0
    star = resume = -1
    while at < len(parts):
        left = wanted < len(pattern)
        expected = pattern[wanted] if left else None
        if left and expected is None:
            star, resume = wanted, at
            wanted += 1
        elif expected is not None and expected.match(parts[at]):
            at += 1
            wanted += 1
        elif star >= 0:
            resume += 1
            at, wanted = resume, star + 1
        else:
            return False
    return all(part is None for part in pattern[wanted:])
