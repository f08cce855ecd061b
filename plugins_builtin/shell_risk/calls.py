"""One simple command: which program its words start, through every wrapper, and what that is held to be."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from crystal.types.approval import Authority, Risk
from plugins_builtin.shell_risk import programs
from plugins_builtin.shell_risk.git import judge_git
from plugins_builtin.shell_risk.packages import MANAGERS, PIP, judge_manager, judge_pip
from plugins_builtin.shell_risk.words import Word

if TYPE_CHECKING:
    from plugins_builtin.shell_risk.judge import Judge

_CRYSTAL = re.compile(r"crystal(?:[-_]harness)?(?:\[.*\])?(?:[=<>~!@].*)?(?:\.cli(?:\.main)?|\.py)?")
_VERSIONED = re.compile(r"^(python|pip|pypy|perl|ruby|php|lua|node|tclsh)[0-9]+(?:\.[0-9]+)*$")
MOST_PLACES = 500
"""Most places that one call may put files to and have looked at; beyond, it is Privileged."""

_SHOWING = ("version", "--version", "--help", "-h")


class Flow(NamedTuple):
    """What a command reads from the one before it.

    :param piped: whether its input is a pipe.
    :param downloaded: whether something upstream came from another machine.
    """

    piped: bool = False
    downloaded: bool = False


class Stdin(Enum):
    """What a command reads."""

    NOTHING = auto()
    PIPE = auto()
    FILE = auto()
    STRING = auto()
    LITERAL = auto()
    """A heredoc without expansions."""
    EXPANDED = auto()
    """A heredoc with some."""


class Call(NamedTuple):
    """One simple command.

    :param words: the program and its arguments.
    :param script: the text of a heredoc or here-string on stdin.
    """

    words: Sequence[Word]
    flow_downloaded: bool = False
    stdin: Stdin = Stdin.NOTHING
    script: str = ""

    def after(self, count: int) -> Call:
        """The same call without its first words."""
        return self._replace(words=self.words[count:])


_NOTABLE = frozenset(
    (
        *programs.NETWORK,
        *programs.ESCALATION,
        *programs.PRIVILEGED,
        *programs.DEVICE_TOOLS,
        *programs.ARRAY_BUILTINS,
        *programs.HIDDEN_PROGRAMS,
        *MANAGERS,
    )
)
"""Programs whose name alone says something."""


def judge_call(judge: Judge, call: Call) -> bool:
    """Judge one call and return whether it downloads."""
    if not call.words:
        return False
    first = call.words[0]
    name = first.text.rpartition("/")[2]
    if first.opaque or first.glob >= 0 or first.process or not name:
        judge.raise_to(Risk.PRIVILEGED)
    if first.downloads:
        judge.raise_to(Risk.FORBIDDEN)
    if name in programs.RESERVED:
        judge.raise_to(Risk.PRIVILEGED)
        return judge_call(judge, call.after(1))
    if "/" in first.text and first.text.rpartition("/")[0] not in programs.SYSTEM_FOLDERS:
        judge.places.look(first, writes=False)
    if name[-1:].isdigit():
        name = _VERSIONED.sub(r"\1", name)
    _raise_for_name(judge, name, call)
    handler = _HANDLERS.get(name)
    if handler is not None:
        for word in call.words[1:]:
            if word.glob >= 0:
                # Whatever the program makes of its words, a pattern brings in names that nobody wrote.
                judge.places.look(word, writes=False)
        return handler(judge, name, call)
    if name in programs.WRAPPERS:
        return _wrapper(judge, name, call)
    if name in programs.SHELLS:
        return _shell(judge, name, call)
    if name in programs.INTERPRETERS:
        return _interpreter(judge, name, call)
    return _ordinary(judge, name, call)


def _raise_for_name(judge: Judge, name: str, call: Call) -> None:
    if name not in _NOTABLE and not name.startswith(("mkfs.", "crystal")):
        return
    texts = [word.text for word in call.words[1:]]
    if name in programs.NETWORK:
        judge.raise_to(Risk.WRITE, Authority.NETWORK)
    if name in programs.ESCALATION:
        judge.raise_to(Risk.PRIVILEGED, Authority.PRIVILEGED_ESCALATION)
    if name in programs.PRIVILEGED or name.startswith("mkfs."):
        judge.raise_to(Risk.PRIVILEGED)
    if (name in programs.DEVICE_TOOLS or name.startswith("mkfs.")) and any(text.startswith("/dev/") for text in texts):
        for word in call.words[1:]:
            judge.places.look(word, writes=True)
    if name in programs.ARRAY_BUILTINS and any("$(" in text or "`" in text for text in texts):
        judge.raise_to(Risk.PRIVILEGED)
    if name.startswith("crystal") and _CRYSTAL.fullmatch(name) and not _only_shows(texts):
        judge.raise_to(Risk.PRIVILEGED)
    managed = judge_manager(name, texts)
    if managed is not None:
        judge.raise_to(*managed)
    hidden = programs.HIDDEN_PROGRAMS.get(name)
    if hidden and _has_option(texts, hidden):
        judge.raise_to(Risk.PRIVILEGED)


def _only_shows(texts: Sequence[str]) -> bool:
    return bool(texts) and (texts[0] in _SHOWING or (len(texts) > 1 and texts[1] in ("list", "show", *_SHOWING[2:])))


def _has_option(texts: Sequence[str], names: Sequence[str]) -> bool:
    """Whether one of the options is there: alone, with its value behind ``=`` or attached, or shortened."""
    for text in texts if names else ():
        if not text.startswith("-"):
            continue
        option = text.partition("=")[0]
        for name in names:
            if option == name or (name.startswith("--") and len(option) > 4 and name.startswith(option)):
                return True
            if len(name) == 2 and text.startswith(name) and not text.startswith("--"):
                return True
    return False


def _ordinary(judge: Judge, name: str, call: Call) -> bool:
    """A program whose words are looked at and nothing else."""
    if name in programs.TEXT_ONLY:
        return False
    texts = [word.text for word in call.words[1:]]
    writes = name not in programs.READERS or _has_option(texts, programs.WRITING_OPTIONS.get(name, ()))
    text_options = programs.TEXT_OPTIONS.get(name, frozenset())
    is_text_next = False
    skip_first = name in programs.FIRST_IS_TEXT and not (text_options and _has_option(texts, ("-e", "-f", "--regexp")))
    for word in call.words[1:]:
        # Where a pattern meets several names, only the first stands in the place of the value.
        is_text = word.glob < 0
        if is_text_next:
            is_text_next = False
        elif word.text in text_options:
            is_text_next = True
        elif word.text[:2] in text_options and not word.text.startswith("--"):
            pass
        elif skip_first and not word.text.startswith("-"):
            skip_first = False
        else:
            is_text = False
        if not is_text:
            judge.places.look(word, writes=writes)
    return name in programs.DOWNLOADS


def _look_all(judge: Judge, words: Sequence[Word], *, writes: bool) -> None:
    for word in words:
        judge.places.look(word, writes=writes)


def _wrapper(judge: Judge, name: str, call: Call) -> bool:
    """A program that starts another one: the inner one is judged as if it stood there alone."""
    wrapper = programs.WRAPPERS[name]
    if wrapper.authority is not Authority.WORKSPACE:
        judge.raise_to(Risk.PRIVILEGED, wrapper.authority)
    position, operands = 1, wrapper.operands
    words = call.words
    while position < len(words):
        text = words[position].text
        if text == "--":
            position += 1
            continue
        if text.startswith("--"):
            position += 1 if "=" in text or text not in wrapper.longs else 2
        elif text.startswith("-") and len(text) > 1:
            takes = next((at for at, letter in enumerate(text[1:], 1) if letter in wrapper.valued), 0)
            position += 2 if takes == len(text) - 1 and takes else 1
        elif name == "sudo" and "=" in text:
            position += 1
        elif operands:
            operands -= 1
            position += 1
        else:
            break
    if position >= len(words):
        return False
    inner = call.after(position)
    if name in ("xargs", "parallel"):
        return _fed(judge, inner)
    return judge_call(judge, inner)


def _fed(judge: Judge, inner: Call) -> bool:
    """A program whose further words come from a pipe: an interpreter then runs what nobody has seen."""
    program = inner.words[0].text.rpartition("/")[2]
    base = re.sub(r"[0-9.]+$", "", program)
    if base in programs.SHELLS or base in programs.INTERPRETERS or base in ("eval", "env", "ssh"):
        judge.raise_to(Risk.FORBIDDEN if inner.flow_downloaded else Risk.PRIVILEGED)
    return judge_call(judge, inner._replace(stdin=Stdin.NOTHING))


def _env(judge: Judge, name: str, call: Call) -> bool:
    words = list(call.words[1:])
    while words:
        text = words[0].text
        if text in ("-S", "--split-string"):
            return judge.line(" ".join(word.text for word in words[1:]), Flow(False, call.flow_downloaded))
        if text.startswith(("-S", "--split-string=")):
            inner = text[2:] if text.startswith("-S") else text.partition("=")[2]
            rest = " ".join(word.text for word in words[1:])
            return judge.line(f"{inner} {rest}".strip(), Flow(False, call.flow_downloaded))
        if re.fullmatch(r"-[a-zA-Z]*S.*", text) and not text.startswith("--"):
            judge.raise_to(Risk.PRIVILEGED)
            return judge.line(text.partition("S")[2] + " " + " ".join(word.text for word in words[1:]))
        if text in ("-u", "--unset", "-C", "--chdir"):
            if text in ("-C", "--chdir") and len(words) > 1:
                judge.places.enter(words[1])
            words = words[2:]
        elif text.startswith("-"):
            words = words[1:]
        elif "=" in text:
            variable, _, value = text.partition("=")
            if programs.is_dangerous_variable(variable) and value not in programs.HARMLESS_VALUES:
                judge.raise_to(Risk.PRIVILEGED)
            words = words[1:]
        else:
            break
    return judge_call(judge, call._replace(words=words)) if words else False


def _command(judge: Judge, name: str, call: Call) -> bool:
    position = 1
    while position < len(call.words) and call.words[position].text.startswith("-"):
        if {"v", "V"} & set(call.words[position].text):
            return False
        position += 1
    return judge_call(judge, call.after(position))


def _time(judge: Judge, name: str, call: Call) -> bool:
    judge.raise_to(Risk.PRIVILEGED)
    rest = [word for word in call.words[1:] if not word.text.startswith("-")]
    return judge_call(judge, call._replace(words=rest))


def _watch(judge: Judge, name: str, call: Call) -> bool:
    words = list(call.words[1:])
    while words and words[0].text.startswith("-"):
        words = words[2:] if words[0].text in ("-n", "--interval", "-q") else words[1:]
    return judge.line(" ".join(word.text for word in words)) if words else False


def _flock(judge: Judge, name: str, call: Call) -> bool:
    words = list(call.words[1:])
    while words and words[0].text.startswith("-") and words[0].text != "-c":
        words = words[2:] if words[0].text in ("-w", "--timeout", "-E") else words[1:]
    if words:
        judge.places.look(words[0], writes=True)
        words = words[1:]
    if words and words[0].text in ("-c", "--command"):
        return judge.line(" ".join(word.text for word in words[1:]))
    return judge_call(judge, call._replace(words=words)) if words else False


def _script_option(words: Sequence[Word], letters: str) -> int:
    """Return the position of the first option whose letters hold one of ``letters``; 0 for none before an operand."""
    for position, word in enumerate(words[1:], 1):
        text = word.text
        if text == "--" or not text.startswith(("-", "+")) or len(text) == 1:
            return 0
        if not text.startswith("--") and any(letter in text[1:] for letter in letters):
            return position
    return 0


def _shell(judge: Judge, name: str, call: Call) -> bool:
    texts = [word.text for word in call.words]
    if _has_option(texts, ("--rcfile", "--init-file")) or any(text in ("-i", "-l") for text in texts[1:2]):
        judge.raise_to(Risk.PRIVILEGED)
    position = _script_option(call.words, "c")
    if position:
        script = next((word for word in call.words[position + 1 :] if not word.text.startswith(("-", "+"))), None)
        if script is None:
            judge.raise_to(Risk.PRIVILEGED)
            return False
        if script.opaque or "{}" in script.text:
            judge.raise_to(Risk.FORBIDDEN if script.downloads else Risk.PRIVILEGED)
        flow = Flow(call.stdin is not Stdin.NOTHING, call.flow_downloaded)
        return judge.line(script.text, flow) if script.text.strip() else False
    return _program_file(judge, call, is_shell=True)


def _interpreter(judge: Judge, name: str, call: Call) -> bool:
    texts = [word.text for word in call.words]
    if name.startswith(("python", "pypy")) and "-m" in texts:
        return _module(judge, call.after(texts.index("-m") + 1))
    position = _script_option(call.words, programs.CODE_OPTIONS.get(name, ""))
    if not position and _has_option(texts[1:], ("--eval", "--print", "--execute")):
        position = 1
    if position:
        code = call.words[position + 1 : position + 2]
        if any(word.downloads for word in code) or (call.flow_downloaded and "exec" in "".join(w.text for w in code)):
            judge.raise_to(Risk.FORBIDDEN)
        elif any(word.opaque for word in code):
            judge.raise_to(Risk.PRIVILEGED)
        _look_all(judge, call.words[position + 2 :], writes=True)
        return False
    if (
        name in ("deno", "bun", "node")
        and len(texts) > 1
        and texts[1] in ("run", "test", "fmt", "lint", "task", "check", "x")
    ):
        return _ordinary(judge, name, call.after(1))
    return _program_file(judge, call, is_shell=False)


def _program_file(judge: Judge, call: Call, *, is_shell: bool) -> bool:
    """An interpreter that reads its program from a file or from stdin."""
    words = list(call.words[1:])
    while words and words[0].text.startswith(("-", "+")) and words[0].text not in ("-", "-s"):
        if (
            words[0].text in ("--version", "-V", "--help", "-h", "-v")
            and len(words) == 1
            and call.stdin is Stdin.NOTHING
        ):
            return False
        words = words[2:] if words[0].text in ("-W", "-X", "-O", "-o", "-I", "-r", "--require") else words[1:]
    program = words[0] if words else None
    if program is not None and program.process:
        judge.raise_to(Risk.FORBIDDEN if program.downloads else Risk.PRIVILEGED)
        return False
    if program is not None and program.text not in ("-", "-s", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
        if program.opaque:
            judge.raise_to(Risk.FORBIDDEN if program.downloads else Risk.PRIVILEGED)
        _raise_for_file(judge, words)
        _look_all(judge, words, writes=True)
        return False
    if call.stdin is Stdin.LITERAL:
        return judge.line(call.script) if is_shell else False
    if is_shell and call.script:
        judge.line(call.script)
    judge.raise_to(Risk.FORBIDDEN if call.flow_downloaded else Risk.PRIVILEGED)
    return False


def _raise_for_file(judge: Judge, words: Sequence[Word]) -> None:
    """Files that are another program in disguise: crystal itself, and installers."""
    name = words[0].text.rpartition("/")[2]
    texts = [word.text for word in words[1:]]
    if name in ("get-pip.py", "ez_setup.py") or "/pip/__main__.py" in words[0].text:
        judge.raise_to(*judge_pip(texts or ["install"], in_project=False))
    if name == "setup.py" and {"install", "develop"} & set(texts):
        judge.raise_to(Risk.PRIVILEGED, Authority.NETWORK)
    if _CRYSTAL.fullmatch(name) and not _only_shows([word.text for word in words[1:]]):
        judge.raise_to(Risk.PRIVILEGED)


def _module(judge: Judge, call: Call) -> bool:
    """``python -m NAME``: pip and crystal are what they are; a server is the network."""
    if not call.words:
        judge.raise_to(Risk.PRIVILEGED)
        return False
    module = call.words[0].text
    texts = [word.text for word in call.words[1:]]
    if call.words[0].opaque:
        judge.raise_to(Risk.PRIVILEGED)
    if module in ("pip", "ensurepip", "easy_install"):
        judge.raise_to(*judge_pip(texts, in_project=False))
    elif module.partition(".")[0] == "crystal" and not _only_shows(texts):
        judge.raise_to(Risk.PRIVILEGED)
    elif module in ("http.server", "smtpd", "ftplib", "webbrowser", "urllib.request", "twine"):
        judge.raise_to(Risk.WRITE, Authority.NETWORK)
    elif module in ("code", "pdb", "runpy", "timeit", "trace", "cProfile", "profile"):
        return judge_call(judge, call._replace(words=[Word("python"), *call.words[1:]]))
    if module in programs.HIDDEN_PROGRAMS and _has_option(texts, programs.HIDDEN_PROGRAMS[module]):
        judge.raise_to(Risk.PRIVILEGED)
    skips = programs.TEXT_OPTIONS.get(module, frozenset())
    kept = [word for at, word in enumerate(call.words[1:]) if at == 0 or texts[at - 1] not in skips]
    _look_all(judge, kept, writes=True)
    return False


def _pip(judge: Judge, name: str, call: Call) -> bool:
    program = call.words[0].text
    in_project = "/" in program and not program.startswith(("/", "~", "..")) and "/bin/" in program
    judge.raise_to(*judge_pip([word.text for word in call.words[1:]], in_project=in_project))
    _look_all(judge, call.words[1:], writes=True)
    return False


def _eval(judge: Judge, name: str, call: Call) -> bool:
    downloads = call.flow_downloaded or any(word.downloads for word in call.words[1:])
    judge.raise_to(Risk.FORBIDDEN if downloads else Risk.PRIVILEGED)
    text = " ".join(word.text for word in call.words[1:])
    return judge.line(text, Flow(False, call.flow_downloaded)) if text.strip() else False


def _source(judge: Judge, name: str, call: Call) -> bool:
    if len(call.words) < 2:
        return False
    file = call.words[1]
    if file.process or file.opaque or file.text in ("/dev/stdin", "/dev/fd/0", "-"):
        worst = Risk.FORBIDDEN if file.downloads or call.flow_downloaded else Risk.PRIVILEGED
        judge.raise_to(worst)
    judge.places.look(file, writes=False)
    return False


def _trap(judge: Judge, name: str, call: Call) -> bool:
    if len(call.words) > 2 and call.words[1].text not in ("", "-"):
        if call.words[1].opaque:
            judge.raise_to(Risk.PRIVILEGED)
        return judge.line(call.words[1].text)
    return False


def _alias(judge: Judge, name: str, call: Call) -> bool:
    for word in call.words[1:]:
        value = word.text.partition("=")[2]
        if value:
            judge.line(value)
    return False


def _git(judge: Judge, name: str, call: Call) -> bool:
    words = call.words[1:]
    judged = judge_git([word.text for word in words])
    judge.raise_to(judged.risk, judged.authority)
    if judged.inner:
        judge.line(judged.inner)
    by_text = {word.text: word for word in words}
    for text in judged.paths:
        judge.places.look(by_text.get(text, Word(text)), writes=judged.writes)
    return False


def _find(judge: Judge, name: str, call: Call) -> bool:
    words = list(call.words[1:])
    downloads = deletes = False
    starts: list[str] = []
    position = 0
    while position < len(words):
        text = words[position].text
        if text in ("-exec", "-execdir", "-ok", "-okdir"):
            end = next((at for at in range(position + 1, len(words)) if words[at].text in (";", "+")), len(words))
            inner = words[position + 1 : end]
            if inner:
                program = inner[0].text.rpartition("/")[2]
                if program in programs.SHELLS and any("{}" in word.text for word in inner[1:] if " " in word.text):
                    judge.raise_to(Risk.PRIVILEGED)
                downloads = judge_call(judge, call._replace(words=inner, stdin=Stdin.NOTHING)) or downloads
            position = end
        elif text == "-delete":
            deletes = True
        elif text in ("-fprint", "-fprint0", "-fls", "-fprintf") and position + 1 < len(words):
            judge.places.look(words[position + 1], writes=True)
            position += 1
        elif text in programs.TEXT_OPTIONS["find"]:
            position += 1
        elif text in ("-L", "-H", "-follow"):
            judge.raise_to(Risk.PRIVILEGED)
        elif not text.startswith(("-", "(", ")", "!")):
            starts.append(text)
            judge.places.look(words[position], writes=False)
        position += 1
    if deletes:
        is_root = any(judge.places.is_a_root(start) for start in starts or ["."] if start not in (".", "./"))
        judge.raise_to(Risk.FORBIDDEN if is_root else Risk.PRIVILEGED)
    return downloads


def _rm(judge: Judge, name: str, call: Call) -> bool:
    texts = [word.text for word in call.words[1:]]
    recursive = any(
        text.startswith("--r") or (text.startswith("-") and not text.startswith("--") and {"r", "R"} & set(text))
        for text in texts
    )
    if recursive:
        roots = any(judge.places.is_a_root(text) for text in texts if text and not text.startswith("-"))
        judge.raise_to(Risk.FORBIDDEN if roots else Risk.PRIVILEGED)
    _look_all(judge, call.words[1:], writes=True)
    return False


def _change_mode(judge: Judge, name: str, call: Call) -> bool:
    texts = [word.text for word in call.words[1:]]
    if any(text == "--recursive" or re.fullmatch(r"-[a-zA-Z]*R[a-zA-Z]*", text) for text in texts):
        judge.raise_to(Risk.PRIVILEGED)
    if name == "chmod" and any(re.search(r"^[0-7]?[4267][0-7]{3}$|[+=][rwxXt]*s", text) for text in texts):
        judge.raise_to(Risk.PRIVILEGED)
    if name in ("chown", "chgrp"):
        judge.raise_to(Risk.PRIVILEGED)
    _look_all(judge, call.words[2:] if texts and not texts[0].startswith("-") else call.words[1:], writes=True)
    return False


def _kill(judge: Judge, name: str, call: Call) -> bool:
    texts = [word.text for word in call.words[1:]]
    if any(text in ("-1", "0", "--") for text in texts[1:]) or any(re.fullmatch(r"-[0-9]{2,}", t) for t in texts[1:]):
        judge.raise_to(Risk.PRIVILEGED)
    return False


def _dd(judge: Judge, name: str, call: Call) -> bool:
    for word in call.words[1:]:
        option, _, value = word.text.partition("=")
        if option in ("if", "of") and value:
            judge.places.look(Word(value, word.opaque), writes=option == "of")
    return False


def _docker(judge: Judge, name: str, call: Call) -> bool:
    texts = [word.text for word in call.words[1:]]
    if {
        "run",
        "exec",
        "create",
        "up",
        "start",
        "cp",
        "commit",
        "push",
        "rm",
        "rmi",
        "prune",
        "system",
        "volume",
        "swarm",
    } & set(texts[:4]):
        judge.raise_to(Risk.PRIVILEGED)
    _look_all(judge, call.words[1:], writes=True)
    return False


def _tar(judge: Judge, name: str, call: Call) -> bool:
    _look_all(judge, call.words[1:], writes=True)
    if any(text.text.startswith("--") and "absolute" in text.text for text in call.words) or any(
        re.fullmatch(r"-?[a-zA-Z]*P[a-zA-Z]*", word.text) for word in call.words[1:2]
    ):
        judge.raise_to(Risk.PRIVILEGED)
    return False


def _change_folder(judge: Judge, name: str, call: Call) -> bool:
    operands = [word for word in call.words[1:] if word.text not in ("-P", "-L", "-e", "--")]
    judge.places.enter(operands[0] if operands else Word("~"))
    return False


def _remote(judge: Judge, name: str, call: Call) -> bool:
    """Clients that take paths of two machines: what has a colon or stands behind the host is not here."""
    _look_all(judge, [word for word in call.words[1:] if ":" not in word.text.partition("/")[0]], writes=True)
    return True


def _ssh(judge: Judge, name: str, call: Call) -> bool:
    """What the other machine runs is judged as if it ran here; that is the nearest thing that can be said of it."""
    words = list(call.words[1:])
    while words and words[0].text.startswith("-"):
        words = words[2:] if words[0].text[1:] in tuple("BbcDEeFIiJLlmOopQRSWw") else words[1:]
    script = " ".join(word.text for word in words[1:])
    if script:
        judge.line(script)
    return True


def _fetching(judge: Judge, name: str, call: Call) -> bool:
    judge.raise_to(Risk.WRITE, Authority.NETWORK)
    words = list(call.words[1:])
    while words and words[0].text.startswith("-"):
        if words[0].text in ("-c", "--call") and len(words) > 1:
            return judge.line(words[1].text)
        words = words[2:] if words[0].text in ("-p", "--package", "--from", "--with", "--python") else words[1:]
    if not words:
        return False
    if _CRYSTAL.fullmatch(words[0].text) and not _only_shows([word.text for word in words[1:]]):
        judge.raise_to(Risk.PRIVILEGED)
    return judge_call(judge, call._replace(words=words))


def _runner(judge: Judge, name: str, call: Call) -> bool:
    """A manager's ``run``: what follows is judged as well; other verbs are ordinary."""
    verb = call.words[1].text if len(call.words) > 1 else ""
    authority = programs.RUNNERS.get((name, verb))
    if authority is None:
        return _ordinary(judge, name, call)
    judge.raise_to(Risk.WRITE, authority)
    words = list(call.words[2:])
    while words and words[0].text.startswith("-"):
        words = (
            words[2:] if words[0].text in ("-m", "--with", "--from", "-n", "--python", "-p", "--project") else words[1:]
        )
    if name == "coverage" and "-m" in [word.text for word in call.words]:
        return _module(judge, call.after([word.text for word in call.words].index("-m") + 1))
    if verb == "tool":
        words = words[1:]
    return judge_call(judge, call._replace(words=words)) if words else False


