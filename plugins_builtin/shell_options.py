"""Which options of which programs are known: data. What does not stand here is not judged harmless."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


def names_of(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


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


TEXT_PROGRAMS = names_of(": echo true false exit sleep seq basename dirname pwd type tr")
"""Their words are text: no file is opened and no option writes or starts anything."""

ANY_OPTIONS = names_of(
    "ls cat wc head tail stat du df cmp nl tac rev realpath readlink md5sum sha1sum sha256sum sha512sum cksum "
    "which paste comm od hexdump strings fold expand unexpand whoami id uname"
)
"""They only read, whatever their options are."""

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
    names_of(
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
        names_of(
            "fixed-strings ignore-case smart-case case-sensitive invert-match word-regexp line-regexp "
            "count count-matches files-with-matches files-without-match max-count only-matching quiet no-messages "
            "line-number no-line-number with-filename no-filename hidden no-ignore no-ignore-vcs "
            "glob iglob type type-not context after-context before-context color heading no-heading "
            "multiline pcre2 sort max-depth json stats trim no-config vimgrep column"
        ),
        pattern=True,
    ),
    "sort": Options("bdfghiMnRrVcCmsuz", "kt", "", names_of("reverse unique numeric-sort version-sort check key")),
    "uniq": Options("cdDiuz", "fsw", "", names_of("count repeated unique ignore-case"), writes=True),
    "diff": Options(
        "abBcdeEiNqstTuUwyZ0123456789", "C", "", names_of("unified brief color ignore-all-space"), compares=True
    ),
    "file": Options("bikLhr0", "", "", names_of("brief mime mime-type mime-encoding")),
    "base64": Options("dDi", "w", "", names_of("decode wrap ignore-garbage")),
    "cut": Options("ns", "bcdf"),
    "date": Options("uRI", "d", "r", names_of("utc date iso-8601 rfc-3339 reference")),
    "touch": Options("acmh", "dt", "r", names_of("no-create date reference"), writes=True),
    "mkdir": Options("pv", "m", "", names_of("parents mode verbose"), writes=True),
    "cp": Options(
        "fnpvuiT", "", "t", names_of("force no-clobber update verbose target-directory"), writes=True, moves=True
    ),
    "mv": Options(
        "fnvuiT", "", "t", names_of("force no-clobber update verbose target-directory"), writes=True, moves=True
    ),
    "pytest": Options(
        "qvxslhV",
        "kmnrpW",
        "",
        names_of(
            "quiet verbose exitfirst maxfail lf last-failed ff failed-first nf sw stepwise co collect-only "
            "durations tb no-header no-summary disable-warnings strict-markers showlocals capture color "
            "cov cov-report version help setup-show dist numprocesses timeout ignore deselect import-mode "
            "no-cov markers fixtures"
        ),
    ),
}

_DIFF = names_of(
    "stat numstat shortstat name-only name-status oneline graph all decorate no-color color word-diff "
    "cached staged patch no-patch since until after before author grep max-count follow pretty format "
    "abbrev-commit abbrev date merges no-merges first-parent reverse summary diff-filter find-renames "
    "ignore-all-space ignore-space-change no-ext-diff no-textconv no-renames unified minimal patience "
    "histogram left-right merge-base exit-code quiet check binary full-index raw topo-order branches tags "
    "remotes skip no-decorate"
)
_GIT_DIFF = Options("pusUwbMCBDiEFqvzcmrtRa0123456789", "nSGL", "", _DIFF)

GIT_VERBS: Mapping[str, Options] = {
    "status": Options("sbuvzno", "", "", names_of("short porcelain branch untracked-files ignored verbose show-stash")),
    "diff": _GIT_DIFF,
    "log": _GIT_DIFF,
    "show": _GIT_DIFF,
    "blame": Options("wMCeslbtp", "L", "", names_of("porcelain date")),
    "ls-files": Options(
        "comdstuvz", "x", "", names_of("cached others modified deleted exclude-standard stage full-name")
    ),
    "rev-parse": Options(
        "", "", "", names_of("abbrev-ref short show-toplevel is-inside-work-tree verify git-dir quiet")
    ),
    "describe": Options("", "", "", names_of("tags always dirty long abbrev all")),
    "shortlog": Options("sne", "", "", names_of("summary numbered email all")),
}
"""Verbs that only read the repository; ``branch`` and ``remote`` are read apart."""
