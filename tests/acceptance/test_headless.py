"""A run without a person: stdin of every kind, exit codes, signals, closed pipes; the last line is always whole."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from crystal.testing.crystaler import Crystaler
from tests.local_server import Answer, HangUp, LocalServer, Wait, chat_answer, json_answer

PROGRAM = [sys.executable, "-P", "-c", "from crystal.cli.main import main; main()", "run"]
CHUNK = b'data: {"choices":[{"index":0,"delta":{"content":"I begin"}}]}\n\n'


def start(crystaler: Crystaler, *arguments: str, **streams: Any) -> subprocess.Popen[bytes]:
    environ = {**crystaler.environ, "CRYSTAL_HOME": str(crystaler.home)}
    return subprocess.Popen([*PROGRAM, *arguments], cwd=crystaler.workspace, env=environ, **streams)


def serve(crystaler: Crystaler, server: LocalServer) -> None:
    crystaler.makeproviders(
        here={
            "protocol": "openai",
            "baseUri": f"{server.base_uri}/v1",
            "requiresApiKey": False,
            "models": {"m": {"contextWindow": 100_000}},
        }
    )


def last_lines(stdout: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    assert stdout.endswith(b"\n")
    lines = [json.loads(line) for line in stdout.split(b"\n")[:-1]]
    return lines[-2], lines[-1]


# G40: with a task as argument stdin is not read, whatever it is.


def test_an_open_pipe_that_nobody_closes_does_not_hold_the_run(crystaler: Crystaler) -> None:
    script = crystaler.script([{"text": "Done."}])
    reading, writing = os.pipe()
    process = start(
        crystaler, "do it", "--script", str(script), "--format", "final", stdin=reading, stdout=subprocess.PIPE
    )
    try:
        stdout, _ = process.communicate(timeout=30)
    finally:
        os.close(reading)
        os.close(writing)
    assert (process.returncode, stdout) == (0, b"Done.\n")


@pytest.mark.parametrize("given", ["null", "closed", "text", "empty"])
def test_a_task_as_argument_leaves_stdin_alone(crystaler: Crystaler, given: str) -> None:
    script = crystaler.script([{"text": "Done.", "expect": {"contains": "do it"}}])
    arguments = ["do it", "--script", str(script), "--format", "final"]
    if given == "closed":
        process = start(
            crystaler, *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=lambda: os.close(0)
        )
        stdout, stderr = process.communicate(timeout=30)
    else:
        stdin = subprocess.DEVNULL if given == "null" else subprocess.PIPE
        process = start(crystaler, *arguments, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        stdout, stderr = process.communicate(b"extra" if given == "text" else None, timeout=30)
    assert (process.returncode, stdout, stderr) == (0, b"Done.\n", b"")


def test_without_an_argument_the_task_is_stdin(crystaler: Crystaler) -> None:
    script = crystaler.script([{"text": "Done.", "expect": {"contains": "from a pipe: ä"}}])
    result = crystaler.command("run", "--script", str(script), stdin="from a pipe: ä\n".encode())
    assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize("closed", [True, False])
def test_no_task_at_all_is_said(crystaler: Crystaler, closed: bool) -> None:
    script = crystaler.script([{"text": "Done."}])
    streams: dict[str, Any] = {"preexec_fn": lambda: os.close(0)} if closed else {"stdin": subprocess.DEVNULL}
    process = start(crystaler, "--script", str(script), stderr=subprocess.PIPE, **streams)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 1
    assert b"task" in stderr
    assert b"Traceback" not in stderr


# G41: every way to fail has its exit code, and the last line of JSON says why.


@pytest.mark.parametrize(
    ("answer", "requests", "code", "reason"),
    [
        (json_answer({"error": {"message": "bad key", "code": "invalid_api_key"}}, 401), 1, 2, "model_failed"),
        (
            json_answer({"error": {"message": "no money", "code": "insufficient_quota"}}, 429, retry_after="0"),
            1,
            2,
            "model_failed",
        ),
        (json_answer({"error": {"message": "pay"}}, 402), 1, 2, "model_failed"),
        (json_answer({"error": {"message": "bad"}}, 400), 1, 2, "model_failed"),
        (json_answer({"error": {"message": "broken"}}, 500, retry_after="0"), 6, 2, "model_failed"),
        (json_answer({"error": {"message": "busy"}}, 503, retry_after="0"), 6, 2, "model_failed"),
        (json_answer({"error": {"message": "slow down"}}, 429, retry_after="0"), 6, 2, "model_failed"),
        (json_answer({"error": {"message": "overloaded"}}, 529, retry_after="0"), 6, 2, "model_failed"),
        (json_answer({"error": {"message": "cold"}}, 404, retry_after="0"), 2, 2, "model_failed"),
        (
            json_answer({"error": {"message": "too long", "code": "context_length_exceeded"}}, 400),
            1,
            3,
            "context_overflow",
        ),
    ],
)
def test_a_failed_model_request(crystaler: Crystaler, answer: Answer, requests: int, code: int, reason: str) -> None:
    with LocalServer(lambda _: answer) as server:
        serve(crystaler, server)
        result = crystaler.command("run", "do it", "-p", "here", "--format", "json")
    stopped, closed = last_lines(result.stdout.encode())
    assert len(server.requests) == requests
    assert result.exit_code == stopped["exitCode"] == closed["exitCode"] == code
    assert stopped["reason"] == reason
    message = json.loads(b"".join(chunk for chunk in answer.chunks if isinstance(chunk, bytes)))["error"]["message"]
    assert message in stopped["detail"]
    assert message in result.stderr


def test_a_budget_ends_endless_calls(crystaler: Crystaler) -> None:
    crystaler.makefile("a.txt", "hello\n")
    answer = chat_answer(calls=[("c", "read", {"path": "a.txt"})])
    with LocalServer(lambda _: answer) as server:
        serve(crystaler, server)
        result = crystaler.command("run", "do it", "-p", "here", "--format", "json", "--model-calls", "1")
    stopped, _ = last_lines(result.stdout.encode())
    assert (result.exit_code, stopped["reason"], len(server.requests)) == (3, "round_budget", 1)


def test_a_denied_call_ends_with_four(crystaler: Crystaler) -> None:
    call = {"name": "write", "arguments": {"path": "new.txt", "content": "x"}}
    script = crystaler.script([{"toolCalls": [call]}, {"text": "I could not."}])
    result = crystaler.command("run", "do it", "--script", str(script), "--format", "json")
    stopped, _ = last_lines(result.stdout.encode())
    assert (result.exit_code, stopped["reason"]) == (4, "denied")
    assert not (crystaler.workspace / "new.txt").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_during_the_stream_ends_it_cleanly(crystaler: Crystaler, number: signal.Signals) -> None:
    hold = Wait()
    answers = [Answer(chunks=[CHUNK, hold]), chat_answer("Here again.")]
    with LocalServer(answers) as server:
        serve(crystaler, server)
        process = start(
            crystaler, "do it", "-p", "here", "--format", "json", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        head = process.stdout.readline() + process.stdout.readline()
        until(lambda: len(server.requests) == 1)
        process.send_signal(number)
        stdout = head + process.communicate(timeout=30)[0]
        assert server.client_left.wait(10), "the request was not closed"
        stopped, closed = last_lines(stdout)
        assert process.returncode == stopped["exitCode"] == 5
        assert stopped["reason"] == "interrupted"
        resumed = crystaler.run("go on", "-p", "here", "-r", closed["sessionID"])
    assert resumed.exit_code == 0
    assert [item.text for item in resumed.requests[0].items if item.id != "system"] == ["do it", "go on"]


def test_a_signal_ends_a_running_command(crystaler: Crystaler) -> None:
    plain = crystaler.script([{"toolCalls": [{"name": "bash", "arguments": {"command": "touch mark; sleep 62"}}]}])
    process = start(
        crystaler,
        *("do it", "--script", str(plain), "--format", "json", "--approval", "full"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    until((crystaler.workspace / "mark").exists)
    process.send_signal(signal.SIGTERM)
    stdout, _ = process.communicate(timeout=30)
    stopped, _ = last_lines(stdout)
    assert process.returncode == stopped["exitCode"] == 5
    assert not any("sleep\x0062" in line for line in command_lines())


def test_asking_needs_a_terminal(crystaler: Crystaler) -> None:
    script = crystaler.script([{"text": "Done."}])
    result = crystaler.command("run", "do it", "--script", str(script), "--ask")
    assert result.exit_code == 1
    assert "--ask needs a terminal" in result.stderr


def test_a_closed_pipe_ends_it_and_the_session_is_saved(crystaler: Crystaler) -> None:
    crystaler.makefile("a.txt", "hello\n")
    rounds = [{"toolCalls": [{"name": "read", "arguments": {"path": "a.txt"}, "id": f"c{n}"}]} for n in range(50)]
    script = crystaler.script([*rounds, {"text": "Done."}])
    process = start(
        crystaler, "do it", "--script", str(script), "--format", "json", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    first = json.loads(process.stdout.readline())
    process.stdout.close()
    stderr = process.stderr.read()
    process.stderr.close()
    assert process.wait(30) == 5
    assert b"Traceback" not in stderr
    crystaler.script([{"text": "Here again."}])
    assert crystaler.run("go on", "-r", first["sessionID"]).exit_code == 0


def test_a_server_that_hangs_up_is_tried_again_and_partial_text_is_void(crystaler: Crystaler) -> None:
    answers = [Answer(chunks=[CHUNK, HangUp()]), chat_answer("Whole.")]
    waits: list[float] = []

    async def no_wait(seconds: float) -> None:
        waits.append(seconds)

    with LocalServer(answers) as server:
        serve(crystaler, server)
        result = crystaler.run("do it", "-p", "here", "--format", "json", sleep=no_wait)
    assert result.exit_code == 0, result.stderr
    assert [line["text"] for line in result.lines if line["type"] == "text"] == ["Whole."]
    assert [line["type"] for line in result.lines if line["type"] in ("retry", "text")] == ["retry", "text"]
    assert len(waits) == 1
    assert 1.5 <= waits[0] <= 2.5


def until(condition: Any) -> None:
    import threading

    pause = threading.Event()
    for _ in range(600):
        if condition():
            return
        pause.wait(0.05)
    raise AssertionError("it did not happen within 30 s")


def command_lines() -> list[str]:
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().decode("utf-8", "replace"))
        except OSError:
            continue
    return lines


def test_a_time_limit_for_bash_holds_for_calls_that_name_none(crystaler: Crystaler) -> None:
    call = {"name": "bash", "arguments": {"command": "sleep 63"}}
    crystaler.script([{"toolCalls": [call]}, {"text": "It took too long.", "expect": {"lastResult": "timed out"}}])
    result = crystaler.run("do it", "--approval", "full", "--bash-timeout", "0.2s")
    assert result.exit_code == 0, result.stderr
    assert result.calls[0].failed


def test_the_login_files_run_while_the_model_is_thinking(crystaler: Crystaler, tmp_path: Path) -> None:
    home = tmp_path / "user"
    home.mkdir()
    (home / ".bash_profile").write_text("touch ~/login-files-ran\n")
    crystaler.environ["HOME"] = str(home)
    thinking = Wait()
    with LocalServer([Answer(chunks=[CHUNK, thinking])]) as server:
        serve(crystaler, server)
        process = start(crystaler, "do it", "-p", "here", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        until((home / "login-files-ran").exists)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 5


@pytest.mark.parametrize("form", ["default", "json", "final"])
def test_a_reader_that_is_gone_is_an_interrupt_in_every_format(crystaler: Crystaler, form: str) -> None:
    script = crystaler.script([{"text": "Done."}])
    reading, writing = os.pipe()
    os.close(reading)
    process = start(
        crystaler, "do it", "--script", str(script), "--format", form, stdout=writing, stderr=subprocess.PIPE
    )
    os.close(writing)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 5
    assert b"session is saved" in stderr
    assert b"Traceback" not in stderr


@pytest.mark.parametrize("closed", [1, 2])
@pytest.mark.parametrize("arguments", [["--version"], ["run", "do it"], ["hooks"], ["schema", "notes"], ["version"]])
def test_closed_streams_are_no_fault(crystaler: Crystaler, arguments: list[str], closed: int) -> None:
    script = crystaler.script([{"text": "Done."}])
    options = ["--script", str(script), "--trace-hooks"] if arguments[0] == "run" else []
    finished = subprocess.run(
        [*PROGRAM[:-1], *arguments, *options],
        cwd=crystaler.workspace,
        env={**crystaler.environ, "CRYSTAL_HOME": str(crystaler.home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        preexec_fn=lambda: os.close(closed),
        timeout=60,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert b"Traceback" not in finished.stdout + finished.stderr


@pytest.mark.parametrize("arguments", [["--version"], ["version"], ["hooks"]])
def test_a_full_device_is_no_success(crystaler: Crystaler, arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        finished = subprocess.run(
            [*PROGRAM[:-1], *arguments],
            env={**crystaler.environ, "CRYSTAL_HOME": str(crystaler.home)},
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    assert finished.returncode not in (0, 120)
    assert b"Traceback" not in finished.stderr


def test_a_second_signal_ends_a_tool_that_never_waits(crystaler: Crystaler) -> None:
    """A plain loop in a plugin's tool cannot be cancelled; a second signal, a moment later, raises in it."""
    program = f"""
import pathlib
from crystal.testing.crystaler import Crystaler
import tempfile

kit = Crystaler(pathlib.Path(tempfile.mkdtemp(dir={str(crystaler.workspace)!r})))
kit.makeplugin("Busy", '''
import crystal
from crystal import Risk, hookimpl

@crystal.tool(risk=Risk.READ)
def busy(context) -> str:
    "Never wait."
    open({str(crystaler.workspace / "mark")!r}, "w").close()
    while True:
        pass

@hookimpl
def contribute_tools():
    return [busy]
''')
kit.script([{{"toolCalls": [{{"name": "busy", "arguments": {{}}}}]}}, {{"text": "Done."}}])
try:
    kit.run()
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=crystaler.environ
    )
    until((crystaler.workspace / "mark").exists)
    process.send_signal(signal.SIGINT)

    def ended() -> bool:
        process.send_signal(signal.SIGINT)
        return process.poll() is not None

    until(ended)
    stdout, _ = process.communicate(timeout=30)
    assert stdout == b"interrupted\n"


def test_a_signal_while_modules_load_is_an_interrupt(crystaler: Crystaler) -> None:
    program = """
import os, signal
import crystal.cli.app
from crystal.cli.main import main

crystal.cli.app.run_command_line = lambda _: os.kill(os.getpid(), signal.SIGINT)
main()
"""
    finished = subprocess.run([sys.executable, "-c", program, "run"], env=crystaler.environ, timeout=60, check=False)
    assert finished.returncode == 5