def _busybox(judge: Judge, name: str, call: Call) -> bool:
    return judge_call(judge, call.after(1))


def _su(judge: Judge, name: str, call: Call) -> bool:
    texts = [word.text for word in call.words]
    for option in ("-c", "--command"):
        if option in texts[:-1]:
            return judge.line(texts[texts.index(option) + 1])
    return False


def _placing(judge: Judge, name: str, call: Call) -> bool:
    """Programs that put each operand into a folder under its own name, where a link may lie already."""
    _look_all(judge, call.words[1:], writes=True)
    operands = [word.text.rstrip("/") for word in call.words[1:] if not word.text.startswith("-")]
    named = [word.text for word in call.words[1:] if word.text.startswith(("-t", "--target-directory="))]
    targets = [
        *operands[-1:],
        *(text.removeprefix("-t").partition("=")[2] or text.removeprefix("-t") for text in named),
    ]
    if any(text == "-t" for text in named):
        targets += operands
    places = [f"{target}/{text.rpartition('/')[2]}" for target in dict.fromkeys(targets) for text in operands if target]
    if len(places) > MOST_PLACES:
        judge.raise_to(Risk.PRIVILEGED)
    for place in places[:MOST_PLACES]:
        judge.places.look_at(place, writes=True)
    judge.places.move([*operands, *places] if name in ("mv", "ln") else [])
    return False


