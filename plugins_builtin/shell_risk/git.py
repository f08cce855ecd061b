"""What a git call is held to be, by its verb and options: data and its use. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from crystal.types.approval import Authority, Risk


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_VALUED = ("-C", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env", "-c", "--exec-path")
_SAFE_KEYS = re.compile(
    r"(color|user\.(name|email)|init\.defaultbranch|advice|column|i18n|status|log|push\.default|pull\.|branch\.|merge\.conflictstyle|core\.(quotepath|autocrlf|eol|longpaths|abbrev))",
    re.IGNORECASE,
)

NETWORK = frozenset(("push", "pull", "fetch", "clone", "ls-remote", "send-email", "request-pull", "fetch-pack"))
READING = _names(
    "status diff log show blame shortlog ls-files ls-tree rev-parse rev-list describe cat-file grep for-each-ref "
    "show-ref merge-base name-rev count-objects fsck var version help diff-tree diff-index diff-files check-"
    "ignore check-attr whatchanged range-diff cherry annotate show-branch verify-commit verify-tag ls-remote"
)
KNOWN = (
    READING
    | NETWORK
    | _names(
        "add commit branch checkout switch restore merge cherry-pick revert tag stash mv rm init remote worktree "
        "apply am format-patch archive notes bisect config reflog symbolic-ref hash-object sparse-checkout "
        "maintenance bundle submodule lfs reset read-tree write-tree commit-tree update-index mktree merge-file "
        "rerere mailinfo stripspace interpret-trailers column citool gui gitk subtree flow pack-objects"
    )
)
REWRITING = _names(
    "rebase filter-branch filter-repo replace update-ref gc prune repack reflog-expire clean fast-import daemon "
    "instaweb difftool mergetool hook credential shell svn p4 cvsimport http-backend upload-pack receive-pack "
    "credential-store credential-cache"
)
"""They rewrite or drop history, delete untracked files, or start programs that configuration names."""

_HIDDEN: Mapping[str, tuple[str, ...]] = {
    "push": ("--receive-pack", "--exec"),
    "fetch": ("--upload-pack",),
    "pull": ("--upload-pack",),
    "clone": ("--upload-pack", "-u", "-c", "--config", "--template"),
    "ls-remote": ("--upload-pack", "--exec"),
    "init": ("--template",),
    "diff": ("--ext-diff", "--textconv"),
    "log": ("--ext-diff", "--textconv"),
    "show": ("--ext-diff", "--textconv"),
    "grep": ("-O", "--open-files-in-pager", "--textconv"),
    "blame": ("--contents",),
    "archive": ("--exec", "--remote"),
    "commit": ("--amend",),
    "send-email": ("--smtp-server", "--to-cmd", "--cc-cmd", "--sendmail-cmd"),
    "rebase": ("-x", "--exec"),
    "tag": ("-d", "--delete", "-f", "--force"),
    "branch": ("-D", "-d", "--delete", "-f", "--force", "-M", "-C"),
    "checkout": ("-f", "--force", "-B"),
    "switch": ("-f", "--force", "--discard-changes", "-C"),
    "worktree": ("-f", "--force"),
    "submodule": (),
    "am": ("--exec",),
    "apply": ("--unsafe-paths",),
    "format-patch": ("--ext-diff",),
    "merge": ("-X", "-s", "--strategy"),
    "stash": (),
    "lfs": (),
    "remote": (),
}
"""Options by which a verb rewrites, forces, deletes or starts another program."""

_STARTING = (("bisect", ["run"]), ("submodule", ["foreach"]))
_PUSH_FORCE = ("-f", "--force", "--force-with-lease", "--force-if-includes", "--mirror", "-d", "--delete", "--prune")
_TEXT = ("-m", "--message", "--author", "--grep", "--format", "--pretty", "-S", "-G", "--date", "--since", "--until")
_TEXT_LONGS = ("--message=", "--author=", "--grep=", "--format=", "--pretty=", "--date=", "--since=", "--until=")


class GitCall(NamedTuple):
    """A judged call.

    :param inner: a command line that git hands to a shell, or the words of a program that it starts.
    :param paths: the words that may name files.
    """

    risk: Risk
    authority: Authority
    paths: tuple[str, ...] = ()
    writes: bool = True
    inner: str = ""


def judge_git(words: Sequence[str]) -> GitCall:
    """Return what a git call is held to be.

    :param words: the texts after ``git``.
    """
    risk, authority = Risk.WRITE, Authority.WORKSPACE
    paths: list[str] = []
    pending = list(words)
    while pending and pending[0].startswith("-"):
        option = pending.pop(0)
        name, equals, value = option.partition("=")
        if name in _VALUED and not equals:
            value = pending.pop(0) if pending else ""
        if name in ("-c", "--config-env"):
            if not _SAFE_KEYS.match(value):
                risk = Risk.PRIVILEGED
        elif name == "--exec-path" and (equals or value):
            risk = Risk.PRIVILEGED
        elif name in ("-C", "--git-dir", "--work-tree"):
            paths.append(value)
        elif option.startswith("-C") and len(option) > 2:
            paths.append(option[2:])
        elif option.startswith("-c") and len(option) > 2:
            risk = Risk.PRIVILEGED
    if not pending:
        return GitCall(risk, authority, tuple(paths))
    verb, rest = pending[0], pending[1:]
    options = [word for word in rest if word.startswith("-")]
    operands = [word for word in rest if not word.startswith("-")]
    if verb in NETWORK:
        authority |= Authority.NETWORK
    if verb in REWRITING or verb not in KNOWN:
        risk = Risk.PRIVILEGED
    if _has(options, _HIDDEN.get(verb, ())):
        risk = Risk.PRIVILEGED
    if any(word.startswith("ext::") or ("::" in word.partition("/")[0] and verb in NETWORK) for word in operands):
        risk = Risk.PRIVILEGED
    judge = _BY_HAND.get(verb)
    inner = ""
    if judge is not None:
        found, more = judge(options, operands)
        risk, authority = max(risk, found), authority | more
    if (verb, operands[:1]) in _STARTING:
        started = rest[rest.index(operands[0]) + 1 :]
        # ``foreach`` hands its words to a shell, ``run`` starts them as they are.
        inner = " ".join(started) if verb == "submodule" else shlex.join(started)
    paths += [word for word in _without_texts(rest) if not (verb == "grep" and word in operands[:1])]
    return GitCall(risk, authority, tuple(paths), verb not in READING, inner)


def _has(options: Sequence[str], names: Sequence[str]) -> bool:
    """Whether one of the options is there, also shortened, joined to a value or among other letters."""
    for option in options:
        name = option.partition("=")[0]
        for wanted in names:
            if wanted.startswith("--"):
                if len(name) > 3 and name.startswith("--") and wanted.startswith(name):
                    return True
            elif not name.startswith("--") and wanted[1] in name[1:]:
                return True
    return False


def _without_texts(rest: Sequence[str]) -> list[str]:
    kept: list[str] = []
    pending = list(reversed(rest))
    while pending:
        word = pending.pop()
        if word in _TEXT or (re.fullmatch(r"-[a-zA-Z]*m", word) and pending):
            if pending:
                pending.pop()
        elif not word.startswith(_TEXT_LONGS):
            kept.append(word)
    return kept


Judged = tuple[Risk, Authority]
_NONE: Judged = (Risk.WRITE, Authority.WORKSPACE)
_PRIVILEGED: Judged = (Risk.PRIVILEGED, Authority.WORKSPACE)


def _push(options: Sequence[str], operands: Sequence[str]) -> Judged:
    forced = _has(options, _PUSH_FORCE) or any(word.startswith(("+", ":")) for word in operands[1:] or operands)
    return _PRIVILEGED if forced else _NONE


def _reset(options: Sequence[str], operands: Sequence[str]) -> Judged:
    moves = any(re.search(r"[~^]|@\{|^ORIG_HEAD|^[0-9a-f]{7,40}$", word) for word in operands)
    return _PRIVILEGED if moves or _has(options, ("--hard", "--soft", "--mixed", "--merge", "--keep")) else _NONE


def _config(options: Sequence[str], operands: Sequence[str]) -> Judged:
    reads = _has(options, ("--get", "--get-all", "--get-regexp", "--list", "-l", "--get-urlmatch")) or operands[:1] in (
        ["get"],
        ["list"],
    )
    if reads or (len(operands) == 1 and not _has(options, ("--unset", "--unset-all", "--edit", "-e"))):
        return _NONE
    if operands and _SAFE_KEYS.match(operands[0]) and not _has(options, ("--global", "--system", "--file", "-f")):
        return _NONE
    leaves = Authority.OUTSIDE_WORKSPACE if _has(options, ("--global", "--system")) else Authority(0)
    return Risk.PRIVILEGED, Authority.WORKSPACE | leaves


def _remote(options: Sequence[str], operands: Sequence[str]) -> Judged:
    if not operands:
        return _NONE
    network = Authority.NETWORK if operands[0] in ("update", "show", "prune", "set-head") else Authority(0)
    if operands[0] in ("add", "set-url") and any("::" in word for word in operands):
        return _PRIVILEGED
    return Risk.WRITE, Authority.WORKSPACE | network


def _submodule(options: Sequence[str], operands: Sequence[str]) -> Judged:
    network = Authority.NETWORK if operands[:1] and operands[0] in ("update", "add") else Authority(0)
    return Risk.WRITE, Authority.WORKSPACE | network


def _stash(options: Sequence[str], operands: Sequence[str]) -> Judged:
    return _PRIVILEGED if operands[:1] and operands[0] in ("drop", "clear") else _NONE


def _reflog(options: Sequence[str], operands: Sequence[str]) -> Judged:
    return _PRIVILEGED if operands[:1] and operands[0] in ("expire", "delete") else _NONE


def _lfs(options: Sequence[str], operands: Sequence[str]) -> Judged:
    network = operands[:1] and operands[0] in ("push", "pull", "fetch", "clone", "lock", "unlock", "locks")
    return Risk.WRITE, Authority.WORKSPACE | (Authority.NETWORK if network else Authority(0))


_BY_HAND = {
    "push": _push,
    "reset": _reset,
    "config": _config,
    "remote": _remote,
    "submodule": _submodule,
    "stash": _stash,
    "reflog": _reflog,
    "lfs": _lfs,
}
