"""The class of shell commands, row by row. Nothing here is ever run: commands are only classified."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crystal.types.approval import Authority, Classification, Risk
from crystal.types.paths import ResolvedPath
from crystal.workspace.fence import Fence
from plugins_builtin.shell_risk import classify_command
from tests.plugins_builtin.shell_rows import FORBIDDEN, HARMLESS, PRIVILEGED

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


@pytest.mark.parametrize("command", HARMLESS)
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
        ("cat ./[o]/s", WORKSPACE),
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
        ("exec 3<>/dev/tcp/example.com/80", WORKSPACE | NETWORK | OUTSIDE),
        ("sudo id", WORKSPACE | ESCALATION),
        ("env A=1 sudo id", WORKSPACE | ESCALATION),
        ("su -c 'curl x'", WORKSPACE | ESCALATION | NETWORK),
    ],
)
def test_what_a_command_reaches_is_named(fence: Fence, command: str, authority: Authority) -> None:
    found = classify(command, fence)
    assert found.authority == authority
    assert found.risk is not Risk.READ


@pytest.mark.parametrize(
    "command",
    ["cat ~root/x", "cat /etc/host*", "cat src/*/../../../x", "cp x ./o*", "cat ./[o]/s", "cat x=~/q*", "cat x=~q*"],
)
def test_patterns_and_names_of_other_users_outside_are_privileged(fence: Fence, command: str) -> None:
    assert classify(command, fence).risk is Risk.PRIVILEGED


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


@settings(max_examples=100, deadline=None)
@given(
    before=st.sampled_from(["", "ls ", "echo a; ", "cat f | ", "ls > ", "echo 'x' ", 'echo "x" ', "echo 'it''s' x"]),
    opener=st.sampled_from(["$(", "`", "<(", ">(", "${x:-$("]),
    after=st.text(max_size=20),
)
def test_an_unquoted_substitution_is_at_least_privileged(fence: Fence, before: str, opener: str, after: str) -> None:
    assert classify_command(f"{before}{opener}{after}", fence).risk >= Risk.PRIVILEGED


@settings(max_examples=100, deadline=None)
@given(parts=st.lists(st.sampled_from(HARMLESS + PRIVILEGED + FORBIDDEN), min_size=2, max_size=4), data=st.data())
def test_a_list_is_as_bad_as_its_worst_part(fence: Fence, parts: list[str], data: st.DataObject) -> None:
    parts = [part for part in parts if "#" not in part and part.strip()] or ["ls"]
    glue = data.draw(st.sampled_from([" ; ", "\n", " & "]))
    whole = classify(glue.join(parts), fence)
    first = classify(parts[0], fence)
    assert whole.risk >= first.risk
    if all(classify(part, fence).risk is Risk.WRITE for part in parts):
        assert whole.risk is Risk.WRITE


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
    for number in range(6_000):
        (workspace / f"many/{number}").touch()
    fence = Fence(workspace=workspace, home=workspace / "home", user_home=workspace / "user")
    assert classify("ls many/*", fence).risk is Risk.WRITE
    assert classify("ls many/1* many/2*", fence).risk is Risk.PRIVILEGED
    for number in range(6_000, 10_001):
        (workspace / f"many/{number}").touch()
    assert classify("ls many/x*", fence).risk is Risk.PRIVILEGED


def test_a_copy_with_countless_places_is_privileged(fence: Fence) -> None:
    sources = " ".join(f"a{number}" for number in range(100))
    targets = " ".join(f"-t b{number}" for number in range(100))
    assert classify(f"cp {sources} b", fence).risk is Risk.WRITE
    assert classify(f"cp {targets} {sources}", fence).risk is Risk.PRIVILEGED