def _date(judge: Judge, name: str, call: Call) -> bool:
    """An operand without the plus sign sets the clock."""
    texts = [word.text for word in call.words[1:]]
    values = {at + 1 for at, text in enumerate(texts) if text in ("-d", "--date", "-r", "-f", "-v", "-I")}
    sets = any(not text.startswith(("+", "-")) and at not in values for at, text in enumerate(texts))
    if sets or _has_option(texts, ("-s", "--set")):
        judge.raise_to(Risk.PRIVILEGED, Authority.PRIVILEGED_ESCALATION)
    return False


_Handler = Callable[["Judge", str, Call], bool]
_HANDLERS: Mapping[str, _Handler] = {
    "env": _env,
    "command": _command,
    "time": _time,
    "watch": _watch,
    "flock": _flock,
    "eval": _eval,
    "source": _source,
    ".": _source,
    "trap": _trap,
    "alias": _alias,
    "git": _git,
    "find": _find,
    "rm": _rm,
    "chmod": _change_mode,
    "chown": _change_mode,
    "chgrp": _change_mode,
    "kill": _kill,
    "date": _date,
    "dd": _dd,
    "docker": _docker,
    "podman": _docker,
    "nerdctl": _docker,
    "docker-compose": _docker,
    "tar": _tar,
    "cd": _change_folder,
    "pushd": _change_folder,
    "scp": _remote,
    "rsync": _remote,
    "ssh": _ssh,
    "su": _su,
    "runuser": _su,
    **dict.fromkeys(("cp", "mv", "install", "ln"), _placing),
    "busybox": _busybox,
    "toybox": _busybox,
    **dict.fromkeys(programs.FETCHING_RUNNERS, _fetching),
    **dict.fromkeys((program for program, _ in programs.RUNNERS if program != "docker"), _runner),
    **dict.fromkeys(PIP, _pip),
}
