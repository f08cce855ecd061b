"""Where the files of the Crystal home lie, and the one way they are written: atomically and for the owner alone.

Must not know what the files hold.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from crystal.store.errors import HomeFileError
from crystal.types._frozen import Frozen

__all__ = [
    "HOME_VARIABLE",
    "Home",
    "HomeFileError",
    "describe",
    "expand_user",
    "locate_home",
    "write_private",
]

HOME_VARIABLE = "CRYSTAL_HOME"


class Home(Frozen):
    """The layout of one Crystal home. Nothing is made on disk before something is written.

    :param root: absolute path of the folder, which may not exist yet.
    """

    root: Path

    @property
    def config_file(self) -> Path:
        """Settings of the operator."""
        return self.root / "config.json"

    @property
    def providers_file(self) -> Path:
        """Provider and model definitions."""
        return self.root / "providers.json"

    @property
    def credentials_file(self) -> Path:
        """API keys by provider name."""
        return self.root / "credentials.json"

    @property
    def permissions_file(self) -> Path:
        """Persistent grants."""
        return self.root / "permissions.json"

    @property
    def trust_file(self) -> Path:
        """Which workspaces' own code is trusted."""
        return self.root / "trust.json"

    @property
    def mcp_file(self) -> Path:
        """MCP servers of the home."""
        return self.root / "mcp.json"

    @property
    def database(self) -> Path:
        """The session database."""
        return self.root / "sessions.db"

    @property
    def media(self) -> Path:
        """Folder of image files, named by content."""
        return self.root / "media"

    @property
    def logs(self) -> Path:
        """Folder of log files."""
        return self.root / "logs"

    @property
    def locks(self) -> Path:
        """Folder of lock files; each is empty or names a process."""
        return self.root / "locks"

    @property
    def cache(self) -> Path:
        """Folder of what can be made again at any time."""
        return self.root / "cache"

    def ensure(self, folder: Path | None = None) -> None:
        """Make the home, and ``folder`` below it when given; a folder made here is the owner's alone (0700).

        :raises HomeFileError: when a folder cannot be made.
        """
        _make_private_folder(self.root)
        if folder is not None and folder != self.root:
            _make_private_folder(folder)

    def write_private(self, path: Path, data: bytes) -> None:
        """Replace a file of the home atomically, making its folders first; see :func:`write_private`."""
        self.ensure(path.parent)
        write_private(path, data)


def locate_home(explicit: str | Path | None, environ: Mapping[str, str]) -> Home:
    """Choose the home: ``explicit`` (``--home``), else ``CRYSTAL_HOME``, else ``~/.crystal``.

    An empty string counts as absent, a leading ``~`` is expanded, a relative path is taken from the working directory.
    """
    chosen = os.fspath(explicit) if explicit else environ.get(HOME_VARIABLE) or "~/.crystal"
    return Home(root=Path(os.path.abspath(expand_user(chosen, environ))))


def expand_user(path: str, environ: Mapping[str, str]) -> str:
    """Expand a leading ``~`` by the ``HOME`` of ``environ``, else by the user database."""
    folder = environ.get("HOME")
    if folder and (path == "~" or path.startswith("~/")):
        return folder + path[1:]
    return os.path.expanduser(path)


def write_private(path: Path, data: bytes) -> None:
    """Replace ``path`` with ``data``: all or nothing, on disk when this returns, mode 0600.

    A symbolic link stays and its target is replaced, so that a home kept in a dotfiles repository survives.

    :raises HomeFileError: when it cannot be written; the old content is then untouched.
    """
    target = os.path.realpath(path)
    temporary = f"{target}.{os.urandom(6).hex()}.tmp"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise HomeFileError(path, f"cannot be written: {describe(error)}") from error


def describe(error: OSError) -> str:
    """Return the system's reason in lower case, without the path that ``str(error)`` repeats."""
    reason = error.strerror or type(error).__name__
    return reason[:1].lower() + reason[1:]


def _make_private_folder(folder: Path) -> None:
    # A folder that is already there keeps its mode: ``--home`` may name a shared one, which is not ours to close.
    try:
        os.makedirs(folder.parent, exist_ok=True)
        os.mkdir(folder, 0o700)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise HomeFileError(folder, "a folder is needed here, and it is something else") from None
    except OSError as error:
        raise HomeFileError(folder, f"the folder cannot be made: {describe(error)}") from error
