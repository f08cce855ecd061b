"""``crystal permissions``: what was granted for good is listed as it is, and taken back whole or not at all."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from crystal.cli.app import run_command_line
from crystal.cli.permissions import grant_id
from crystal.store.home import Home
from crystal.store.permissions import Grant, add_grants, load_grants
from crystal.testing.crystaler import Crystaler
from tests.cli.line_terminal import CRYSTAL

HOSTILE = "echo \x1b[2J\u202e\u200b\nrm\tx"
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def home(crystaler: Crystaler) -> Home:
    return Home(root=crystaler.home)


@pytest.fixture
def given(crystaler: Crystaler, home: Home) -> dict[str, Grant]:
    """Four grants, one of them of another workspace that is gone."""
    here = str(crystaler.workspace)
    grants = {
        "write": Grant(workspace=here, origin="builtin:files", tool="write"),
        "npm": Grant(workspace=here, origin="builtin:shell", tool="bash", command="npm ci"),
        "git": Grant(workspace=here, origin="builtin:shell", tool="bash", command="git status"),
        "other": Grant(workspace="/nowhere/any more", origin="builtin:shell", tool="bash", command="npm ci"),
    }
    for grant in grants.values():
        add_grants(home, [grant])
    return grants


@pytest.fixture
def command(crystaler: Crystaler, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run ``crystal permissions`` in the workspace and return exit code, stdout and stderr."""
    monkeypatch.chdir(crystaler.workspace)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = run_command_line(["permissions", *arguments, "--home", str(crystaler.home)])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


def listed(command: Command, *arguments: str) -> list[dict[str, Any]]:
    code, out, _ = command("list", "--format", "json", *arguments)
    assert code == 0
    rows = json.loads(out)
    assert isinstance(rows, list)
    return rows


def test_the_grants_of_the_workspace_are_listed_in_order(command: Command, given: dict[str, Grant]) -> None:
    rows = listed(command)
    assert [row["id"] for row in rows] == [grant_id(given[name]) for name in ("write", "npm", "git")]
    assert rows[1] == {
        "id": grant_id(given["npm"]),
        "workspace": given["npm"].workspace,
        "origin": "builtin:shell",
        "tool": "bash",
        "command": "npm ci",
    }
    assert rows[0]["command"] is None
    assert [row["workspace"] for row in listed(command, "--all")][-1] == "/nowhere/any more"
    assert [row["workspace"] for row in listed(command, "-w", "/nowhere/any more")] == ["/nowhere/any more"]
    assert listed(command, "--all", "-w", "/nowhere/any more") == listed(command, "-w", "/nowhere/any more")


def test_text_and_table_show_the_same(command: Command, given: dict[str, Grant]) -> None:
    _, text, _ = command("list", "--format", "text")
    lines = text.splitlines()
    assert lines[0].split() == ["id", "workspace", "origin", "tool", "command"]
    assert [line.split()[0] for line in lines[1:]] == [row["id"] for row in listed(command)]
    assert lines[1].endswith("<every call>")
    assert lines[2].endswith("bash   npm ci")
    assert "npm ci" in command("list")[1]


@pytest.mark.parametrize("form", ["table", "text", "json"])
def test_without_grants_the_list_is_empty_and_nothing_is_made(
    crystaler: Crystaler, command: Command, form: str
) -> None:
    code, out, err = command("list", "--format", form)
    assert (code, err) == (0, "")
    assert json.loads(out) == [] if form == "json" else "command" in out
    assert not crystaler.home.exists()


def test_an_id_stays_the_same_whatever_else_goes(command: Command, given: dict[str, Grant]) -> None:
    before = {row["command"]: row["id"] for row in listed(command, "--all")}
    assert command("revoke", grant_id(given["write"]))[0] == 0
    assert {row["command"]: row["id"] for row in listed(command, "--all")}["git status"] == before["git status"]


