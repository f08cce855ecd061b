"""The command group: each command's module is imported when the command runs, not before."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

import click

from crystal._version import VERSION
from crystal.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from crystal.store.home import Home

COMMANDS = {
    "demo": ("crystal.cli.demo", "A scripted tour in a temporary workspace; no key, no network."),
    "doctor": ("crystal.cli.doctor", "Check the installation, the home and the session database."),
    "hooks": ("crystal.cli.hooks", "List the hooks with their live implementations, or show one in full."),
    "permissions": ("crystal.cli.permissions", "List the grants that outlast a session, or take them back."),
    "plugins": ("crystal.cli.plugins", "List, show and switch plugins, or begin a new one."),
    "run": ("crystal.cli.run", "Run one task, then exit."),
    "schema": ("crystal.cli.schema", "Print a published JSON Schema."),
    "sessions": ("crystal.cli.sessions", "List and show saved sessions."),
    "tools": ("crystal.cli.tools", "List, show and switch tool sets, or begin a new one."),
    "trust": ("crystal.cli.trust", "Trust the code that a workspace brings, as it is now."),
    "version": ("crystal.cli.version", "Print the version."),
    "why": ("crystal.cli.why", "Say how a tool call was judged and who answered."),
}
"""Command name to its module, whose attribute ``command`` is the click command, and its line of help."""


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the help text."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(COMMANDS[cmd_name][0]).command
        return command if isinstance(command, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


@click.group(cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="crystal", message="%(prog)s %(version)s")
@click.pass_context
def application(context: click.Context) -> None:
    """Crystal: a coding agent for local repositories, made of pluggy hooks."""
    if context.invoked_subcommand is None:
        raise click.ClickException(
            "the interactive session is not in this version; 'crystal run TASK' runs one task, "
            "'crystal demo' shows how, 'crystal --help' lists the commands."
        )


def run_command_line(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code; nothing is raised."""
    from crystal.cli.safe_text import reliable

    sys.stdout, sys.stderr = reliable(sys.stdout), reliable(sys.stderr)
    try:
        result = application.main(args=list(arguments), prog_name="crystal", standalone_mode=False)
    except click.exceptions.Exit as left:
        return left.exit_code
    except (click.Abort, KeyboardInterrupt):
        sys.stderr.write("crystal: interrupted\n")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        return ExitCode.INTERRUPTED
    except Exception as error:
        return report_failure(error, sys.stderr)
    return int(result or 0)


def report_failure(error: Exception, stream: TextIO, home: Home | None = None) -> int:
    """Write one line about an error and return its exit code.

    Expected errors know their exit code and are one sentence; the traceback of others goes to the log.

    :param home: whose log, when none was started; else the one that the environment names.
    """
    from crystal.cli.safe_text import safe_text

    if isinstance(error, click.ClickException):
        stream.write(f"crystal: {safe_text(error.format_message())}\n")
        return ExitCode.INVALID
    code = getattr(error, "exit_code", None)
    if isinstance(code, int):
        stream.write(f"crystal: {safe_text(str(error))}\n")
        return code
    import logging
    import os

    from crystal.cli.log import start_log
    from crystal.store.home import locate_home

    start_log(home or locate_home(None, os.environ), verbose=False, environ=os.environ)
    logging.getLogger("crystal").error("unexpected error", exc_info=error)
    stream.write(
        f"crystal: unexpected {type(error).__name__}: {safe_text(str(error))}. This is a fault of crystal itself; "
        "its traceback is in logs/crystal.log of the home.\n"
    )
    return ExitCode.INVALID
