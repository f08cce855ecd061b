"""Calls of programs that are known to do no more than read, or write where their words point: data and its use.

A program or an option that does not stand here is not judged harmless. Pure; touches no file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from plugins_builtin.shell_options import (
    ANY_OPTIONS,
    FOLLOWING,
    GIT_VERBS,
    OPTIONS,
    TEXT_PROGRAMS,
    Options,
    names_of,
)
from plugins_builtin.shell_words import Word


class Reach(NamedTuple):
    """What an understood call touches.

    :param paths: the words that may name files.
    :param writes: whether it may write to them.
    :param arrivals: paths that are written when a target turns out to be a folder.
    :param compares: whether files inside a folder among them are read, through links too.
    """

    paths: tuple[Word, ...] = ()
    writes: bool = False
    arrivals: tuple[str, ...] = ()
    compares: bool = False


class Parsed(NamedTuple):
    """Arguments split by :class:`Options`."""

    operands: tuple[Word, ...]
    files: tuple[Word, ...]
    letters: frozenset[str]


ARRIVALS = 5_000
"""Most places one call may copy or move to before it is not judged harmless."""

_FIND_TESTS = names_of(
    "-name -iname -path -ipath -wholename -regex -iregex -type -maxdepth -mindepth -size -mtime -mmin -ctime "
    "-cmin -atime -amin -perm -user -group -links -printf -regextype"
)
_FIND_FLAGS = names_of(
    "-not -o -or -a -and ! ( ) , -print -print0 -prune -empty -executable -readable -writable -xdev -mount "
    "-ls -quit -depth -true -false -daystart"
)
_SED_ADDRESS = r"(?:[0-9]+|\$|/(?:[^/\\\n]|\\[^\n])*/)"
_SED_STEP = re.compile(
    rf"\s*(?:{_SED_ADDRESS}(?:,\s*(?:\+?{_SED_ADDRESS}))?)?\s*!?\s*"
    r"(?:[pdq=]|s/(?:[^/\\\n]|\\[^\n])*/(?:[^/\\\n]|\\[^\n])*/[gpIi0-9]*)\s*(?:;|\Z)"
)


def understand(words: Sequence[Word]) -> Reach | None:
    """Return what a simple command touches, or ``None`` when it is not surely harmless.

    :param words: the program and its arguments, at least one; an assignment before the program is no program.
    """
    arguments = words[1:]
    if words[0].glob >= 0 or any(word.opaque for word in words):
        return None
    patterns = tuple(word for word in arguments if word.glob >= 0)
    if any(word.text.startswith("-") for word in patterns):
        # The pattern may meet a file whose name is an option.
        return None
    reach = _reach(words[0].text, arguments)
    if reach is None:
        return None
    # Where several names take the place of a value or an expression, the program opens all but the first.
    return reach._replace(paths=(*reach.paths, *(word for word in patterns if word not in reach.paths)))


def _reach(program: str, arguments: Sequence[Word]) -> Reach | None:
    if program in TEXT_PROGRAMS:
        return Reach()
    if program in ANY_OPTIONS:
        return None if _leads_on(program, arguments) else Reach(tuple(arguments))
    if any(word.glob == 0 for word in arguments):
        return None
    judge = _BY_HAND.get(program)
    if judge is not None:
        return judge(arguments)
    options = OPTIONS.get(program)
    return None if options is None else _by_options(options, arguments)


def _leads_on(program: str, arguments: Sequence[Word]) -> bool:
    """Whether a reading program may open what no word of its names."""
    if program == "strings" and any(word.text.startswith("@") for word in arguments):
        return True
    letters, longs = FOLLOWING.get(program, ("", ()))
    for word in arguments:
        name = word.text.partition("=")[0]
        if name.startswith("--"):
            # A long option may be shortened.
            if len(name) > 2 and any(long.startswith(name) or name.startswith(long) for long in longs):
                return True
        elif name.startswith("-") and not set(letters).isdisjoint(word.text):
            return True
    return False


def split_options(options: Options, arguments: Sequence[Word]) -> Parsed | None:
    """Split arguments as ``getopt`` does, or return ``None`` at an option that is not understood."""
    operands: list[Word] = []
    files: list[Word] = []
    letters: set[str] = set()
    pending = list(reversed(arguments))
    while pending:
        word = pending.pop()
        if word.text == "--":
            operands.extend(reversed(pending))
            break
        if word.text.startswith("--"):
            name, equals, value = word.text[2:].partition("=")
            if name not in options.longs:
                return None
            if equals:
                files.append(Word(value))
            continue
        if not word.text.startswith("-") or word.text == "-":
            operands.append(word)
            continue
        cluster = word.text[1:]
        for index, letter in enumerate(cluster):
            letters.add(letter)
            if letter in options.flags:
                continue
            if letter not in options.valued + options.files:
                return None
            value_word = Word(cluster[index + 1 :]) if cluster[index + 1 :] else (pending.pop() if pending else None)
            if value_word is not None and letter in options.files:
                files.append(value_word)
            break
    return Parsed(tuple(operands), tuple(files), frozenset(letters))


def _by_options(options: Options, arguments: Sequence[Word]) -> Reach | None:
    parsed = split_options(options, arguments)
    if parsed is None:
        return None
    operands = parsed.operands[1:] if options.pattern else parsed.operands
    arrivals = _arrivals(parsed) if options.moves else ()
    if len(arrivals) > ARRIVALS:
        return None
    return Reach((*operands, *parsed.files), options.writes, arrivals, options.compares)


def _arrivals(parsed: Parsed) -> tuple[str, ...]:
    """Return where the operands come to lie in every folder that may be the target."""
    names = dict.fromkeys(word.text.rstrip("/").rpartition("/")[2] for word in parsed.operands)
    targets = dict.fromkeys(word.text.rstrip("/") for word in (*parsed.operands[-1:], *parsed.files) if word.text)
    every = (f"{target}/{name}" for target in targets for name in names if name)
    return tuple(islice(every, ARRIVALS + 1))


def _find(arguments: Sequence[Word]) -> Reach | None:
    paths: list[Word] = []
    position = 0
    while position < len(arguments):
        word = arguments[position]
        if word.text in _FIND_TESTS:
            position += 1
        elif word.text == "-newer":
            position += 1
            paths.extend(arguments[position : position + 1])
        elif word.text.startswith(("-", "(", ")", "!", ",")):
            if word.text not in _FIND_FLAGS and word.text != "-P":
                return None
        else:
            paths.append(word)
        position += 1
    return Reach(tuple(paths))


def _sed(arguments: Sequence[Word]) -> Reach | None:
    operands: list[Word] = []
    scripts: list[Word] = []
    pending = list(reversed(arguments))
    while pending:
        word = pending.pop()
        if word.text == "-e" and pending:
            scripts.append(pending.pop())
        elif re.fullmatch(r"-[nErsu]+|--quiet|--silent|--regexp-extended|--posix", word.text):
            continue
        elif word.text.startswith("-") and word.text != "-":
            return None
        else:
            operands.append(word)
    if not scripts:
        scripts, operands = operands[:1], operands[1:]
    if not scripts or not all(script.glob < 0 and _harmless_sed(script.text) for script in scripts):
        return None
    return Reach(tuple(operands))


def _harmless_sed(script: str) -> bool:
    """Whether every step of the script prints, deletes, quits or substitutes without a file or a program."""
    position = 0
    while position < len(script):
        step = _SED_STEP.match(script, position)
        if step is None or step.end() == position:
            return False
        position = step.end()
    return bool(script)


def _git(arguments: Sequence[Word]) -> Reach | None:
    words = list(arguments)
    while words and words[0].text == "--no-pager":
        words.pop(0)
    if not words:
        return None
    verb, rest = words[0].text, words[1:]
    texts = [word.text for word in rest]
    if verb == "branch":
        known = {"-a", "-r", "-v", "-vv", "--list", "--all", "--remotes", "--show-current"}
        return Reach() if all(text in known for text in texts) else None
    if verb == "remote":
        return Reach() if texts in ([], ["-v"]) else None
    if verb == "stash":
        return Reach() if texts == ["list"] else None
    options = GIT_VERBS.get(verb)
    return None if options is None else _by_options(options, rest)


def _python(arguments: Sequence[Word]) -> Reach | None:
    if not arguments:
        return None
    first = arguments[0].text
    if first in ("-V", "--version"):
        return Reach()
    if first == "-m":
        module = arguments[1].text if len(arguments) > 1 else ""
        return _by_options(OPTIONS["pytest"], arguments[2:]) if module == "pytest" else None
    file_name = first.rpartition("/")[2]
    surely_own = first.endswith(".py") and not first.startswith(("-", "~", "/")) and ".." not in first
    installs = "site-packages" in first or file_name in ("setup.py", "get-pip.py") or file_name.startswith("crystal")
    if not surely_own or installs or arguments[0].glob >= 0:
        return None
    return Reach(tuple(arguments), writes=True)


def _date(arguments: Sequence[Word]) -> Reach | None:
    parsed = split_options(OPTIONS["date"], arguments)
    # An operand without the plus sign sets the clock, and a pattern may become one.
    if parsed is None or not all(word.text.startswith("+") for word in parsed.operands):
        return None
    if any(word.glob >= 0 for word in arguments):
        return None
    return Reach(parsed.files)


def _printf(arguments: Sequence[Word]) -> Reach | None:
    # ``-v`` assigns to a variable, and the index of an array element may hold a substitution.
    if not arguments or arguments[0].text.startswith("-"):
        return None
    return Reach()


def _test(arguments: Sequence[Word]) -> Reach | None:
    # ``-v`` and ``-R`` look a variable up, and the index of an array element may hold a substitution.
    return None if any(word.text in ("-v", "-R") for word in arguments) else Reach(tuple(arguments))


def _command(arguments: Sequence[Word]) -> Reach | None:
    return Reach() if arguments and arguments[0].text in ("-v", "-V") else None


_BY_HAND: Mapping[str, Callable[[Sequence[Word]], Reach | None]] = {
    "find": _find,
    "sed": _sed,
    "git": _git,
    "python": _python,
    "python3": _python,
    "date": _date,
    "printf": _printf,
    "test": _test,
    "[": _test,
    "command": _command,
}
