"""``crystal plugins new``: a plugin that works, with a test that passes, to begin from."""

from __future__ import annotations

import importlib.util
import json
import keyword
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from crystal.engine.preflight import check_workspace, working_directory
from crystal.host.loading.snapshot import read_folder
from crystal.host.sources.builtin import builtin_plugins
from crystal.host.sources.disk import DIRECTORY_NAME
from crystal.store.home import locate_home
from crystal.store.trust import trust_entries
from crystal.workspace.fence import Fence, printable

HOST_PACKAGES = ("crystal", "plugins_builtin")

PLUGIN = '''\
"""What {name} is for, in one line."""

from crystal import Risk, hookimpl, tool

name = "{display}"


@tool(risk=Risk.READ)
def greet(who: str) -> str:
    """Greet somebody by name."""
    return f"Hello, {{who}}."


@hookimpl
def contribute_tools():
    return [greet]


@hookimpl
def on_prompt(prompt):
    return "Greet people with the tool greet."
'''

TEST = '''\
"""Run with pytest; the fixture crystaler comes with Crystal."""

from pathlib import Path


def test_the_model_can_greet(crystaler):
    crystaler.installplugin(Path(__file__).parent)
    crystaler.script([
        {{"toolCalls": [{{"name": "greet", "arguments": {{"who": "world"}}}}]}},
        {{"text": "Done."}},
    ])
    result = crystaler.run("Greet the world.")
    assert [call.output for call in result.calls] == ["Hello, world."]
    assert "Greet people" in result.requests[0].items[0].text
    assert result.notes == ()
'''


@click.command(name="new")
@click.argument("name")
@click.option("--source", type=click.Choice(["home", "project"]), help="Make it in this tree instead of here.")
@click.option("-w", "--workspace", type=click.Path(path_type=Path), help="Workspace; else the working directory.")
@click.option("--home", help="Crystal home; else CRYSTAL_HOME, else ~/.crystal.")
def command(name: str, source: str | None, workspace: Path | None, home: str | None) -> None:
    """Write a plugin to begin from: a tool, a hook, and a test that passes."""
    if not DIRECTORY_NAME.fullmatch(name):
        raise click.ClickException(
            f"{name!r} cannot name a plugin folder; give a letter, then letters, digits, _ . or - (64 at most)."
        )
    if name.lower() in HOST_PACKAGES:
        raise click.ClickException(f"{name!r} is a package of the host, which a folder of that name would hide.")
    folder = _parent(source, workspace, home) / name
    module = module_name(name)
    files = {
        "plugin.json": json.dumps({"module": f"{module}.py"}, indent=2) + "\n",
        f"{module}.py": PLUGIN.format(name=name, display=display_name(name)),
        f"test_{module}.py": TEST.format(),
    }
    write_folder(folder, files)
    click.echo(f"{folder} holds {', '.join(files)}.")
    if source == "project" and _trusted(folder, files, workspace, home):
        click.echo(f"You trust plugins/{name} as it is; after a change 'crystal trust' asks again.")
    click.echo(f"Test it: python -m pytest {folder}")
    if source is None:
        click.echo("Use it: move the folder into plugins/ of your Crystal home (~/.crystal/plugins).")


def module_name(name: str) -> str:
    """Return a module name for a plugin folder; one that the language or an installed module has gets a tail."""
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    taken = keyword.iskeyword(plain) or plain in sys.stdlib_module_names or importlib.util.find_spec(plain) is not None
    return f"{plain}_plugin" if taken else plain


def display_name(name: str) -> str:
    """Return the name a plugin goes by: its folder's, unless a built-in plugin has that."""
    taken = {plugin.name.rpartition(":")[2] for plugin in builtin_plugins()}
    return f"{name}-plugin" if name in taken else name


def _trusted(folder: Path, files: dict[str, str], workspace: Path | None, home: str | None) -> bool:
    """Trust what was written, and nothing that came beside it; return whether that is all there is."""
    snapshot = read_folder(folder)
    written = {name: text.encode() for name, text in files.items()}
    if snapshot.entries.keys() != written.keys() or snapshot.files != written:
        return False
    real = str(check_workspace(workspace or working_directory()))
    trust_entries(locate_home(home, os.environ), real, {f"plugins/{folder.name}": snapshot.digest})
    return True


def _parent(source: str | None, workspace: Path | None, home: str | None) -> Path:
    match source:
        case "home":
            return locate_home(home, os.environ).root / "plugins"
        case "project":
            return _project_tree(check_workspace(workspace or working_directory()), home)
        case _:
            return working_directory()


def _project_tree(workspace: Path, home: str | None) -> Path:
    """Return the folder of a workspace's plugins; a stranger's link may not choose where files are written.

    :raises click.ClickException: when it leads out of the workspace, or into the home.
    """
    tree = workspace / ".crystal" / "plugins"
    if not Fence.at(workspace, locate_home(home, os.environ).root).contains(os.path.realpath(tree)):
        raise click.ClickException(
            f"{printable(str(tree))} leads out of the workspace or into the Crystal home; put a folder in the place "
            "of the link, or give --source home."
        )
    return tree


def write_folder(folder: Path, files: dict[str, str], executable: frozenset[str] = frozenset()) -> None:
    """Write a new folder whole or not at all.

    :param executable: names of the files that are programs.
    :raises click.ClickException: when something is there already or the folder cannot be written.
    """
    if os.path.lexists(folder):
        raise click.ClickException(f"{folder} is there already; choose another name or remove it.")
    made: Any = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=".crystal-new-", dir=folder.parent))
        for name, text in files.items():
            (made / name).write_text(text, "utf-8")
            (made / name).chmod(0o755 if name in executable else 0o644)
        made.chmod(0o755)
        made.rename(folder)
    except OSError as error:
        raise click.ClickException(f"{folder} cannot be written: {error.strerror or error}.") from error
    finally:
        if made is not None and made.exists():
            shutil.rmtree(made, ignore_errors=True)
