"""Real distributions, copied into two folders, run in each as they run anywhere; the host keeps its own."""

from __future__ import annotations

import importlib.metadata
import shutil
import sys
from pathlib import Path

import pytest

from tests.host.loading.folders import Load

SOURCE = """
import importlib.metadata, io
import click, click.testing
import httpx
import rich.console, rich.markdown, rich.table

def render():
    console = rich.console.Console(file=io.StringIO(), width=40)
    console.print(rich.markdown.Markdown("# Title\\n\\n* one\\n"))
    return console.file.getvalue()

@click.command()
@click.argument("name")
def hello(name):
    click.echo(f"hello {name}")

def greet():
    return click.testing.CliRunner().invoke(hello, ["you"]).output

def fetch():
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json={"ok": True}))
    with httpx.Client(transport=transport, verify=False) as client:
        return client.get("http://local/").json()

version = importlib.metadata.version("click")
"""

DISTRIBUTIONS = ("click", "rich", "pygments", "markdown-it-py", "mdurl", "httpx", "httpcore", "h11", "anyio", "idna")


def vendor(library: Path) -> None:
    """Copy what is installed, as ``pip install --target`` would bring it."""
    for name in (*DISTRIBUTIONS, "certifi"):
        distribution = importlib.metadata.distribution(name)
        for file in distribution.files or ():
            if ".." not in file.parts and "__pycache__" not in file.parts:
                (library / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(str(distribution.locate_file(file)), library / file)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_two_folders_run_their_own_copies(load: Load, tmp_path: Path) -> None:
    vendor(tmp_path / "a" / "lib")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    before = {name: module for name, module in sys.modules.items() if not name.startswith("_crystal_ctx")}
    contexts = [load({"acme.py": SOURCE}, key=at, at=at) for at in ("a", "b")]
    modules = [context.entry("acme.py") for context in contexts]
    for context, module in zip(contexts, modules, strict=True):
        assert context.warnings == []
        assert "Title" in module.render()
        assert module.greet() == "hello you\n"
        assert module.fetch() == {"ok": True}
        assert module.version == importlib.metadata.version("click")
        assert module.httpx.__file__.startswith(context.modules.folder)
    assert modules[0].click.Command is not modules[1].click.Command
    new = {name.partition(".")[0] for name in set(sys.modules) - set(before) if not name.startswith("_crystal_ctx")}
    assert {name for name in new if not name.startswith("_sysconfigdata")} <= set(sys.stdlib_module_names)
    assert all(sys.modules[name] is module for name, module in before.items())
    assert not list(tmp_path.rglob("__pycache__"))