@pytest.mark.parametrize(
    ("arguments", "gone"),
    [
        (["{npm}"], ["npm"]),
        (["{npm:.6}", "{other}"], ["npm", "other"]),
        (["{npm}", "{npm}"], ["npm"]),
        (["--tool", "bash"], ["npm", "git"]),
        (["--tool", "bash", "--command", "npm ci"], ["npm"]),
        (["--tool", "bash", "--command", "npm ci", "--all", "--yes"], ["npm", "other"]),
        (["--tool", "bash", "-w", "/nowhere/any more"], ["other"]),
        (["--all", "--yes"], ["write", "npm", "git", "other"]),
        (["--all", "--yes", "-w", "."], ["write", "npm", "git"]),
    ],
)
def test_what_is_named_is_revoked_and_listed(
    home: Home, command: Command, given: dict[str, Grant], arguments: Sequence[str], gone: Sequence[str]
) -> None:
    ids = {name: grant_id(grant) for name, grant in given.items()}
    code, out, _ = command("revoke", *(argument.format(**ids) for argument in arguments), "--format", "json")
    assert code == 0
    assert [row["id"] for row in json.loads(out)] == [ids[name] for name in gone]
    assert list(load_grants(home)) == [grant for name, grant in given.items() if name not in gone]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "nothing is named"),
        (["{npm}", "nothing"], "no grant 'nothing'"),
        (["nothing", "{npm}"], "no grant 'nothing'"),
        ([""], "no grant ''"),
        (["\x1b[2J"], "no grant '\\\\x1b[2J'"),
        (["{npm}", "--tool", "bash"], "leave out --tool"),
        (["{npm}", "--all", "--yes"], "leave out"),
        (["--command", "npm ci"], "--command needs --tool"),
        (["--tool", "nothing"], "no such grant in"),
        (["--tool", "bash", "--command", "npm"], "no such grant"),
        (["--tool", "write", "--command", "npm ci"], "no such grant"),
        (["--all"], "there is no terminal to ask on"),
        (["--all", "--tool", "bash"], "there is no terminal to ask on"),
    ],
)
def test_what_cannot_be_done_changes_nothing_and_is_one_sentence(
    home: Home, command: Command, given: dict[str, Grant], arguments: Sequence[str], words: str
) -> None:
    ids = {name: grant_id(grant) for name, grant in given.items()}
    before = home.permissions_file.read_bytes()
    code, out, err = command("revoke", *(argument.format(**ids) for argument in arguments))
    assert (code, out) == (1, "")
    assert words in err
    assert err.count("\n") == 1
    assert home.permissions_file.read_bytes() == before


def test_a_beginning_that_several_ids_share_is_refused(home: Home, command: Command) -> None:
    for number in range(17):
        add_grants(home, [Grant(workspace="/w", origin="o", tool=str(number))])
    ids = [grant_id(grant) for grant in load_grants(home)]
    shared = next(known[0] for known in ids if sum(other.startswith(known[0]) for other in ids) > 1)
    code, _, err = command("revoke", shared)
    assert code == 1
    assert f"grants begin with '{shared}'" in err
    assert len(load_grants(home)) == 17


def test_a_revoked_grant_is_asked_about_again(crystaler: Crystaler, home: Home, command: Command) -> None:
    add_grants(home, [Grant(workspace=str(crystaler.workspace), origin="builtin:files", tool="write")])
    write = {"toolCalls": [{"name": "write", "arguments": {"path": "a.txt", "content": "x"}}]}
    crystaler.script([write, {"text": "Done."}])
    assert crystaler.run().exit_code == 0
    assert command("revoke", "--tool", "write")[0] == 0
    (crystaler.workspace / "a.txt").unlink()
    assert crystaler.run().exit_code == 4


@pytest.mark.parametrize("arguments", [["list"], ["list", "--all"], ["revoke", "--tool", "t"], ["revoke", "abc"]])
@pytest.mark.parametrize(
    ("text", "place"),
    [("{", "line 1"), ('{"grants":\n[5]}', "line 2, field grants[0]"), ("", "empty"), ("[]", "line 1")],
)
def test_a_broken_file_is_named_and_left(
    home: Home, command: Command, arguments: Sequence[str], text: str, place: str
) -> None:
    home.write_private(home.permissions_file, text.encode())
    code, out, err = command(*arguments)
    assert (code, out) == (1, "")
    assert str(home.permissions_file) in err
    assert place in err
    assert home.permissions_file.read_text() == text


def test_what_this_release_does_not_know_stays(home: Home, command: Command) -> None:
    entries = [{"workspace": "/w", "origin": "o", "tool": tool, "given": "today"} for tool in ("a", "b")]
    home.write_private(home.permissions_file, json.dumps({"later": 1, "grants": entries}).encode())
    assert command("revoke", "--tool", "a", "-w", "/w")[0] == 0
    assert json.loads(home.permissions_file.read_bytes()) == {"later": 1, "grants": entries[1:]}


