"""The ``bash`` tool: one command in the workspace, its output and its exit status.

What a command may do is judged elsewhere; nothing here decides or asks.
"""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

from crystal import hookimpl
from crystal.types.session import SessionFacts, TurnFacts
from crystal.types.tools import Catalog, ToolCall, ToolContext, ToolContribution, ToolDefinition, ToolOutput

if TYPE_CHECKING:
    from plugins_builtin.login_environment import LoginEnvironment
    from plugins_builtin.processes import ProcessEnd

WARM_AFTER_SECONDS = 0.3
"""A turn that is over sooner has no use for a login shell; a model that thinks longer leaves time for one."""

LONGEST_SECONDS = 7 * 24 * 3600
"""A longer limit is a mistake in the unit; who wants none says ``unlimited``."""

WITHOUT_TERMINAL = {"EDITOR": "false", "VISUAL": "false", "GIT_EDITOR": "false", "GIT_TERMINAL_PROMPT": "0"}
"""Set for every command: an editor or a password prompt would wait for keys that cannot come."""

DEFINITION = ToolDefinition(
    name="bash",
    description=(
        "Run a bash command in the workspace. No terminal, empty stdin. Answers stdout, then stderr, then the "
        "exit status. Background jobs outlive the call; redirect their output."
    ),
    schema={
        "type": "object",
        "properties": {
            "command": {"type": "string"},
            "timeout": {"type": ["number", "string"], "description": 'Seconds (default 120) or "unlimited"'},
            "description": {"type": "string", "description": "What it does, in a few words"},
        },
        "required": ["command"],
        "additionalProperties": False,
    },
)


class TimeoutRefused(ValueError):
    """Raised for a time limit that is neither a usable number of seconds nor ``unlimited``."""


class BashTool:
    """Runs commands under the login environment, which is captured once for each instance.

    The limit of a call that names none is the context's ``program_timeout``. Where the context asks for a login shell,
    each command gets one of its own (slower) and nothing is captured for it.
    """

    definition = DEFINITION

    def __init__(self) -> None:
        self._environment: LoginEnvironment | None = None

    def warm(self, workspace: Path) -> None:
        """Begin to capture the login environment; call it in the event loop while the model is thinking.

        :param workspace: where no ``bash`` is taken from.
        """
        shell = find_bash(workspace)
        if shell is not None:
            self._login_environment(shell).warm()

    def _login_environment(self, shell: str) -> LoginEnvironment:
        if self._environment is None:
            from plugins_builtin.login_environment import LoginEnvironment

            self._environment = LoginEnvironment(shell)
        return self._environment

    async def invoke(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Run the command of ``call`` in the workspace.

        :raises asyncio.CancelledError: the call was cancelled; its process tree has been ended.
        """
        command: str = call.arguments["command"]
        try:
            seconds = time_limit(call.arguments.get("timeout"), context.program_timeout)
        except TimeoutRefused as error:
            return ToolOutput(text=str(error), failed=True)
        refusal = refuse_command(command)
        if refusal:
            return ToolOutput(text=refusal, failed=True)
        shell = find_bash(context.workspace)
        if shell is None:
            return ToolOutput(
                text="bash was not found on the PATH outside the workspace; install it to run commands.", failed=True
            )
        try:
            return await self._run(shell, command, seconds, context)
        except OSError as error:
            return ToolOutput(text=describe_start_failure(error), failed=True)

    async def _run(self, shell: str, command: str, seconds: float | None, context: ToolContext) -> ToolOutput:
        from plugins_builtin.captured_output import KeptOutput, LiveLines, join_streams
        from plugins_builtin.processes import run_tree

        environment = os.environ if context.login_shell else await self._login_environment(shell).variables()
        kept = KeptOutput(), KeptOutput()
        live = LiveLines(context.progress), LiveLines(context.progress)

        def receive(stream: int, data: bytes) -> None:
            kept[stream].feed(data)
            live[stream].feed(data)

        end = await run_tree(
            [shell, "-lc" if context.login_shell else "-c", command],
            workspace=context.workspace,
            environment={**environment, **WITHOUT_TERMINAL},
            seconds=seconds,
            on_stdout=lambda data: receive(0, data),
            on_stderr=lambda data: receive(1, data),
        )
        for lines in live:
            lines.finish()
        return ToolOutput(
            text=join_streams(*kept) + describe_end(end, seconds), failed=end.timed_out or end.status != 0
        )


def time_limit(value: object, default: float | None) -> float | None:
    """Return the limit in seconds, ``None`` for no limit.

    :param value: the argument of the call: a number of seconds, ``unlimited``, or ``None`` for ``default``.
    :raises TimeoutRefused: the value is neither.
    """
    if value is None:
        return default
    if value == "unlimited":
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= LONGEST_SECONDS:
        return float(value)
    raise TimeoutRefused(
        f"bash: timeout must be a number of seconds above 0 and at most {LONGEST_SECONDS:,} (seven days), "
        f'or "unlimited"; it was {str(value)[:40]!r}.'
    )


def refuse_command(command: str) -> str:
    """Return why the text cannot be given to bash, or an empty string."""
    if not command.strip():
        return "bash: the command is empty."
    if "\0" in command:
        return "bash: the command holds a NUL character, which no program can be given; leave it out."
    try:
        command.encode("utf-8")
    except UnicodeEncodeError:
        return "bash: the command holds half of a surrogate pair, which is no text; leave it out."
    return ""


def describe_start_failure(error: OSError) -> str:
    """Say why bash could not be started, and the mend."""
    if error.errno == errno.E2BIG:
        return "bash: the command is longer than the system allows; write it to a file and run the file."
    if error.errno == errno.ENOENT:
        return f"bash: {error.filename} does not exist."
    return f"bash could not be started: {error.strerror}."


def describe_end(end: ProcessEnd, seconds: float | None) -> str:
    """Return the last line of a result: exit status, signal or timeout."""
    if end.timed_out:
        return f"(timed out after {seconds:g} s; the command and everything it started were ended)"
    if end.status is None:
        return "(ended, but its exit status could not be read)"
    if end.status < 0:
        return f"(ended by {_signal_name(-end.status)})"
    return f"(exit {end.status})"


def find_bash(workspace: Path) -> str | None:
    """Return the path of bash, ``None`` when the PATH has none outside the workspace."""
    from plugins_builtin.program_files import find_program

    return find_program("bash", workspace)


def _signal_name(number: int) -> str:
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class Plugin:
    """Brings ``bash``, and captures its environment while the model is thinking."""

    name = "shell"

    def __init__(self) -> None:
        self._tool = BashTool()
        self._workspace: Path | None = None

    @hookimpl
    def on_session_started(self, session: SessionFacts) -> None:
        """Remember the workspace, whose programs the capture must not start."""
        self._workspace = session.workspace

    @hookimpl
    def contribute_tools(self) -> list[ToolContribution]:
        """Bring ``bash``."""
        return [ToolContribution(name="bash", tool=self._tool, catalogs=Catalog.WORK, grant_parts=_grant_parts)]

    @hookimpl
    def on_turn_started(self, turn: TurnFacts) -> None:
        """Begin the capture once the model has been thinking for a moment, unless the turn cannot call ``bash``."""
        if turn.mode is Catalog.WORK and self._workspace is not None:
            asyncio.get_running_loop().call_later(WARM_AFTER_SECONDS, self._tool.warm, self._workspace)


def _grant_parts(call: ToolCall) -> tuple[str, ...] | None:
    from plugins_builtin.shell_risk import grant_parts

    return grant_parts(call.arguments["command"])
