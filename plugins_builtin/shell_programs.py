"""Calls of programs that are known to do no more than read, or write where their words point: data and its use.

A program or an option that does not stand here is not judged harmless. Pure; touches no file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from plugins_builtin.shell_words import Word


def _names(names: str) -> frozenset[str]:
    return frozenset(names.split())


class Options(NamedTuple):
    """The options of one program that are understood; any other one makes a call unsure.

    :param flags: letters without a value.
    :param valued: letters with a value that names no file.
    :param files: letters with a value that names a file.
    :param longs: long options without their dashes; a value after ``=`` is taken for a path.
    :param writes: whether operands may be written.
    :param pattern: whether the first operand is a pattern and no path.
    :param moves: whether operands are written into the last one or into a file option's folder under their own names.
    :param compares: whether files inside an operand that is a folder are read, through links too.
    """

    flags: str = ""
    valued: str = ""
    files: str = ""
    longs: frozenset[str] = frozenset()
    writes: bool = False
    pattern: bool = False
    moves: bool = False
    compares: bool = False


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


TEXT_PROGRAMS = _names(": echo true false exit sleep seq basename dirname pwd type tr")
"""Their words are text: no file is opened and no option writes or starts anything."""

ANY_OPTIONS = _names(
    "ls cat wc head tail stat du df cmp nl tac rev realpath readlink md5sum sha1sum sha256sum sha512sum cksum "
    "which paste comm od hexdump strings fold expand unexpand whoami id uname"
)
"""They only read, whatever their options are."""

ARRIVALS = 5_000
"""Most places one call may copy or move to before it is not judged harmless."""

_CHECKS = ("c", ("--check",))

FOLLOWING: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "ls": ("L", ("--dereference",)),
    "du": ("L", ("--dereference", "--files0-from")),
    "wc": ("", ("--files0-from",)),
    "md5sum": _CHECKS,
    "sha1sum": _CHECKS,
    "sha256sum": _CHECKS,
    "sha512sum": _CHECKS,
    "cksum": _CHECKS,
}
"""Letters and long options that lead from the named paths on to others: through links or through a list of names."""

_GREP = Options(
    "EFGPHLUVTZabchilnoqrsvwxyz",
    "ABCDdm",
    "",
    _names(
        "extended-regexp fixed-strings perl-regexp ignore-case invert-match word-regexp line-regexp count "
        "files-with-matches files-without-match max-count only-matching quiet silent no-messages line-number "
        "with-filename no-filename recursive include exclude exclude-dir context after-context "
        "before-context color colour text null"
    ),
    pattern=True,
)

OPTIONS: Mapping[str, Options] = {
    "grep": _GREP,
    "egrep": _GREP,
    "fgrep": _GREP,
    "rg": Options(
        "FHINPSUabcilnopqsuvwx.0",
        "ABCEMdgjmtT",
        "",
        _names(
            "fixed-strings ignore-case smart-case case-sensitive invert-match word-regexp line-regexp "
            "count count-matches files-with-matches files-without-match max-count only-matching quiet no-messages "
            "line-number no-line-number with-filename no-filename hidden no-ignore no-ignore-vcs "
            "glob iglob type type-not context after-context before-context color heading no-heading "
            "multiline pcre2 sort max-depth json stats trim no-config vimgrep column"
        ),
        pattern=True,
    ),
    "sort": Options("bdfghiMnRrVcCmsuz", "kt", "", _names("reverse unique numeric-sort version-sort check key")),
    "uniq": Options("cdDiuz", "fsw", "", _names("count repeated unique ignore-case"), writes=True),
    "diff": Options(
        "abBcdeEiNqstTuUwyZ0123456789", "C", "", _names("unified brief color ignore-all-space"), compares=True
    ),
    "file": Options("bikLhr0", "", "", _names("brief mime mime-type mime-encoding")),
    "base64": Options("dDi", "w", "", _names("decode wrap ignore-garbage")),
    "cut": Options("ns", "bcdf"),
    "date": Options("uRI", "d", "r", _names("utc date iso-8601 rfc-3339 reference")),
    "touch": Options("acmh", "dt", "r", _names("no-create date reference"), writes=True),
    "mkdir": Options("pv", "m", "", _names("parents mode verbose"), writes=True),
    "cp": Options(
        "fnpvuiT", "", "t", _names("force no-clobber update verbose target-directory"), writes=True, moves=True
    ),
    "mv": Options(
        "fnvuiT", "", "t", _names("force no-clobber update verbose target-directory"), writes=True, moves=True
    ),
    "pytest": Options(
        "qvxslhV",
        "kmnrpW",
        "",
        _names(
            "quiet verbose exitfirst maxfail lf last-failed ff failed-first nf sw stepwise co collect-only "
            "durations tb no-header no-summary disable-warnings strict-markers showlocals capture color "
            "cov cov-report version help setup-show dist numprocesses timeout ignore deselect import-mode "
            "no-cov markers fixtures"
        ),
    ),
}

_DIFF = _names(
    "stat numstat shortstat name-only name-status oneline graph all decorate no-color color word-diff "
    "cached staged patch no-patch since until after before author grep max-count follow pretty format "
    "abbrev-commit abbrev date merges no-merges first-parent reverse summary diff-filter find-renames "
    "ignore-all-space ignore-space-change no-ext-diff no-textconv no-renames unified minimal patience "
    "histogram left-right merge-base exit-code quiet check binary full-index raw topo-order branches tags "
    "remotes skip no-decorate"
)
_GIT_DIFF = Options("pusUwbMCBDiEFqvzcmrtRa0123456789", "nSGL", "", _DIFF)

GIT_VERBS: Mapping[str, Options] = {
    "status": Options("sbuvzno", "", "", _names("short porcelain branch untracked-files ignored verbose show-stash")),
    "diff": _GIT_DIFF,
    "log": _GIT_DIFF,
    "show": _GIT_DIFF,
    "blame": Options("wMCeslbtp", "L", "", _names("porcelain date")),
    "ls-files": Options(
        "comdstuvz", "x", "", _names("cached others modified deleted exclude-standard stage full-name")
    ),
    "rev-parse": Options("", "", "", _names("abbrev-ref short show-toplevel is-inside-work-tree verify git-dir quiet")),
    "describe": Options("", "", "", _names("tags always dirty long abbrev all")),
    "shortlog": Options("sne", "", "", _names("summary numbered email all")),
}
"""Verbs that only read the repository; ``branch`` and ``remote`` are read apart."""

_FIND_TESTS = _names(
    "-name -iname -path -ipath -wholename -regex -iregex -type -maxdepth -mindepth -size -mtime -mmin -ctime "
    "-cmin -atime -amin -perm -user -group -links -printf -regextype"
)
_FIND_FLAGS = _names(
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
