"""The ``bash`` tool: one command in the workspace, its output and its exit status.

What a command may do is judged elsewhere; nothing here decides or asks.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from crystal import hookimpl
from crystal.types.session import SessionFacts, TurnFacts
from crystal.types.tools import Catalog, ToolCall, ToolContext, ToolContribution, ToolDefinition, ToolOutput

if TYPE_CHECKING:
    from crystal.workspace.programs.keepers import Keepers, ProcessEnd
    from plugins_builtin.login_environment import LoginEnvironment

WARM_AFTER_SECONDS = 0.3
"""A turn that is over sooner has no use for a login shell; a model that thinks longer leaves time for one."""

LONGEST_SECONDS = 7 * 24 * 3600
"""A longer limit is a mistake in the unit; who wants none says ``unlimited``."""

WITHOUT_TERMINAL = {"EDITOR": "false", "VISUAL": "false", "GIT_EDITOR": "false", "GIT_TERMINAL_PROMPT": "0"}
"""Set for every command: an editor or a password prompt would wait for keys that cannot come. A command that sets one
itself has its way."""

DEFINITION = ToolDefinition(
    name="bash",
    description=(
        "Run a bash command in the workspace. No terminal, empty stdin. Answers stdout, then stderr, then the "
        "exit status. Background jobs go on after the call, unread, and are ended with the session."
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


LONGEST_ARGUMENT = 32 * 4096
"""Linux gives a program no single argument of this many bytes or more."""

BY_SIGNAL = 128

LOST = (
    "(bash: the process that keeps commands together was ended from outside; how the command ended is not known, and "
    "something of it may still run)"
)


class TimeoutRefused(ValueError):
    """Raised for a time limit that is neither a usable number of seconds nor ``unlimited``."""


class BashTool:
    """Runs commands under the login environment, which is captured once for each instance.

    The limit of a call that names none is the context's ``program_timeout``. Where the context asks for a login shell,
    each command gets one of its own (slower) and nothing is captured for it. What commands leave running goes on until
    :meth:`close`.
    """

    definition = DEFINITION

    def __init__(self) -> None:
        self._environment: LoginEnvironment | None = None
        self._keepers: Keepers | None = None
        self._block: tuple[object, list[bytes]] = (None, [])
        self._found: FoundShell | None = None

    def warm(self, workspace: Path) -> None:
        """Get ready for a first command; call it in the event loop while the model is thinking.

        :param workspace: where no ``bash`` is taken from.
        """
        shell = self._shell(workspace)
        if shell is not None:
            self._login_environment(shell).warm()
            with contextlib.suppress(OSError):  # the call says so
                self._open_keepers().warm()

    async def close(self) -> None:
        """End everything that commands left running; a later command starts anew."""
        keepers, self._keepers = self._keepers, None
        if keepers is not None:
            await keepers.close()

    def _login_environment(self, shell: str) -> LoginEnvironment:
        if self._environment is None:
            from plugins_builtin.login_environment import LoginEnvironment

            self._environment = LoginEnvironment(shell)
        return self._environment

    def _open_keepers(self) -> Keepers:
        if self._keepers is None:
            from crystal.workspace.programs.keepers import Keepers

            self._keepers = Keepers()
        return self._keepers

    def _shell(self, workspace: Path) -> str | None:
        if self._found is None or not self._found.stands(workspace):
            self._found = FoundShell.find(workspace)
        return self._found.path if self._found else None

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
        shell = self._shell(context.workspace)
        if shell is None:
            return ToolOutput(
                text="bash was not found on the PATH outside the workspace; install it to run commands.", failed=True
            )
        return await self._run(shell, command, seconds, context)

    async def _run(self, shell: str, command: str, seconds: float | None, context: ToolContext) -> ToolOutput:
        from crystal.workspace.programs.keepers import KeeperLost
        from crystal.workspace.programs.kept_output import KeptOutput, join_streams
        from crystal.workspace.programs.live_output import LIVE_SECONDS, LiveLines, Pace

        kept = KeptOutput(), KeptOutput()
        live = LiveLines(context.progress, kept)
        pace = Pace(asyncio.get_running_loop(), LIVE_SECONDS, live.show_new)

        def receive(stream: int, data: memoryview) -> None:
            kept[stream].feed(data)
            live.arrived(stream)
            pace.ask()

        try:
            keepers = self._open_keepers()
            keepers.warm()  # beside the capture, which takes longer
            end = await keepers.run(
                [os.fsencode(shell), b"-lc" if context.login_shell else b"-c", command.encode()],
                workspace=context.workspace,
                environment=await self._variables(shell, context),
                seconds=seconds,
                on_stdout=partial(receive, 0),
                on_stderr=partial(receive, 1),
            )
        except OSError as error:
            return ToolOutput(text=describe_start_failure(error, command, context.workspace), failed=True)
        except KeeperLost:
            return ToolOutput(text=join_streams(*kept) + LOST, failed=True)
        finally:
            pace.stop()
        live.finish()
        return ToolOutput(
            text=join_streams(*kept) + describe_end(end, seconds), failed=end.timed_out or end.status != 0
        )

    async def _variables(self, shell: str, context: ToolContext) -> list[bytes]:
        """Return the environment of a command as entries ``NAME=value``."""
        if context.login_shell:
            return encode_environment(os.environ)
        variables = await self._login_environment(shell).variables()
        if self._block[0] is not variables:
            self._block = variables, encode_environment(variables)
        return self._block[1]


class FoundShell(NamedTuple):
    """Where bash was found, and on what that depends; to look anew for each command would take as long as to start it.

    :param identity: device and number of the file behind all links.
    """

    path: str
    search_path: str | None
    workspace: Path
    identity: tuple[int, int]

    @classmethod
    def find(cls, workspace: Path) -> FoundShell | None:
        """Return the bash to use, ``None`` when the PATH has none outside the workspace."""
        from crystal.workspace.programs.find import find_program

        path = find_program("bash", workspace)
        try:
            return cls(path, os.environ.get("PATH"), workspace, _identity(path)) if path else None
        except OSError:
            return None

    def stands(self, workspace: Path) -> bool:
        """Whether looking again would find the same file."""
        if (self.search_path, self.workspace) != (os.environ.get("PATH"), workspace):
            return False
        try:
            return _identity(self.path) == self.identity
        except OSError:
            return False


def _grant_parts(call: ToolCall) -> tuple[str, ...] | None:
    from plugins_builtin.shell_risk import grant_parts

    return grant_parts(call.arguments["command"])


def _identity(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino


def encode_environment(variables: Mapping[str, str]) -> list[bytes]:
    """Return the entries of a command's environment."""
    return [os.fsencode(f"{name}={value}") for name, value in {**variables, **WITHOUT_TERMINAL}.items()]


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
        f'or "unlimited"; it was {_brief(value)}.'
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


