"""The class of shell commands, row by row. Nothing here is ever run: commands are only classified."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crystal.types.approval import Authority, Classification, Risk
from crystal.types.paths import ResolvedPath
from crystal.workspace.fence import Fence
from plugins_builtin.shell_risk import classify_command
from plugins_builtin.shell_risk.syntax import is_readable, parse
from plugins_builtin.shell_risk.words import decode, join, simple_word, simple_words
from tests.plugins_builtin.shell_rows import FORBIDDEN, PRIVILEGED, WRITE

WORKSPACE = Authority.WORKSPACE
OUTSIDE = Authority.OUTSIDE_WORKSPACE
NETWORK = Authority.NETWORK
FILE_NAMES = (
    "plain.py",
    "-L",
    "-c",
    "--files0-from=l",
    "--",
    "@l",
    "id_rsa",
    "a b",
    "a[b]c",
    "x=..",
    "x:..",
    "é",
    ".env",
)
LINKS = {"k1": "../../.ssh/x", "out.d": "/etc", "hook": "../.git/hooks/x", ".hidden": "/etc/hosts", "loop": "loop"}
ESCALATION = Authority.PRIVILEGED_ESCALATION


@pytest.fixture(scope="module")
def fence(tmp_path_factory: pytest.TempPathFactory) -> Fence:
    folder = tmp_path_factory.mktemp("risk").resolve()
    for name in ("user/project/.git/hooks", "user/project/src", "user/project/deep/er", "user/crystal", "user/.ssh"):
        (folder / name).mkdir(parents=True)
    workspace = folder / "user/project"
    for name in ("tools", "keys", "options", "lists", "names/.git", "names/sub"):
        (workspace / name).mkdir(parents=True)
    for name in ("keyring", "keys/a"):
        (workspace / name).symlink_to(folder / "user/.ssh/x")
    (workspace / "id_rsa").touch()
    (folder / "user/.netrc").touch()
    (workspace / "tools/pre-commit").symlink_to("../.git/hooks/pre-commit")
    (workspace / "tools/leaves").symlink_to("/etc/hosts")
    for name in ("options/-L", "lists/@names", *(f"names/{name}" for name in FILE_NAMES)):
        (workspace / name).touch()
    for name, target in LINKS.items():
        (workspace / "names" / name).symlink_to(target)
    (workspace / "out").symlink_to(folder)
    (workspace / "hooks").symlink_to(workspace / ".git/hooks")
    (workspace / "src/leave").symlink_to("/etc")
    return Fence(workspace=workspace, home=folder / "user/crystal", user_home=folder / "user")


def classify(command: str, fence: Fence) -> Classification:
    return classify_command(command.replace("{ws}", str(fence.workspace)), fence)


@pytest.mark.parametrize("command", WRITE)
def test_plain_work_inside_the_workspace_is_write(fence: Fence, command: str) -> None:
    found = classify(command, fence)
    assert (found.risk, found.authority) == (Risk.WRITE, WORKSPACE)


@pytest.mark.parametrize("command", PRIVILEGED)
def test_whatever_is_not_surely_harmless_is_privileged(fence: Fence, command: str) -> None:
    found = classify(command, fence)
    assert found.risk is Risk.PRIVILEGED
    assert OUTSIDE not in found.authority or command.startswith("python /x")


@pytest.mark.parametrize("command", FORBIDDEN)
def test_ruin_and_credentials_are_forbidden(fence: Fence, command: str) -> None:
    assert classify(command, fence).risk is Risk.FORBIDDEN


@pytest.mark.parametrize(
    ("command", "authority"),
    [
        ("cat /etc/hosts", WORKSPACE | OUTSIDE),
        ("cat ../x", WORKSPACE | OUTSIDE),
        ("cat ~/x", WORKSPACE | OUTSIDE),
        ("ls ~", WORKSPACE | OUTSIDE),
        ("ls ..", WORKSPACE | OUTSIDE),
        ("cat out/x", WORKSPACE | OUTSIDE),
        ("cat src/leave", WORKSPACE | OUTSIDE),
        ("cd src && cat leave/hosts", WORKSPACE | OUTSIDE),
        ("cd src; cat leave/hosts", WORKSPACE | OUTSIDE),
        ("true || cd src && cat leave/hosts", WORKSPACE | OUTSIDE),
        ("cd / && cat etc/hosts", WORKSPACE | OUTSIDE),
        ("cd .. && cat x", WORKSPACE | OUTSIDE),
        ("echo x > /tmp/x", WORKSPACE | OUTSIDE),
        ("wc -l < ../x", WORKSPACE | OUTSIDE),
        ("cp a /tmp", WORKSPACE | OUTSIDE),
        ("cp -t/tmp a", WORKSPACE | OUTSIDE),
        ("cp leaves tools", WORKSPACE | OUTSIDE),
        ("mv src/leaves a tools/", WORKSPACE | OUTSIDE),
        ("cp x ./o*", WORKSPACE | OUTSIDE),
        ("cat ./[o]/s", WORKSPACE | OUTSIDE),
        ("cat ou?", WORKSPACE | OUTSIDE),
        ("ls src/*", WORKSPACE | OUTSIDE),
        ("ls .*", WORKSPACE | OUTSIDE),
        ("cd src && ls l*", WORKSPACE | OUTSIDE),
        ("cd src; ls l*", WORKSPACE | OUTSIDE),
        ("grep le* src/l*", WORKSPACE | OUTSIDE),
        ("find . -name t -newer o*", WORKSPACE | OUTSIDE),
        ("rg -g o* x", WORKSPACE | OUTSIDE),
        ("grep x -r /etc", WORKSPACE | OUTSIDE),
        ("find / -name x", WORKSPACE | OUTSIDE),
        ("du -X/etc/x .", WORKSPACE | OUTSIDE),
        ("wc --files0-from=/etc/x", WORKSPACE | OUTSIDE),
        ("pytest --cov-report=html:/tmp/x", WORKSPACE | OUTSIDE),
        ("python a.py --out=../x", WORKSPACE | OUTSIDE),
        ("cat /etc/*", WORKSPACE | OUTSIDE),
        ("cat src/*/../../../x", WORKSPACE | OUTSIDE),
        ("cat ~root/x", WORKSPACE | OUTSIDE),
        ("rm -rf /tmp/pwn", WORKSPACE | OUTSIDE),
        ("curl example.com", WORKSPACE | NETWORK),
        ("/usr/bin/curl example.com", WORKSPACE | NETWORK),
        ("timeout 5 curl example.com", WORKSPACE | NETWORK),
        ("echo $(curl example.com)", WORKSPACE | NETWORK),
        ("sh -c 'curl example.com'", WORKSPACE | NETWORK),
        ("pip install x", WORKSPACE | NETWORK),
        ("python -m pip install x", WORKSPACE | NETWORK),
        ("npm ci", WORKSPACE | NETWORK),
        ("git push", WORKSPACE | NETWORK),
        ("git -C src fetch", WORKSPACE | NETWORK),
        ("exec 3<>/dev/tcp/example.com/80", WORKSPACE | NETWORK),
        ("echo x > /dev/tcp/example.com/80", WORKSPACE | NETWORK),
        ("python -m http.server", WORKSPACE | NETWORK),
        ("git clone https://example.com/x", WORKSPACE | NETWORK),
        ("npx prettier .", WORKSPACE | NETWORK),
        ("uvx ruff check", WORKSPACE | NETWORK),
        ("cargo add serde", WORKSPACE | NETWORK),
        ("go get example.com/x", WORKSPACE | NETWORK),
        ("docker ps", WORKSPACE | NETWORK),
        ("docker run -v /:/host x", WORKSPACE | NETWORK | OUTSIDE),
        ("for f in /etc/*; do wc -l $f; done", WORKSPACE | OUTSIDE),
        ("x=/etc/hosts; cat $x", WORKSPACE | OUTSIDE),
        ("cat $HOME/x", WORKSPACE | OUTSIDE),
        ("cat ${HOME}/x", WORKSPACE | OUTSIDE),
        ("cd; cat x", WORKSPACE | OUTSIDE),
        ("(cd ..; ls) && ls", WORKSPACE | OUTSIDE),
        ("git -C .. status", WORKSPACE | OUTSIDE),
        ("make -C ..", WORKSPACE | OUTSIDE),
        ("python - <<'EOF' > /tmp/x\nprint(1)\nEOF", WORKSPACE | OUTSIDE),
        ("git config --global user.name x", WORKSPACE | OUTSIDE),
        ("mount /dev/sdb1 deep", WORKSPACE | ESCALATION | OUTSIDE),
        ("systemctl restart x", WORKSPACE | ESCALATION),
        ("date -s now", WORKSPACE | ESCALATION),
        ("sudo id", WORKSPACE | ESCALATION),
        ("env A=1 sudo id", WORKSPACE | ESCALATION),
        ("su -c 'curl x'", WORKSPACE | ESCALATION | NETWORK),
    ],
)
def test_what_a_command_reaches_is_named(fence: Fence, command: str, authority: Authority) -> None:
    found = classify(command, fence)
    assert found.authority == authority
    assert found.risk is not Risk.READ


INSTALLS = [
    ("npm ci", Risk.WRITE),
    ("npm install", Risk.WRITE),
    ("npm install -g x", Risk.PRIVILEGED),
    ("npm publish", Risk.PRIVILEGED),
    ("yarn", Risk.WRITE),
    ("pnpm add x", Risk.WRITE),
    ("pnpm add --global x", Risk.PRIVILEGED),
    ("bun install", Risk.WRITE),
    ("poetry install", Risk.WRITE),
    ("uv sync", Risk.WRITE),
    ("uv tool install x", Risk.PRIVILEGED),
    ("pipenv install", Risk.WRITE),
    ("pipenv install --system", Risk.PRIVILEGED),
    ("pdm add x", Risk.WRITE),
    ("pip install x", Risk.PRIVILEGED),
    ("pip3 install -r requirements.txt", Risk.PRIVILEGED),
    ("python -m pip install x", Risk.PRIVILEGED),
    (".venv/bin/pip install x", Risk.WRITE),
    (".venv/bin/pip install --user x", Risk.PRIVILEGED),
    ("pip download x", Risk.WRITE),
    ("cargo fetch", Risk.WRITE),
    ("cargo install x", Risk.PRIVILEGED),
    ("cargo publish", Risk.PRIVILEGED),
    ("go get x", Risk.WRITE),
    ("go install x@latest", Risk.PRIVILEGED),
    ("bundle install", Risk.WRITE),
    ("composer install", Risk.WRITE),
    ("composer global require x", Risk.PRIVILEGED),
    ("gem install x", Risk.PRIVILEGED),
    ("pipx install x", Risk.PRIVILEGED),
    ("conda install x", Risk.PRIVILEGED),
    ("brew install x", Risk.PRIVILEGED),
    ("apt-get install -y x", Risk.PRIVILEGED),
    ("apk add x", Risk.PRIVILEGED),
    ("pacman -S x", Risk.PRIVILEGED),
    ("dotnet restore", Risk.WRITE),
    ("git push", Risk.WRITE),
    ("git push -f", Risk.PRIVILEGED),
    ("git push --force-with-lease", Risk.PRIVILEGED),
    ("git push --forc", Risk.PRIVILEGED),
    ("git push origin +main", Risk.PRIVILEGED),
    ("git push origin :main", Risk.PRIVILEGED),
    ("git push --delete origin main", Risk.PRIVILEGED),
    ("git push --mirror", Risk.PRIVILEGED),
    ("git fetch --upload-pack=x", Risk.PRIVILEGED),
    ("git clone -c core.pager=x y", Risk.PRIVILEGED),
    ("git clone ext::sh", Risk.PRIVILEGED),
    ("curl -K f x", Risk.PRIVILEGED),
    ("rsync -e sh a b", Risk.PRIVILEGED),
    ("ssh -o ProxyCommand=x host", Risk.PRIVILEGED),
    ("scp -S x a host:b", Risk.PRIVILEGED),
    ("GIT_SSH_COMMAND=x git fetch", Risk.PRIVILEGED),
    ("docker run x", Risk.PRIVILEGED),
    ("podman run x", Risk.PRIVILEGED),
    ("docker compose up", Risk.PRIVILEGED),
    ("uvx crystal-harness run", Risk.PRIVILEGED),
    ("npx crystal run x", Risk.PRIVILEGED),
    ("npx cowsay", Risk.WRITE),
    ("curl -o f example.com", Risk.WRITE),
    ("wget example.com/f", Risk.WRITE),
    ("gh pr list", Risk.WRITE),
]
"""What reaches the network."""


@pytest.mark.parametrize(("command", "risk"), INSTALLS)
def test_what_reaches_the_network_has_its_own_risk(fence: Fence, command: str, risk: Risk) -> None:
    found = classify(command, fence)
    assert found.risk is risk
    assert NETWORK in found.authority


@pytest.mark.parametrize(
    ("command", "summary"),
    [
        ("ls", "ls"),
        (" ls\n", "ls"),
        ("ls\r\nrm x", "ls\\r\\nrm x"),
        ("echo \x1b[2K\u202e", "echo \\x1b[2K\\u202e"),
        ("x" * 500, "x" * 199 + "…"),
        ("\n\x1b" + "\x1b" * 500, "\\x1b" * 49 + "\\x1…"),
    ],
)
def test_the_summary_is_one_short_line_that_prints(fence: Fence, command: str, summary: str) -> None:
    found = classify(command, fence).summary
    assert found == summary or (len(found) == 200 and found.isprintable())
    assert found.isprintable()
    assert len(found) <= 200


SHELL_TEXT = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "ls",
                "rm",
                "-rf",
                "/",
                "~",
                "cd",
                "src",
                " ",
                " ",
                "\n",
                ";",
                "&&",
                "||",
                "|",
                "&",
                ">",
                "<",
                "2>&1",
                "'",
                '"',
                "$x",
                "$(",
                ")",
                "`",
                "<(",
                "{",
                "}",
                "*",
                "..",
                "=",
                "\\",
                "#",
                "git",
                "-",
                "\t",
                "!",
                "\x00",
                "\ud800",
                "é",
            ]
        ),
        st.text(max_size=5),
    ),
    max_size=25,
).map("".join)


@settings(max_examples=100, deadline=None)
@given(command=SHELL_TEXT)
@example(command="cd a;" * 300 + "ls")
@example(command="sh -c " * 200 + "'sh -c \"x y\"'")
@example(command="ls " + "a:" * 3000)
def test_every_text_gets_a_class_and_none_is_read(fence: Fence, command: str) -> None:
    assert classify_command(command, fence).risk >= Risk.WRITE


WHOLE = [
    row
    for row in (*WRITE, *PRIVILEGED, *FORBIDDEN)
    if row.strip() and "#" not in row and is_readable(row) and not parse(row).has_error
]
"""Rows that stay whole commands when something is put before or behind them."""


@settings(max_examples=100, deadline=None)
@given(parts=st.lists(st.sampled_from(WHOLE), min_size=2, max_size=4), data=st.data())
def test_a_list_is_at_least_as_bad_as_its_first_part(fence: Fence, parts: list[str], data: st.DataObject) -> None:
    if any("<<" in part for part in parts[:-1]):
        parts = parts[:1]
    glue = data.draw(st.sampled_from([" ; ", "\n", " & "]))
    assert classify(glue.join(parts), fence).risk >= classify(parts[0], fence).risk


def quoted(command: str) -> str:
    return shlex.quote(command)


WRAPS: dict[str, Callable[[str], str]] = {
    "sh -c": lambda command: f"sh -c {quoted(command)}",
    "bash -lc": lambda command: f"bash -lc {quoted(command)}",
    "env sh": lambda command: f"env A=1 bash -c {quoted(command)}",
    "env -S": lambda command: f"env -S {quoted('sh -c ' + quoted(command))}",
    "timeout": lambda command: f"timeout 5 sh -c {quoted(command)}",
    "nice": lambda command: f"nice -n 3 sh -c {quoted(command)}",
    "xargs": lambda command: f"xargs -n 1 sh -c {quoted(command)}",
    "sudo": lambda command: f"sudo -u me sh -c {quoted(command)}",
    "find": lambda command: f"find . -exec sh -c {quoted(command)} ';'",
    "trap": lambda command: f"trap {quoted(command)} EXIT",
    "eval": lambda command: f"eval {quoted(command)}",
    "watch": lambda command: f"watch -n 1 {quoted(command)}",
    "subshell": lambda command: f"( {command}\n)",
    "group": lambda command: "{ " + command + "\n}",
    "substitution": lambda command: f"echo $( {command}\n)",
    "in quotes": lambda command: f'echo "a $( {command}\n) b"',
    "default": lambda command: "echo ${x:-$( " + command + "\n)}",
    "process": lambda command: f"cat <( {command}\n)",
    "assignment": lambda command: f"x=$( {command}\n)",
    "pipeline": lambda command: f"echo a | ( {command}\n) | cat",
    "and": lambda command: f"true && ( {command}\n)",
    "or": lambda command: f"false || ( {command}\n)",
    "list": lambda command: f"ls; ( {command}\n); ls",
    "newline": lambda command: f"ls\n( {command}\n)\nls",
    "background": lambda command: f"( {command}\n) & ls",
    # A mark of its own for each: the first line that equals it ends the text.
    "heredoc": lambda command: f"bash <<'END{len(command)}'\n{command}\nEND{len(command)}",
    "function": lambda command: "f() { " + command + "\n}\nf",
    "if": lambda command: f"if true; then {command}\nfi",
    "while": lambda command: f"while false; do {command}\ndone",
    "case": lambda command: f"case x in x) {command}\n;; esac",
    "negated": lambda command: f"! ( {command}\n)",
    "redirected": lambda command: f"( {command}\n) > f 2>&1",
}


@settings(max_examples=400, deadline=None)
@given(row=st.sampled_from(WHOLE), wraps=st.lists(st.sampled_from(sorted(WRAPS)), min_size=1, max_size=3))
def test_no_wrapping_lowers_the_class(fence: Fence, row: str, wraps: list[str]) -> None:
    inner = classify(row, fence)
    command = row.replace("{ws}", str(fence.workspace))
    for wrap in wraps:
        command = WRAPS[wrap](command)
    whole = classify_command(command, fence)
    assert whole.risk >= inner.risk, command
    assert inner.authority & ~whole.authority == Authority(0), command


@settings(max_examples=200, deadline=None)
@given(words=st.sampled_from(["rm -rf /", "rm -rf x", "git push -f", "sudo id", "cat id_rsa"]), data=st.data())
def test_no_quoting_lowers_the_class(fence: Fence, words: str, data: st.DataObject) -> None:
    def disguise(word: str) -> str:
        way = data.draw(st.sampled_from(["plain", "single", "double", "ansi", "split", "escaped"]))
        cut = data.draw(st.integers(0, len(word)))
        match way:
            case "single":
                return f"'{word}'"
            case "double":
                return f'"{word}"'
            case "ansi":
                return "$'" + "".join(f"\\x{ord(char):02x}" for char in word) + "'"
            case "split":
                return f"{word[:cut]}''{word[cut:]}" if 0 < cut < len(word) else f"{word}''"
            case "escaped":
                return word[:cut] + "\\" + word[cut:] if cut < len(word) else word
            case _:
                return word

    plain = classify(words, fence)
    hidden = classify(" ".join(disguise(word) for word in words.split()), fence)
    assert (hidden.risk, hidden.authority) >= (plain.risk, plain.authority) or hidden.risk >= plain.risk
    assert plain.authority & ~hidden.authority == Authority(0)


def test_a_long_line_is_judged_in_little_work(fence: Fence) -> None:
    class Counting:
        resolved = 0

        def resolve(self, text: str) -> ResolvedPath:
            self.resolved += 1
            return fence.resolve(text)

    counting = Counting()
    words = 1_000
    classify_command("cd a; " * 500 + "ls " + "b " * words, counting)
    assert counting.resolved < 30 * (words + 500)


READERS = [
    "cat", "ls", "wc -l", "md5sum", "du", "strings", "stat", "echo", "sort", "grep x", "grep", "rg x", "find", "file",
    "git diff --", "git log", "diff plain.py", "sed -n 1p", "test -f", "pytest", "cut -f 1", "find . -name",
]  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(
    reader=st.sampled_from(READERS),
    name=st.sampled_from([*FILE_NAMES, *LINKS, ".git", "sub"]),
    way=st.sampled_from([("", "names/"), ("cd names && ", ""), ("cd names; ", "./"), ("", "{ws}/names/")]),
    sign=st.sampled_from(["*", "?", "[{}]"]),
    data=st.data(),
)
def test_a_pattern_is_as_bad_as_every_name_it_meets(
    fence: Fence, reader: str, name: str, way: tuple[str, str], sign: str, data: st.DataObject
) -> None:
    entered, folder = way
    start = data.draw(st.integers(min_value=name.startswith("."), max_value=len(name) - 1))
    end = data.draw(st.integers(min_value=start + 1, max_value=len(name)))
    signs = (
        "*" if sign == "*" else "".join("?" if sign == "?" or not it.isalnum() else f"[{it}]" for it in name[start:end])
    )
    quoted = [shlex.quote(part) if part else "" for part in (name[:start], name[end:])]
    met = classify(f"{entered}{reader} {folder}{quoted[0]}{signs}{quoted[1]}", fence)
    written = classify(f"{entered}{reader} {folder}{shlex.quote(name)}", fence)
    assert met.risk >= written.risk
    assert met.authority | written.authority == met.authority


def test_a_pattern_over_a_huge_folder_is_privileged_and_few_names_are_looked_at(tmp_path: Path) -> None:
    workspace = tmp_path.resolve()
    (workspace / "many").mkdir()
    for number in range(9_000):
        (workspace / f"many/{number}").touch()
    fence = Fence(workspace=workspace, home=workspace / "home", user_home=workspace / "user")
    assert classify("ls many/*", fence).risk is Risk.WRITE
    assert classify("ls many/1* many/2*", fence).risk is Risk.PRIVILEGED
    for number in range(600):
        (workspace / f"many/l{number}").symlink_to("x")
    assert classify("ls many/l*", fence).risk is Risk.PRIVILEGED


def test_a_copy_with_countless_places_is_privileged(fence: Fence) -> None:
    sources = " ".join(f"a{number}" for number in range(100))
    assert classify(f"cp {sources} b", fence).risk is Risk.WRITE
    assert classify(f"cp {' '.join([sources] * 6)} b", fence).risk is Risk.PRIVILEGED


@pytest.mark.parametrize(
    "command", ["(" * 2_000 + "ls" + ")" * 2_000, "echo " + "$(echo " * 500 + ")" * 500, "a;" * 60_000]
)
def test_a_line_beyond_all_measure_is_privileged(fence: Fence, command: str) -> None:
    assert classify(command, fence).risk is Risk.PRIVILEGED


def test_a_simple_word_is_what_the_whole_reading_makes_of_it() -> None:
    seen = 0
    for command in filter(is_readable, (*WRITE, *PRIVILEGED, *FORBIDDEN)):
        pending = [parse(command)]
        while pending:
            node = pending.pop()
            pending += node.children
            simple = simple_word(node)
            if simple is not None:
                seen += 1
                assert join(decode(node, {})) == [simple], (command, node.type)
    assert seen > 1_000


PARTS = [
    "a",
    "ls",
    "-x",
    "--y=z",
    "A=1",
    "1",
    "src/*.py",
    "?",
    "'b c'",
    '"d e"',
    "''",
    '""',
    "~",
    "a:b",
    "+",
    "@x",
    ".",
]
SEPARATORS = [" ", "  ", "", "=", "\\", "$x", "[", "'", '"', "\n", "\t", "{a,b}", "!"]


@given(parts=st.lists(st.tuples(st.sampled_from(PARTS), st.sampled_from(SEPARATORS)), min_size=1, max_size=6))
@example([("ls", " "), ("A=1", " ")])
@example([("A=1", " "), ("ls", "")])
@settings(max_examples=400, deadline=None)
def test_the_words_of_a_simple_command_are_those_of_its_tree(parts: list[tuple[str, str]]) -> None:
    root = parse("".join(map("".join, parts)))
    pending = [root]
    while pending:
        node = pending.pop()
        pending += node.children
        simple = simple_words(node) if node.type == "command" else None
        if simple is not None:
            assert "variable_assignment" not in [child.type for child in node.children]
            assert simple == [word for child in node.children for word in join(decode(child, {}))]
