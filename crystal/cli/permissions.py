"""``crystal permissions list|revoke``: the grants that outlast a session."""

from __future__ import annotations

import json
import os
import sys
import termios
from collections.abc import Sequence
from pathlib import Path

import click

from crystal.cli.exit_codes import ExitCode
from crystal.cli.listing import listing_option, print_rows
from crystal.cli.page import Page
from crystal.cli.safe_text import safe_line
from crystal.engine.preflight import working_directory
from crystal.store.home import locate_home
from crystal.store.permissions import Grant, load_grants, remove_grants

ID_LENGTH = 10
HEADINGS = ("id", "workspace", "origin", "tool", "command")
EVERY_CALL = "<every call>"
"""Stands for the command of a grant that names none."""


@click.group(name="permissions")
def command() -> None:
    """List the grants that outlast a session, and take them back."""


@command.command(name="list")
@click.option("--all", "everywhere", is_flag=True, help="Of every workspace, or with -w all of that one.")
@click.option("-w", "--workspace", type=click.Path(path_type=Path), help="Workspace; else the working directory.")
@click.option("--home", help="Crystal home; else CRYSTAL_HOME, else ~/.crystal.")
@listing_option
def list_permissions(everywhere: bool, workspace: Path | None, home: str | None, form: str) -> None:
    """List the persistent grants of this workspace, in the order they were given."""
    grants = _of_workspace(load_grants(locate_home(home, os.environ)), everywhere, workspace)
    _print_grants(form, grants)


@command.command(name="revoke")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--tool", help="Every grant of a tool in this workspace.")
@click.option("--command", "command_text", help="With --tool, only the grant of exactly this command.")
@click.option("--all", "everywhere", is_flag=True, help="Of every workspace, or with -w all of that one.")
@click.option("--yes", is_flag=True, help="Do not ask about --all; needed where there is no terminal.")
@click.option("-w", "--workspace", type=click.Path(path_type=Path), help="Workspace; else the working directory.")
@click.option("--home", help="Crystal home; else CRYSTAL_HOME, else ~/.crystal.")
@listing_option
def revoke(
    ids: tuple[str, ...],
    tool: str | None,
    command_text: str | None,
    everywhere: bool,
    yes: bool,
    workspace: Path | None,
    home: str | None,
    form: str,
) -> int:
    """Take grants back and list them. ID is one of 'crystal permissions list', or the beginning of one.

    A session that is running keeps what it was started with.
    """
    _require_one_way(ids, tool, command_text, everywhere)
    place = locate_home(home, os.environ)
    grants = load_grants(place)
    if ids:
        chosen = _by_id(grants, ids)
    else:
        chosen = _of_workspace(grants, everywhere, workspace)
        if tool is not None:
            chosen = [grant for grant in chosen if grant.tool == tool and command_text in (None, grant.command)]
        if not chosen:
            raise click.ClickException(f"there is no such grant{_where(everywhere, workspace)}; nothing was revoked.")
    if everywhere and not yes and not _is_confirmed(chosen):
        sys.stderr.write("Nothing was revoked.\n")
        return ExitCode.DENIED
    _print_grants(form, remove_grants(place, chosen))
    return ExitCode.DONE


def grant_id(grant: Grant) -> str:
    """Return the id of a grant: made of what it says, so it stays the same whatever else is given or revoked."""
    import hashlib  # loads OpenSSL, which other commands do not need

    said = json.dumps([grant.workspace, grant.origin, grant.tool, grant.command])
    return hashlib.sha256(said.encode()).hexdigest()[:ID_LENGTH]


def _require_one_way(ids: Sequence[str], tool: str | None, command_text: str | None, everywhere: bool) -> None:
    if ids and (tool is not None or command_text is not None or everywhere):
        raise click.ClickException("an ID names one grant by itself; leave out --tool, --command and --all.")
    if command_text is not None and tool is None:
        raise click.ClickException("--command needs --tool, the tool whose grant it is.")
    if not ids and tool is None and not everywhere:
        raise click.ClickException("nothing is named; give an ID, --tool NAME or --all.")


def _of_workspace(grants: Sequence[Grant], everywhere: bool, workspace: Path | None) -> list[Grant]:
    """Return the grants of the workspace, or all of them; named twice in the file is listed once."""
    distinct = dict.fromkeys(grants)
    if everywhere and workspace is None:
        return list(distinct)
    # The grants of a workspace that is gone can still be listed and taken back.
    real = os.path.realpath(workspace or working_directory())
    return [grant for grant in distinct if grant.workspace == real]


def _by_id(grants: Sequence[Grant], ids: Sequence[str]) -> list[Grant]:
    """Return the grant of each id.

    :raises click.ClickException: when one of them names none, or several.
    """
    by_id: dict[str, list[Grant]] = {}
    for grant in dict.fromkeys(grants):
        by_id.setdefault(grant_id(grant), []).append(grant)
    chosen = []
    for wanted in ids:
        found = [grant for known, named in by_id.items() if wanted and known.startswith(wanted) for grant in named]
        if not found:
            raise click.ClickException(
                f"there is no grant {safe_line(wanted)!r}; 'crystal permissions list --all' lists them. "
                "Nothing was revoked."
            )
        if len(found) > 1:
            raise click.ClickException(
                f"{len(found)} grants begin with {safe_line(wanted)!r}; give more of the id, or --tool and --command. "
                "Nothing was revoked."
            )
        chosen += found
    return chosen


def _where(everywhere: bool, workspace: Path | None) -> str:
    if everywhere and workspace is None:
        return ""
    return f" in {safe_line(os.path.realpath(workspace or working_directory()))}"


def _is_confirmed(chosen: Sequence[Grant]) -> bool:
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.ClickException("there is no terminal to ask on; look with 'list --all', then give --yes.")
    workspaces = len({grant.workspace for grant in chosen})
    try:
        # What was typed before the question stood there is no answer to it.
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        sys.stderr.write(f"Revoke {len(chosen)} grant(s) of {workspaces} workspace(s)? [y/N]: ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")
    except (OSError, termios.error):  # the terminal is gone
        return False


def _print_grants(form: str, grants: Sequence[Grant]) -> None:
    if form == "json":
        listed = [
            {
                "id": grant_id(grant),
                "workspace": grant.workspace,
                "origin": grant.origin,
                "tool": grant.tool,
                "command": grant.command,
            }
            for grant in grants
        ]
        sys.stdout.write(json.dumps(listed, indent=2) + "\n")
        return
    page = Page(width=0)
    rows = []
    for grant in grants:
        said = (grant.workspace, grant.origin, grant.tool, EVERY_CALL if grant.command is None else grant.command)
        rows.append((grant_id(grant), *map(page.line, said)))
    print_rows(form, HEADINGS, rows)
