"""``crystal run``: one task, then exit."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from crystal.cli.exit_codes import ExitCode
from crystal.cli.safe_text import reliable, safe_line
from crystal.cli.values import count, duration, unlimited_as_none
from crystal.cli.verbs import is_verb
from crystal.engine.approval.grants import parse_allow
from crystal.engine.budgets import Budgets
from crystal.engine.preflight import SessionOptions, SetupError
from crystal.store.home import locate_home
from crystal.types.approval import ApprovalMode
from crystal.types.tools import Catalog

if TYPE_CHECKING:
    from crystal.cli.task import TaskRequest

FORMATS = ("default", "json", "final")
_SWITCH = {"on": True, "off": False, None: None}


@click.command(name="run")
@click.argument("task", required=False)
@click.option("-p", "--provider", help="Provider of this run.")
@click.option("-m", "--model", help="Model of this run.")
@click.option("-w", "--workspace", type=click.Path(path_type=Path), help="Workspace; else the working directory.")
@click.option("--home", help="Crystal home; else CRYSTAL_HOME, else ~/.crystal.")
@click.option("--approval", type=click.Choice([mode.value for mode in ApprovalMode]), help="Approval mode.")
@click.option("--approval-model", type=click.Choice(["on", "off"]), help="Review with a model of its own, or not.")
@click.option("--approval-provider", metavar="NAME", help="Provider of the reviewing model.")
@click.option("--approval-model-id", metavar="MODEL", help="The reviewing model.")
@click.option("--allow", multiple=True, metavar="NAME", help="Grant a tool for this run; 'bash:pytest -q' one command.")
@click.option("--ask", is_flag=True, help="Ask on the terminal instead of denying.")
@click.option("--plan", "mode", flag_value="plan", help="Offer the Plan catalog.")
@click.option("--work", "mode", flag_value="work", default=True, help="Offer the Work catalog (default).")
@click.option("--disable-tool", multiple=True, metavar="NAME", help="Leave a built-in tool out of this run.")
@click.option("--plugins", type=click.Choice(["on", "off"]), help="Look for plugins, or not.")
@click.option("--external-tools", type=click.Choice(["on", "off"]), help="Look for tool sets, or not.")
@click.option("--no-plugin", multiple=True, metavar="NAME", help="Leave a plugin out of this run.")
@click.option("--trust-project", is_flag=True, help="Let the workspace's own code count, for this run alone.")
@click.option("--model-calls", type=count, default=1024, help="Budget of model rounds, or unlimited.")
@click.option("--tool-calls", type=count, default=8192, help="Budget of tool calls, or unlimited; 0 allows none.")
@click.option("--token-budget", type=count, default=-1, help="Budget of input and output tokens.")
@click.option("--duration", type=duration, default=7 * 86_400.0, help="Budget of time: 90s, 10m, 2h, 7d, unlimited.")
@click.option("--bash-timeout", type=duration, help="Time limit of a bash call that names none.")
@click.option("--image", multiple=True, type=click.Path(path_type=Path), help="Attach an image file.")
@click.option("--show-thinking", is_flag=True, help="Show reasoning.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="default", help="What goes to stdout.")
@click.option("--quiet", is_flag=True, help="Drop notes from stderr.")
@click.option("--verbose", is_flag=True, help="Write everything into the log.")
@click.option("--trace-hooks", is_flag=True, help="Show each hook call on stderr.")
@click.option("--script", type=click.Path(path_type=Path), help="Play a script instead of asking a model.")
@click.option("-r", "--resume", metavar="ID", help="Resume a session.")
@click.option("-c", "--continue", "continue_latest", is_flag=True, help="Resume the latest session of the workspace.")
def command(**values: Any) -> int:
    """Run one task, then exit. Without TASK the task is read from stdin."""
    return run(values)


def run(values: dict[str, Any]) -> int:
    """Run the task that the options describe; return the exit code."""
    from crystal.cli.log import contained_output, start_log
    from crystal.cli.task import execute_task

    stdout = reliable(sys.stdout)
    try:
        request = read_options(values, stdout, reliable(sys.stderr), os.environ)
    except Exception as error:
        make_printer(values["form"], stdout, False).finish(ExitCode.INVALID, "invalid", str(error), None)
        raise
    start_log(request.options.home, values["verbose"], os.environ)
    with contained_output():
        return execute_task(request).exit_code


def parse_run(arguments: Sequence[str], stdout: TextIO, stderr: TextIO, environ: Mapping[str, str]) -> TaskRequest:
    """Parse the arguments of ``crystal run`` into a request that writes to the given streams.

    :raises click.ClickException: for arguments that are no command.
    :raises SetupError: for values that cannot be used.
    """
    context = command.make_context("run", list(arguments))
    return read_options(context.params, stdout, stderr, environ)


def read_options(values: dict[str, Any], stdout: TextIO, stderr: TextIO, environ: Mapping[str, str]) -> TaskRequest:
    """Turn the parsed options into a request."""
    from crystal.cli.task import Nobody, TaskRequest

    operator: Any = Nobody()
    if values["ask"]:
        from crystal.cli.ask import TerminalOperator

        operator = TerminalOperator.on_terminal(values["form"])
    return TaskRequest(
        text=_read_task(values["task"]),
        options=_session_options(values, environ),
        printer=make_printer(values["form"], stdout, values["show_thinking"]),
        errors=stderr,
        environ=environ,
        operator=operator,
        images=tuple(values["image"]),
        quiet=values["quiet"],
    )


def make_printer(form: str, stream: TextIO, show_thinking: bool) -> Any:
    """Return the printer of a format; only that one is imported."""
    match form:
        case "json":
            from crystal.cli.printers.json_lines import JsonLinesPrinter

            return JsonLinesPrinter(stream, time.time, show_thinking)
        case "final":
            from crystal.cli.printers.final import FinalPrinter

            return FinalPrinter(stream)
        case _:
            from crystal.cli.printers.readable import ReadablePrinter

            return ReadablePrinter(stream, show_thinking)


def _read_task(argument: str | None) -> str:
    """With an argument stdin is not touched, so a pipe that nobody closes cannot hold the run."""
    if argument is None:
        if sys.stdin is None or sys.stdin.closed:
            raise SetupError("There is no task: give it as an argument, or on stdin.")
        if sys.stdin.isatty():
            raise SetupError("There is no task: give it as an argument, or pipe it in.")
        try:
            argument = sys.stdin.buffer.read().decode("utf-8", "replace")
        except OSError as error:
            raise SetupError(f"The task cannot be read from stdin: {error.strerror or error}.") from error
    if not argument.strip():
        raise SetupError("The task is empty; say what is to be done.")
    if is_verb(argument):
        raise SetupError(
            f"'{argument.split()[0]}' is a slash verb of the interactive session, not a task; "
            "write the task in words, or begin it with another character."
        )
    return argument


def _session_options(values: dict[str, Any], environ: Mapping[str, str]) -> SessionOptions:
    home = locate_home(values["home"], environ)
    provider, client_options = values["provider"], {}
    if values["script"] is not None:
        if provider not in (None, "scripted"):
            raise SetupError(f"--script plays the provider 'scripted'; leave out -p {provider}.")
        provider = "scripted"
        client_options = {"script": load_script(values["script"])}
    if values["resume"] is not None and values["continue_latest"]:
        raise SetupError("-r and -c exclude each other; -r names a session, -c takes the latest.")
    if values["approval_model"] == "off" and (values["approval_provider"] or values["approval_model_id"]):
        raise SetupError("--approval-model off and a named approval model exclude each other; leave one out.")
    time_budget = values["duration"]
    return SessionOptions(
        home=home,
        workspace=values["workspace"],
        provider=provider,
        model=values["model"],
        approval=ApprovalMode(values["approval"]) if values["approval"] else None,
        approval_model=_SWITCH[values["approval_model"]],
        approval_provider=values["approval_provider"],
        approval_model_id=values["approval_model_id"],
        mode=Catalog.PLAN if values["mode"] == "plan" else Catalog.WORK,
        budgets=Budgets(
            model_calls=unlimited_as_none(values["model_calls"]),
            tool_calls=unlimited_as_none(values["tool_calls"]),
            tokens=unlimited_as_none(values["token_budget"]),
            duration=None if time_budget == float("inf") else time_budget,
        ),
        allow=tuple(parse_allow(text) for text in values["allow"]),
        resume=values["resume"],
        continue_latest=values["continue_latest"],
        disabled_tools=tuple(values["disable_tool"]),
        plugins=_SWITCH[values["plugins"]],
        external_tools=_SWITCH[values["external_tools"]],
        blocked_plugins=tuple(values["no_plugin"]),
        trust_project=values["trust_project"],
        client_options=client_options,
        program_timeout=values["bash_timeout"],
        trace=_trace_to(sys.stderr) if values["trace_hooks"] else None,
    )


def load_script(path: Path) -> Any:
    """Read the script of the ``scripted`` protocol.

    :raises SetupError: naming the file, the place and what was expected.
    """
    from plugins_builtin.protocols.script import ScriptError, parse_script

    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise SetupError(f"--script {path}: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise SetupError(f"--script {path}: it is not UTF-8 at byte {error.start}.") from error
    try:
        return parse_script(text, str(path))
    except ScriptError as error:
        raise SetupError(str(error)) from error


def _trace_to(stream: TextIO) -> Callable[[str, str, float, str], None]:
    def trace(hook: str, plugin: str, seconds: float, outcome: str) -> None:
        # It is called amid a hook's dispatch: a reader of stderr that went away must not fail the hook.
        with contextlib.suppress(OSError):
            stream.write(f"[hook] {hook} {safe_line(plugin)} {outcome} {seconds * 1000:.2f} ms\n")

    return trace
