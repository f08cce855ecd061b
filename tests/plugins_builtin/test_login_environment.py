"""Commands see what a login shell would see, and its files run once for a session."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from pathlib import Path

import pytest

from plugins_builtin.login_environment import LoginEnvironment, capture, parse
from plugins_builtin.shell import BashTool
from tests.plugins_builtin.test_shell import make_call, make_context

BASH = shutil.which("bash") or "bash"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


def test_the_login_files_run_once_and_every_command_sees_what_they_set(tmp_path: Path, home: Path) -> None:
    (home / ".bash_profile").write_text('echo noise; echo ran >> ~/count\nexport TOOL_PATH="a b\nc"\n')

    async def session() -> list[str]:
        tool = BashTool()
        tool.warm()
        tool.warm()
        outputs = [await tool.invoke(make_call('printf %s "$TOOL_PATH"'), make_context(tmp_path)) for _ in range(3)]
        return [output.text for output in outputs]

    assert asyncio.run(session()) == ["a b\nc\n(exit 0)"] * 3
    assert (home / "count").read_text() == "ran\n"


def test_two_tools_do_not_share_what_they_captured(tmp_path: Path, home: Path) -> None:
    profile = home / ".bash_profile"
    texts = []
    for value in ("first", "second"):
        profile.write_text(f"export WHICH={value}\n")
        output = asyncio.run(BashTool().invoke(make_call("echo $WHICH"), make_context(tmp_path)))
        texts.append(output.text)
    assert texts == ["first\n(exit 0)", "second\n(exit 0)"]


@pytest.mark.parametrize("profile", ["exit 7", "exec false", "unset PATH", "kill -9 $$"])
def test_login_files_that_fail_leave_the_plain_environment(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, profile: str
) -> None:
    monkeypatch.setenv("PLAIN", "here")
    (home / ".bash_profile").write_text(f"export LOGIN=set\n{profile}\n")
    output = asyncio.run(BashTool().invoke(make_call('echo "$PLAIN$LOGIN"'), make_context(tmp_path)))
    assert output.text == "here\n(exit 0)"


def test_the_capture_keeps_nothing_of_the_shell_that_made_it(home: Path) -> None:
    variables = asyncio.run(capture(BASH, {**os.environ, "OLDPWD": "/somewhere", "SHLVL": "7"}))
    assert variables is not None
    assert variables["HOME"] == str(home)
    assert not {"_", "PWD", "OLDPWD", "SHLVL"} & set(variables)


def test_a_login_shell_for_every_command_runs_the_files_each_time(tmp_path: Path, home: Path) -> None:
    (home / ".bash_profile").write_text("echo ran >> ~/count\n")

    async def session() -> None:
        tool = BashTool(login=True)
        tool.warm()
        for _ in range(2):
            await tool.invoke(make_call("true"), make_context(tmp_path))

    asyncio.run(session())
    assert (home / "count").read_text() == "ran\nran\n"


def test_a_cancelled_wait_does_not_end_the_capture_for_others(home: Path) -> None:
    (home / ".bash_profile").write_text("export LOGIN=set\n")

    async def session() -> str:
        environment = LoginEnvironment(BASH)
        impatient = asyncio.create_task(environment.variables())
        patient = asyncio.create_task(environment.variables())
        await asyncio.sleep(0)
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        return (await patient)["LOGIN"]

    assert asyncio.run(session()) == "set"


@pytest.mark.parametrize(
    "printed",
    [
        b"",
        b"PATH=/bin\0",
        b"\0crystal-login-environment\0PATH=/bin\0",
        b"\0crystal-login-environment\0HOME=/root\0\0crystal-login-environment\0",
    ],
)
def test_anything_but_a_whole_environment_is_no_environment(printed: bytes) -> None:
    assert parse(printed) is None


def test_login_files_are_never_killed_half_way(home: Path) -> None:
    """Version managers hold lock files there; whoever leaves early must let them end by themselves."""
    os.mkfifo(home / "go")
    (home / ".bash_profile").write_text("trap '' HUP\nread -r < ~/go\necho ended > ~/done\n")

    async def leave_early() -> object:
        return await capture(BASH, os.environ, seconds=0.05)

    assert asyncio.run(leave_early()) is None
    with open(home / "go", "w") as going:
        going.write("go\n")
    for _ in range(200):
        if (home / "done").exists():
            break
        threading.Event().wait(0.05)
    assert (home / "done").read_text() == "ended\n"