def describe_start_failure(error: OSError, command: str, workspace: Path) -> str:
    """Say why bash could not be started, and the mend.

    :param error: with ``workspace`` as its file name when the working directory could not be entered.
    """
    if error.filename == "workspace":
        if error.errno == errno.ENOENT:
            return f"bash: the workspace {workspace} does not exist any more."
        if error.errno == errno.EACCES:
            return f"bash: the workspace {workspace} may not be entered; give its folder the execute permission."
        return f"bash: the workspace {workspace} could not be entered: {error.strerror}."
    if error.errno == errno.E2BIG and len(command.encode()) >= LONGEST_ARGUMENT:
        return "bash: the command is longer than the system allows; write it to a file and run the file."
    if error.errno == errno.E2BIG:
        return (
            "bash: the command and the environment together are longer than the system allows; unset large variables."
        )
    if error.errno in (errno.EAGAIN, errno.ENOMEM):
        return f"bash could not be started: the system has no room for another process ({error.strerror}); end some."
    return f"bash could not be started: {error.strerror}."


def describe_end(end: ProcessEnd, seconds: float | None) -> str:
    """Return the last line of a result: exit status, signal or timeout."""
    if end.timed_out:
        return f"(timed out after {seconds:g} s; the command and everything it started were ended)"
    if end.status is None:
        return "(ended, but its exit status could not be read)"
    if end.status < 0:
        return f"(ended by {_signal_name(-end.status)})"
    # What bash answers for a command that a signal ended; a program may also say so itself.
    name = _signal_name(end.status - BY_SIGNAL) if end.status > BY_SIGNAL else "signal"
    return f"(exit {end.status})" if name.startswith("signal") else f"(exit {end.status}, {BY_SIGNAL} + {name})"


def _signal_name(number: int) -> str:
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _brief(value: object) -> str:
    try:
        return repr(str(value)[:40])
    except ValueError:  # Python writes out no number of more than some thousand digits
        return "a number of thousands of digits"


class Plugin:
    """Brings ``bash``, gets it ready while the model is thinking, and ends its jobs with the session."""

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
        return [
            ToolContribution(
                name="bash",
                tool=self._tool,
                catalogs=Catalog.WORK,
                grant_parts=_grant_parts,
            )
        ]

    @hookimpl
    def on_turn_started(self, turn: TurnFacts) -> None:
        """Begin the capture once the model has been thinking for a moment, unless the turn cannot call ``bash``."""
        if turn.mode is Catalog.WORK and self._workspace is not None:
            asyncio.get_running_loop().call_later(WARM_AFTER_SECONDS, self._tool.warm, self._workspace)

    @hookimpl
    async def on_session_ended(self, session: SessionFacts) -> None:
        """End what commands left running."""
        await self._tool.close()
