"""Installed packages whose files lie inside the workspace: they count only when the operator trusts them.

They import like any package, so that what is compared is the folder as it lay there a moment before, and what a package
imports from elsewhere is not part of it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from crystal.host.loading.snapshot import FolderRefused, read_folder
from crystal.host.sources.packages import PackagePlugin
from crystal.host.sources.project_trust import NEVER_TRUSTED, EntryState, ProjectCode, ProjectEntry
from crystal.store.home import Home, describe
from crystal.store.trust import remembered_entries
from crystal.types._frozen import Frozen


class JudgedPackage(Frozen):
    """A package inside the workspace, and how it stands to what the operator trusted.

    :param reason: why it does not count; empty when it does.
    """

    package: PackagePlugin
    entry: ProjectEntry
    reason: str


def judge_packages(
    packages: Sequence[PackagePlugin], home: Home, workspace: Path, project: ProjectCode
) -> tuple[JudgedPackage, ...]:
    """Say which of the packages inside the workspace count. Nothing is imported.

    :param packages: each with files inside the workspace.
    :param workspace: real path.
    :raises HomeFileError: when ``trust.json`` is broken.
    """
    if project is ProjectCode.NEVER:
        return tuple(
            JudgedPackage(package=package, entry=_entry(package, EntryState.NEW), reason=NEVER_TRUSTED)
            for package in packages
        )
    remembered = remembered_entries(home, str(workspace)) if packages else {}
    return tuple(_judge(package, remembered.get(_name(package)), project) for package in packages)


def ignore_bytecode_beside(home: Home) -> None:
    """Have this process read and write bytecode in the home only: what lies beside a source is in no digest."""
    if sys.pycache_prefix is None:
        sys.pycache_prefix = str(home.root / "cache" / "packages")


def _judge(package: PackagePlugin, known: str | None, project: ProjectCode) -> JudgedPackage:
    try:
        digest = _digest(package)
    except FolderRefused as refused:
        return JudgedPackage(package=package, entry=_entry(package, EntryState.REFUSED), reason=str(refused))
    if known == digest:
        return JudgedPackage(package=package, entry=_entry(package, EntryState.TRUSTED, digest), reason="")
    state = EntryState.NEW if known is None else EntryState.CHANGED
    reason = f"{'it is not trusted' if known is None else 'it changed since it was trusted'}; 'crystal trust' asks"
    if project is ProjectCode.THIS_PROCESS:
        reason = ""
    return JudgedPackage(package=package, entry=_entry(package, state, digest), reason=reason)


def _name(package: PackagePlugin) -> str:
    return f"packages/{package.name}"


def _entry(package: PackagePlugin, state: EntryState, digest: str = "") -> ProjectEntry:
    return ProjectEntry(name=_name(package), state=state, digest=digest)


def _digest(package: PackagePlugin) -> str:
    import hashlib

    places = package.places()
    if not places:
        raise FolderRefused(f"Its module {package.module} is not installed.")
    contents = [_content(place) for place in places]
    return hashlib.sha256("\n".join(["crystal package 1", package.value, *contents]).encode()).hexdigest()


def _content(place: Path) -> str:
    import hashlib

    if place.is_dir():
        return read_folder(place).digest
    try:
        return hashlib.sha256(place.read_bytes()).hexdigest()
    except OSError as error:
        raise FolderRefused(f"Its module {place} cannot be read: {describe(error)}.") from error
