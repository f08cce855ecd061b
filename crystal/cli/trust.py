"""``crystal trust``: say what a workspace brings of its own code, and remember that the operator trusts it as it is."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from crystal.cli.exit_codes import ExitCode
from crystal.cli.listing import listing_option, print_rows
from crystal.cli.safe_text import safe_line
from crystal.engine.preflight import check_workspace, working_directory
from crystal.engine.project_code import ProjectThing, find_project_code
from crystal.host.sources.project_trust import EntryState
from crystal.store.config import load_config
from crystal.store.home import Home, locate_home
from crystal.store.trust import load_trust, revoke_entries, trust_entries

_LINE = 4096
_EFFECT = 500
"""Holds every path of a module whole; a longer text is one that was made to push others out of sight."""


@click.command(name="trust")
@click.option("--list", "listing", is_flag=True, help="List what is trusted, of every workspace.")
@click.option("--revoke", is_flag=True, help="Take back all trust in this workspace.")
@click.option("--yes", is_flag=True, help="Trust without asking; needed where there is no terminal.")
@click.option("-w", "--workspace", type=click.Path(path_type=Path), help="Workspace; else the working folder.")
@click.option("--home", help="Crystal home; else CRYSTAL_HOME, else ~/.crystal.")
@listing_option
def command(listing: bool, revoke: bool, yes: bool, workspace: Path | None, home: str | None, form: str) -> int:
    """Trust the code and prompts of this workspace as they are now. Each one that changes later asks again."""
    if listing + revoke + yes > 1:
        raise click.ClickException("--list, --revoke and --yes exclude one another; give one of them.")
    place = locate_home(home, os.environ)
    # A workspace that is gone can still be listed and revoked.
    named = Path(os.path.realpath(workspace or working_directory()))
    if listing:
        _list(place, named, form)
        return ExitCode.DONE
    if revoke:
        _revoke(place, named, form)
        return ExitCode.DONE
    return _trust(place, check_workspace(named), yes, form)


def _trust(home: Home, workspace: Path, yes: bool, form: str) -> int:
    if load_config(home)[0].project_trust == "never":
        raise click.ClickException("projectTrust is never in config.json; set it to ask before you trust a workspace.")
    things = find_project_code(home, workspace)
    asked = [thing for thing in things if thing.entry.state in (EntryState.NEW, EntryState.CHANGED)]
    if not asked:
        _report(form, workspace, (), "Nothing to trust:" if things else "No code of its own in")
        _say_refused(things)
        return ExitCode.DONE
    if not yes:
        if form == "json" or not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
            raise click.ClickException("there is no terminal to ask on; look with --list, then give --yes.")
        if not _confirmed(workspace, asked):
            sys.stderr.write("Nothing was trusted.\n")
            return ExitCode.DENIED
    # The digests that were shown, not those of a later look.
    trust_entries(home, str(workspace), {thing.entry.name: thing.entry.digest for thing in asked})
    _report(form, workspace, tuple(thing.entry.name for thing in asked), "Trusted in")
    _say_refused(things)
    return ExitCode.DONE


def _confirmed(workspace: Path, asked: list[ProjectThing]) -> bool:
    lines = [f"{safe_line(str(workspace), _LINE)} brings code of its own:"]
    lines += [
        f"  {safe_line(thing.entry.name, _LINE)} ({thing.entry.state.value}): {safe_line(thing.effect, _EFFECT)}"
        for thing in asked
    ]
    lines.append("What is trusted runs with your rights, as it is now; a change asks again.")
    sys.stderr.write("\n".join(lines) + f"\nTrust {'it' if len(asked) == 1 else f'these {len(asked)}'}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _say_refused(things: Sequence[ProjectThing]) -> None:
    for thing in things:
        if thing.entry.state is EntryState.REFUSED:
            name, fault = safe_line(thing.entry.name, _LINE), safe_line(thing.fault, _LINE)
            sys.stderr.write(f"crystal: {name} cannot be trusted: {fault}\n")


def _list(home: Home, workspace: Path, form: str) -> None:
    here = {
        thing.entry.name: (thing.entry.state.value, thing.effect, thing.entry.digest)
        for thing in find_project_code(home, workspace)
    }
    rows: list[tuple[str, ...]] = []
    for known, entries in load_trust(home).items():
        for name, digest in entries.items():
            absent = ("gone" if known == str(workspace) else "trusted", "", digest)
            rows.append((known, name, *(here.pop(name, absent) if known == str(workspace) else absent)))
    rows += [(str(workspace), name, *facts) for name, facts in here.items()]
    print_rows(form, ("workspace", "entry", "state", "effect", "digest"), rows)


def _revoke(home: Home, workspace: Path, form: str) -> None:
    revoked = revoke_entries(home, str(workspace))
    _report(form, workspace, revoked, "No longer trusted in" if revoked else "Nothing was trusted in")


def _report(form: str, workspace: Path, entries: tuple[str, ...], words: str) -> None:
    if form == "json":
        sys.stdout.write(json.dumps({"workspace": str(workspace), "entries": list(entries)}, indent=2) + "\n")
        return
    names = f": {', '.join(entries)}" if entries else ""
    sys.stdout.write(safe_line(f"{words} {workspace}{names}", _LINE) + "\n")
