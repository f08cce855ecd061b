"""Commands see what a login shell would see, and its files run once for a session."""

from __future__ import annotations

import asyncio
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from crystal.types.approval import ApprovalMode
from crystal.types.session import SessionFacts, TurnFacts
from crystal.types.tools import Catalog
from plugins_builtin.login_environment import LoginEnvironment, capture, parse
from plugins_builtin.shell import BashTool, Plugin
from tests.plugins_builtin.test_shell import make_call, make_context, run

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
        tool.warm(tmp_path)
        tool.warm(tmp_path)
        outputs = [await tool.invoke(make_call('printf %s "$TOOL_PATH"'), make_context(tmp_path)) for _ in range(3)]
        await tool.close()
        return [output.text for output in outputs]

    assert asyncio.run(session()) == ["a b\nc\n(exit 0)"] * 3
    assert (home / "count").read_text() == "ran\n"


def test_two_tools_do_not_share_what_they_captured(tmp_path: Path, home: Path) -> None:
    profile = home / ".bash_profile"
    texts = []
    for value in ("first", "second"):
        profile.write_text(f"export WHICH={value}\n")
        output = run(tmp_path, "echo $WHICH")
        texts.append(output.text)
    assert texts == ["first\n(exit 0)", "second\n(exit 0)"]


@pytest.mark.parametrize("profile", ["exit 7", "exec false", "unset PATH", "kill -9 $$"])
def test_login_files_that_fail_leave_the_plain_environment(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, profile: str
) -> None:
    monkeypatch.setenv("PLAIN", "here")
    (home / ".bash_profile").write_text(f"export LOGIN=set\n{profile}\n")
    output = run(tmp_path, 'echo "$PLAIN$LOGIN"')
    assert output.text == "here\n(exit 0)"


def test_the_capture_keeps_nothing_of_the_shell_that_made_it(home: Path) -> None:
    variables = asyncio.run(capture(BASH, {**os.environ, "OLDPWD": "/somewhere", "SHLVL": "7"}))
    assert variables is not None
    assert variables["HOME"] == str(home)
    assert not {"_", "PWD", "OLDPWD", "SHLVL"} & set(variables)


def test_a_login_shell_for_every_command_runs_the_files_each_time(tmp_path: Path, home: Path) -> None:
    (home / ".bash_profile").write_text("echo ran >> ~/count\n")

    async def session() -> None:
        tool = BashTool()
        for _ in range(2):
            await tool.invoke(make_call("true"), replace(make_context(tmp_path), login_shell=True))
        await tool.close()

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
    os.mkfifo(home / "done")
    (home / ".bash_profile").write_text("trap '' HUP\nread -r < ~/go\necho ended > ~/done\n")

    async def leave_early() -> object:
        return await capture(BASH, os.environ, seconds=0.05)

    assert asyncio.run(leave_early()) is None
    with open(home / "go", "w") as going:
        going.write("go\n")
    assert (home / "done").read_text() == "ended\n"


def put_canary(folder: Path, name: str, touched: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\ntouch '{touched}'\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize("entry", ["{ws}", "{ws}/bin", "{link}", "", ".", "bin"])
def test_a_bash_of_the_workspace_is_never_started(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    workspace, touched = tmp_path / "ws", tmp_path / "touched"
    for folder in (workspace, workspace / "bin"):
        put_canary(folder, "bash", touched)
    (tmp_path / "link").symlink_to(workspace / "bin")
    monkeypatch.chdir(workspace)
    first = entry.format(ws=workspace, link=tmp_path / "link")
    monkeypatch.setenv("PATH", f"{first}{os.pathsep}{os.environ['PATH']}")
    os.mkfifo(home / "begun")
    (home / ".bash_profile").write_text("echo ran >> ~/count; : > ~/begun\n")

    async def session() -> str:
        plugin = Plugin()
        facts = SessionFacts(id="session", workspace=workspace, approval=ApprovalMode.DEFAULT)
        (contribution,) = plugin.contribute_tools()
        plugin.on_session_started(facts)
        plugin.on_turn_started(TurnFacts(text="x", mode=Catalog.WORK))
        begun = os.open(home / "begun", os.O_RDONLY | os.O_NONBLOCK)
        warmed = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().add_reader(begun, lambda: warmed.done() or warmed.set_result(None))
        await asyncio.wait_for(warmed, 30)
        asyncio.get_running_loop().remove_reader(begun)
        os.close(begun)
        text = (await contribution.tool.invoke(make_call("echo ran"), make_context(workspace))).text
        await plugin.on_session_ended(facts)
        return text

    assert asyncio.run(session()) == "ran\n(exit 0)"
    assert (home / "count").read_text() == "ran\n"
    assert not touched.exists()


def test_a_bash_that_becomes_one_of_the_workspace_is_not_started_either(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The place of bash is remembered, but not what it leads to."""
    workspace, touched = tmp_path / "ws", tmp_path / "touched"
    put_canary(workspace / "bin", "bash", touched)
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "bash").symlink_to(BASH)
    monkeypatch.setenv("PATH", f"{tmp_path / 'links'}{os.pathsep}{os.environ['PATH']}")

    async def session() -> list[str]:
        tool = BashTool()
        texts = []
        for target in (BASH, workspace / "bin" / "bash", None):
            (tmp_path / "links" / "bash").unlink()
            if target is not None:
                (tmp_path / "links" / "bash").symlink_to(target)
            texts.append((await tool.invoke(make_call("echo $BASH"), make_context(workspace))).text)
        await tool.close()
        return texts

    first, *others = asyncio.run(session())
    assert first == f"{tmp_path / 'links' / 'bash'}\n(exit 0)"
    assert others == [f"{BASH}\n(exit 0)"] * 2
    assert not touched.exists()


def test_no_program_of_the_workspace_is_started_when_the_login_files_put_it_first(tmp_path: Path, home: Path) -> None:
    put_canary(tmp_path / "bin", "env", tmp_path / "touched")
    (home / ".bash_profile").write_text(f"export PATH='{tmp_path}/bin':$PATH LOGIN=set\n")
    output = run(tmp_path, "echo $LOGIN")
    assert output.text == "set\n(exit 0)"
    assert not (tmp_path / "touched").exists()


def test_without_another_bash_the_one_of_the_workspace_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_canary(tmp_path, "bash", tmp_path / "touched")
    monkeypatch.setenv("PATH", str(tmp_path))
    output = run(tmp_path, "true")
    assert output.failed
    assert "bash was not found" in output.text
    assert not (tmp_path / "touched").exists()