@pytest.mark.parametrize("form", ["table", "text", "json"])
def test_nothing_in_a_grant_steers_the_terminal(home: Home, command: Command, form: str) -> None:
    add_grants(home, [Grant(workspace=f"/{HOSTILE}", origin=HOSTILE, tool=HOSTILE, command=HOSTILE)])
    code, out, _ = command("list", "--all", "--format", form)
    assert code == 0
    assert [character for character in "\x1b\u202e\u200b\t" if character in out] == []
    if form == "json":
        assert json.loads(out)[0]["command"] == HOSTILE
    if form == "text":
        assert out.count("\n") == 2
        assert "echo \\x1b[2J\\u202e\\u200b\\nrm\\tx" in out
    assert command("revoke", grant_id(load_grants(home)[0]))[0] == 0


@pytest.mark.parametrize(
    "environ", [{}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"COLUMNS": "20"}]
)
def test_it_prints_in_any_locale_and_width(crystaler: Crystaler, home: Home, environ: dict[str, str]) -> None:
    add_grants(home, [Grant(workspace="/w\u00e9", origin="o", tool="t", command="echo \u754c \U0001f600")])
    crystaler.environ.update(environ)
    result = crystaler.command("permissions", "list", "--all")
    assert (result.exit_code, result.stderr) == (0, "")


def test_a_closed_stderr_or_stdout_is_no_fault(crystaler: Crystaler, given: dict[str, Grant]) -> None:
    for closed, code in (("2>&-", 0), (">&-", 0), ("2>&- >&- <&-", 0)):
        finished = subprocess.run(
            ["sh", "-c", f'exec "$@" {closed}', "sh", *CRYSTAL, "permissions", "list", "--home", str(crystaler.home)],
            cwd=crystaler.workspace,
            env=crystaler.environ,
            capture_output=True,
            check=False,
        )
        assert (finished.returncode, finished.stderr) == (code, b"")


def test_two_processes_that_revoke_at_once_take_back_what_each_was_told(crystaler: Crystaler, home: Home) -> None:
    grants = [Grant(workspace="/w", origin="o", tool=str(number)) for number in range(20)]
    for grant in grants:
        add_grants(home, [grant])
    revokers = [
        subprocess.Popen(
            [*CRYSTAL, "permissions", "revoke", *map(grant_id, half), "--home", str(crystaler.home)],
            env=crystaler.environ,
            stdout=subprocess.DEVNULL,
        )
        for half in (grants[:9], grants[10:19])
    ]
    assert [revoker.wait(60) for revoker in revokers] == [0, 0]
    assert load_grants(home) == (grants[9], grants[19])


@pytest.mark.parametrize(
    ("typed", "code", "left"),
    [("y\n", 0, 0), ("yes\n", 0, 0), ("\n", 4, 4), ("n\n", 4, 4), ("all\n", 4, 4), ("\x04", 4, 4)],
)
def test_on_a_terminal_it_asks_before_it_revokes_everything(
    crystaler: Crystaler, home: Home, given: dict[str, Grant], typed: str, code: int, left: int
) -> None:
    control, terminal = pty.openpty()
    # What is typed before the question stands there answers nothing.
    os.write(control, b"y\n")
    process = subprocess.Popen(
        [*CRYSTAL, "permissions", "revoke", "--all", "--home", str(crystaler.home)],
        env=crystaler.environ,
        stdin=terminal,
        stdout=subprocess.DEVNULL,
        stderr=terminal,
    )
    os.close(terminal)
    shown = b""
    while not shown.endswith(b"[y/N]: "):
        shown += os.read(control, 4096)
    assert b"Revoke 4 grant(s) of 2 workspace(s)?" in shown
    os.write(control, typed.encode())
    assert process.wait(30) == code
    os.close(control)
    assert len(load_grants(home)) == left


def test_the_command_costs_the_others_nothing() -> None:
    code = (
        "import sys; from crystal.cli.app import run_command_line; run_command_line(['version']);"
        "print('crystal.cli.permissions' in sys.modules)"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert finished.stdout.endswith("False\n")
