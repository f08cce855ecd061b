"""``crystal version``."""

from __future__ import annotations

import platform
import sys

import click

from crystal._version import VERSION


@click.command(name="version")
def command() -> None:
    """Print the version, the Python it runs on and the platform."""
    sys.stdout.write(f"crystal {VERSION} (Python {platform.python_version()}, {platform.platform(terse=True)})\n")
