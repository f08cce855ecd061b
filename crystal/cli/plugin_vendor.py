"""``crystal plugins vendor``: put distributions into a plugin's own ``lib`` folder, by pip."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import click

from crystal.host.loading.snapshot import FolderRefused, FolderSnapshot, read_folder
from crystal.store.home import locate_home
from crystal.store.trust import remembered_entries, update_entry
from crystal.workspace.fence import printable

_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9._, -]+\])?\s*([=<>!~]=?.*)?")
_COMPILED = (".so", ".pyd", ".dylib")


@click.command(name="vendor")
@click.argument("directory", type=click.Path(path_type=Path))
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--allow-build", is_flag=True, help="Let pip build from source, which runs the distribution's code.")
def command(directory: Path, names: tuple[str, ...], allow_build: bool) -> int:
    """Install distributions into DIRECTORY/lib, where the plugin's imports find them."""
    if not (directory / "plugin.json").is_file() and not (directory / "tools.json").is_file():
        raise click.ClickException(f"{directory} holds no plugin.json or tools.json; name a plugin's folder.")
    for name in names:
        if not _REQUIREMENT.fullmatch(name):
            raise click.ClickException(f"{name!r} is no name of a distribution; give NAME or NAME==VERSION.")
    if importlib.util.find_spec("pip") is None:
        raise click.ClickException(
            f"pip is not installed for {sys.executable}; run: python -m ensurepip, or install into {directory}/lib "
            "with another pip: pip install --target"
        )
    folder = Path(os.path.realpath(directory))
    target = folder / "lib"
    if not Path(os.path.realpath(target)).is_relative_to(folder):
        raise click.ClickException(
            f"{printable(str(target))} is a link that leads out of the plugin's folder; put a folder in its place."
        )
    trusted = _trusted_as_it_is(folder)
    # -P keeps the working directory, which may be a stranger's, out of the search for modules.
    command_line = [sys.executable, "-P", "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    command_line += ["--upgrade", "--target", str(target)]
    command_line += [] if allow_build else ["--only-binary", ":all:"]
    if subprocess.run([*command_line, "--", *names], check=False).returncode != 0:
        hint = "" if allow_build else " Only built wheels are installed; --allow-build lets pip build one."
        raise click.ClickException(f"pip could not install {' '.join(names)} into {target}.{hint}")
    if trusted is not None:
        _trust_what_was_added(folder, trusted)
    for module in compiled_modules(target):
        click.echo(
            f"crystal: {module} is compiled code, which a plugin's own folder cannot load; it works when the "
            f'distribution has a Python fallback, or add "shared": ["{module.partition("/")[0]}"] to the manifest.',
            err=True,
        )
    return 0


def _trusted_as_it_is(folder: Path) -> FolderSnapshot | None:
    """Return the content of a workspace's plugin or tool set that the operator trusts as it is."""
    entry, workspace = _entry(folder)
    if not entry:
        return None
    try:
        snapshot = read_folder(folder)
    except FolderRefused:
        return None
    known = remembered_entries(locate_home(None, os.environ), workspace).get(entry)
    return snapshot if known == snapshot.digest else None


def _trust_what_was_added(folder: Path, before: FolderSnapshot) -> None:
    """Trust the folder with its new ``lib``, unless anything else of it has changed meanwhile."""
    entry, workspace = _entry(folder)
    try:
        after = read_folder(folder)
    except FolderRefused as refused:
        click.echo(f"crystal: {entry} is no longer trusted: {refused}", err=True)
        return
    if _without_lib(after) != _without_lib(before) or not update_entry(
        locate_home(None, os.environ), workspace, entry, before.digest, after.digest
    ):
        click.echo(f"crystal: {entry} has changed otherwise, too; 'crystal trust' asks whether it may run.", err=True)


def _without_lib(snapshot: FolderSnapshot) -> dict[str, str]:
    return {name: entry for name, entry in snapshot.entries.items() if not name.startswith("lib/")}


def _entry(folder: Path) -> tuple[str, str]:
    """Return how trust calls a folder of a workspace, and that workspace; empty texts for any other folder."""
    tree = folder.parent
    if tree.name not in ("plugins", "tools") or tree.parent.name != ".crystal":
        return "", ""
    return f"{tree.name}/{folder.name}", str(tree.parent.parent)


def compiled_modules(folder: Path) -> list[str]:
    """Return the compiled modules below ``folder``, the first of each distribution's folder."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix in _COMPILED:
            relative = path.relative_to(folder).as_posix()
            found.setdefault(relative.partition("/")[0], relative)
    return list(found.values())
