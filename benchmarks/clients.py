"""The clients that are compared on one task, each a command with its configuration; how codex is found."""

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.process import Command, prepare
from benchmarks.stage import Stage

TASK = "Read the notes and say done."
PROVIDER = "mock"
MODEL = "mock"
KEY = "dummy-key-for-benchmarks"
CODEX_PACKAGE = "@openai/codex@0.171.0"
CODEX_VARIABLE = "CRYSTAL_BENCH_CODEX"
BARE_CLIENT = Path(__file__).with_name("bare_client.py")
CODEX_CONFIGURATION = """\
model = "mock"
model_provider = "mock"
model_context_window = 1000000
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.mock]
name = "mock"
base_url = "{base_uri}"
env_key = "MODEL_KEY"
wire_api = "responses"
"""

Client = Callable[[Stage, str], Command]


def crystal(stage: Stage, base_uri: str) -> Command:
    home = stage.home("crystal")
    models = {MODEL: {"contextWindow": 1_000_000}}
    provider = {"protocol": "openai", "baseUri": base_uri, "apiKey": KEY, "models": models}
    (home / "providers.json").write_text(json.dumps({PROVIDER: provider}), encoding="utf-8")
    options = ["-p", PROVIDER, "-m", MODEL, "--approval", "full", "--format", "final"]
    return Command(
        arguments=[str(stage.crystal), "run", TASK, *options, "-w", str(stage.workspace)],
        environment=stage.environment("crystal", CRYSTAL_HOME=str(home)),
        directory=stage.workspace,
    )


def codex(stage: Stage, base_uri: str) -> Command:
    """codex without its sandbox: it is faster so, and Crystal's calls run without one too."""
    configuration = stage.home("codex") / ".codex" / "config.toml"
    configuration.parent.mkdir(exist_ok=True)
    configuration.write_text(CODEX_CONFIGURATION.format(base_uri=base_uri), encoding="utf-8")
    options = ["-s", "danger-full-access", "--skip-git-repo-check", "-m", MODEL]
    return Command(
        arguments=[str(stage.codex), "exec", *options, TASK],
        environment=stage.environment("codex", MODEL_KEY=KEY),
        directory=stage.workspace,
    )


def bare_httpx(stage: Stage, base_uri: str) -> Command:
    return _bare(stage, "httpx", base_uri)


def bare_http_client(stage: Stage, base_uri: str) -> Command:
    return _bare(stage, "http.client", base_uri)


def _bare(stage: Stage, library: str, base_uri: str) -> Command:
    return Command(
        arguments=[str(stage.python), str(BARE_CLIENT), library, base_uri],
        environment=stage.environment("bare"),
        directory=stage.workspace,
    )


def find_codex(given: Path | None, *, install: bool, scratch: Path) -> tuple[Path | None, str]:
    """The codex to compare with, as given, from the environment, on PATH or installed; else the reason."""
    named = given or os.environ.get(CODEX_VARIABLE)
    if named:
        found = shutil.which(named)
        return (Path(found).absolute(), "") if found else (None, f"{named} is not a program")
    if found := shutil.which("codex"):
        return Path(found), ""
    if not install:
        return None, f"no codex on PATH, in {CODEX_VARIABLE} or by --codex, and --peers was not given"
    npm = shutil.which("npm")
    if not npm:
        return None, "npm is not there to install codex"
    print(f"installing {CODEX_PACKAGE}", file=sys.stderr)
    prepare([npm, "install", "--prefix", str(scratch / "peers"), CODEX_PACKAGE], scratch)
    return scratch / "peers" / "node_modules" / ".bin" / "codex", ""
