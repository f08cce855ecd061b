"""The variables a login shell would have, captured once and kept; it starts no other program."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from subprocess import Popen

CAPTURE_SECONDS = 10.0
"""Login files that take longer than this are not waited for; the plain environment is used."""

CAPTURE_BYTES = 4 << 20
"""An environment is smaller than this on every system; more is the noise of login files."""

_MARK = b"\0crystal-login-environment\0"
_OWN = frozenset({"_", "PWD", "OLDPWD", "SHLVL"})
"""Variables that describe the capturing shell itself."""


class LoginEnvironment:
    """Captures on first use, or earlier when warmed; every later call gets the same variables.

    :param shell: path of bash.
    """

    def __init__(self, shell: str) -> None:
        self._shell = shell
        self._variables: Mapping[str, str] | None = None
        self._capture: asyncio.Task[Mapping[str, str]] | None = None

    def warm(self) -> None:
        """Begin the capture in the background; call it from a running event loop."""
        if self._variables is not None:
            return
        loop = asyncio.get_running_loop()
        if self._capture is None or self._capture.done() or self._capture.get_loop() is not loop:
            self._capture = loop.create_task(self._run())

    async def variables(self) -> Mapping[str, str]:
        """Return the login environment; the host's own when the login files fail or take too long."""
        self.warm()
        if self._variables is None and self._capture is not None:
            # The capture serves later calls too, so one cancelled call must not end it.
            await asyncio.shield(self._capture)
        return self._variables if self._variables is not None else dict(os.environ)

    async def _run(self) -> Mapping[str, str]:
        found: Mapping[str, str] | None = None
        with contextlib.suppress(OSError):
            found = await capture(self._shell, os.environ)
        self._variables = found if found else dict(os.environ)
        return self._variables


async def capture(shell: str, plain: Mapping[str, str], seconds: float = CAPTURE_SECONDS) -> Mapping[str, str] | None:
    """Run the login files once and return the variables they leave, or ``None`` when that failed.

    They run in the home directory, for a directory of a repository could change what version managers answer. A shell
    that is not waited for any longer is left to end by itself: killing login files half-way leaves lock files of
    version managers behind, and the operator's next shell then waits for them. So it writes into a file without a
    name, which it can do after its reader has gone.

    :param shell: path of bash.
    :param plain: the environment to begin with.
    :param seconds: how long to wait.
    :raises OSError: bash could not be started.
    """
    import subprocess
    import tempfile

    printed_mark = _MARK.decode().replace("\0", r"\0")
    # With its path, since the PATH that the login files leave may begin in a workspace.
    script = f"printf '{printed_mark}'; /usr/bin/env -0; printf '{printed_mark}'"
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(
            [shell, "-lc", script],
            cwd=_home(),
            env=plain,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(seconds):
                status = await _ended(process)
        except TimeoutError:
            return None
        if status != 0:
            return None
        printed.seek(0)
        return parse(printed.read(CAPTURE_BYTES))


async def _ended(process: Popen[bytes]) -> int:
    """Wait in a thread that ends with the process and holds up neither the loop nor the interpreter."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()

    def wait() -> None:
        status = process.wait()
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_resolve, ended, status)

    threading.Thread(target=wait, name="crystal-login", daemon=True).start()
    return await ended


def _resolve(ended: asyncio.Future[int], status: int) -> None:
    if not ended.done():
        ended.set_result(status)


def _home() -> Path:
    home = Path(os.path.expanduser("~"))
    return home if home.is_dir() else Path("/")


def parse(printed: bytes) -> Mapping[str, str] | None:
    """Return the variables between the two marks, or ``None`` when they are not there as expected."""
    parts = printed.split(_MARK)
    if len(parts) != 3:
        return None
    pairs = [os.fsdecode(entry).partition("=") for entry in parts[1].split(b"\0") if entry]
    variables = {name: value for name, equals, value in pairs if equals and name and name not in _OWN}
    return variables if variables.get("PATH") else None
