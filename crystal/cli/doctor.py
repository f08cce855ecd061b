"""``crystal doctor``: what works on this machine and what does not."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
from pathlib import Path

import click

from crystal._version import VERSION
from crystal.cli.exit_codes import ExitCode
from crystal.cli.loaded_host import loaded_host
from crystal.cli.safe_text import safe_text
from crystal.store.config import load_config
from crystal.store.errors import StoreError
from crystal.store.home import Home, locate_home
from crystal.store.permissions import load_grants
from crystal.store.providers import load_providers, resolve_key
from crystal.store.sessions import SessionStore
from crystal.types.notes import Note, NoteCode, Severity

LIBRARIES = ("click", "httpx", "jsonschema", "pathspec", "pluggy", "pydantic", "rich")


@click.command(name="doctor")
@click.option("-w", "--workspace", type=click.Path(path_type=Path), help="Workspace; else the working folder.")
@click.option("--home", help="Crystal home; else CRYSTAL_HOME, else ~/.crystal.")
def command(workspace: Path | None, home: str | None) -> int:
    """Check the installation, the plugins, the home and the session database. Exit 1 when something is broken.

    Plugins are loaded as a run would load them.
    """
    located = locate_home(home, os.environ)
    rows = [*_installation(), *_host(located, workspace), *_home(located)]
    for fine, subject, text in rows:
        sys.stdout.write(f"({'ok' if fine else 'broken'}) {subject}: {safe_text(text)}\n")
    return ExitCode.DONE if all(fine for fine, _, _ in rows) else ExitCode.INVALID


def _installation() -> list[tuple[bool, str, str]]:
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES)
    return [
        (sys.version_info >= (3, 11), "python", f"{platform.python_version()} on {platform.system()}"),
        (True, "crystal", f"{VERSION} with {versions}"),
        (shutil.which("bash") is not None, "bash", shutil.which("bash") or "not found on PATH; the bash tool needs it"),
    ]


def _host(home: Home, workspace: Path | None) -> list[tuple[bool, str, str]]:
    try:
        with loaded_host(home, workspace) as host:
            loaded = f"{len(host.plugins.names)} plugins, {len(host.tools)} tools, {len(host.factories)} protocols"
            return [(True, "host", loaded), *map(_note_row, host.notes.all)]
    except StoreError as error:
        return [(False, "host", str(error))]


def _note_row(note: Note) -> tuple[bool, str, str]:
    fine = note.severity is Severity.INFO or note.code is NoteCode.PROJECT_UNTRUSTED
    return (fine, "note" if fine else note.source or "host", note.text)


def _home(home: Home) -> list[tuple[bool, str, str]]:
    rows: list[tuple[bool, str, str]] = [
        (True, "home", f"{home.root}{'' if home.root.exists() else ' (not made yet)'}")
    ]
    try:
        config, config_notes = load_config(home)
        providers, provider_notes = load_providers(home)
        grants = load_grants(home)
    except StoreError as error:
        return [*rows, (False, "configuration", str(error))]
    rows.append((True, "configuration", f"{len(providers.definitions)} providers, {len(grants)} grants"))
    rows += [(True, "note", note.text) for note in (*config_notes, *provider_notes)]
    if config.provider:
        try:
            definition, settings = providers.choose(None, None, config)
            resolve_key(definition, os.environ, home)
            rows.append((True, "model", f"{definition.name}/{settings.name}"))
        except StoreError as error:
            rows.append((False, "model", str(error)))
    if home.database.exists():
        try:
            store = SessionStore.open(home)
            count = len(store.list(None, 1_000_000))
            store.close()
            rows.append((True, "sessions", f"{count} in {home.database}"))
        except StoreError as error:
            rows.append((False, "sessions", str(error)))
    return rows
