"""``crystal doctor``: what works on this machine and what does not."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys

import click

from crystal._version import VERSION
from crystal.cli.exit_codes import ExitCode
from crystal.cli.loop import run_to_end
from crystal.cli.safe_text import safe_text
from crystal.host.build import HostOptions, build_host
from crystal.store.config import load_config
from crystal.store.errors import StoreError
from crystal.store.home import Home, locate_home
from crystal.store.permissions import load_grants
from crystal.store.providers import load_providers, resolve_key
from crystal.store.sessions import SessionStore

LIBRARIES = ("click", "httpx", "jsonschema", "pathspec", "pluggy", "pydantic", "rich")


@click.command(name="doctor")
@click.option("--home", help="Crystal home; else CRYSTAL_HOME, else ~/.crystal.")
def command(home: str | None) -> int:
    """Check the installation, the home and the session database. Exit 1 when something is broken."""
    located = locate_home(home, os.environ)
    rows = [*_installation(), *_home(located)]
    for fine, subject, text in rows:
        sys.stdout.write(f"({'ok' if fine else 'broken'}) {subject}: {safe_text(text)}\n")
    return ExitCode.DONE if all(fine for fine, _, _ in rows) else ExitCode.INVALID


def _installation() -> list[tuple[bool, str, str]]:
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES)
    rows = [
        (sys.version_info >= (3, 11), "python", f"{platform.python_version()} on {platform.system()}"),
        (True, "crystal", f"{VERSION} with {versions}"),
        (shutil.which("bash") is not None, "bash", shutil.which("bash") or "not found on PATH; the bash tool needs it"),
    ]
    host = run_to_end(build_host(HostOptions()))
    notes = host.notes.all
    loaded = f"{len(host.plugins.names)} plugins, {len(host.tools)} tools, {len(host.factories)} protocols"
    rows.append((not notes, "host", "; ".join(note.text for note in notes) or loaded))
    return rows


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
