"""The host as a run would load it, for commands that show it. What plugins print while they load goes to the log."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crystal.cli.log import contained_output, start_log
from crystal.cli.loop import run_to_end
from crystal.engine.extensions import ExtensionOptions, load_extensions
from crystal.engine.preflight import check_workspace, working_directory
from crystal.host.build import Host
from crystal.store.config import load_config
from crystal.store.home import Home


@contextmanager
def loaded_host(home: Home, workspace: Path | None) -> Iterator[Host]:
    """Load every extension that counts in ``workspace``, or without one in the working folder, for a while.

    :raises SetupError: when the workspace is no folder that can be read.
    :raises StoreError: for a broken file of the home.
    """
    root = check_workspace(workspace or working_directory())
    config, _ = load_config(home)
    start_log(home, False, os.environ)
    with contained_output():
        host = run_to_end(load_extensions(ExtensionOptions(), config, home, root)).host
    try:
        yield host
    finally:
        host.close()
