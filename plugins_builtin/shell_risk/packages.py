"""Package managers: which verbs install, where to, and what that is held to be. Data and its use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from crystal.types.approval import Authority, Risk

NOTHING = (Risk.WRITE, Authority.WORKSPACE)
PROJECT = (Risk.WRITE, Authority.WORKSPACE | Authority.NETWORK)
SYSTEM = (Risk.PRIVILEGED, Authority.WORKSPACE | Authority.NETWORK)


class Manager(NamedTuple):
    """One package manager.

    :param project: verbs that fetch into the project's own environment.
    :param system: verbs that install outside of it, publish, or sign in.
    :param outside: options by which a project verb leaves the project.
    :param bare: what it does without a verb.
    """

    project: frozenset[str] = frozenset()
    system: frozenset[str] = frozenset()
    outside: frozenset[str] = frozenset()
    bare: tuple[Risk, Authority] = NOTHING


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NODE = Manager(
    _names("ci install i add update upgrade up remove rm uninstall outdated audit info view dedupe create init search"),
    _names("publish unpublish login logout adduser token owner access deprecate dist-tag link config set global"),
    _names("-g --global --location=global --prefix"),
)
_SYSTEM = Manager(
    system=_names("install remove purge upgrade dist-upgrade full-upgrade update autoremove reinstall add")
)

MANAGERS: Mapping[str, Manager] = {
    "npm": _NODE,
    "pnpm": _NODE,
    "yarn": _NODE._replace(bare=PROJECT),
    "bun": _NODE,
    "poetry": Manager(_names("install add update lock remove"), _names("publish self config"), _names("--directory")),
    "pdm": Manager(_names("install add update lock sync remove"), _names("publish self config"), _names("-g")),
    "uv": Manager(_names("sync add lock remove build"), _names("publish tool self python cache"), _names("--system")),
    "rye": Manager(_names("sync add lock remove"), _names("publish install self toolchain")),
    "pipenv": Manager(_names("install sync update lock uninstall"), frozenset(), _names("--system")),
    "hatch": Manager(_names("env build"), _names("publish self")),
    "cargo": Manager(
        _names("fetch update add remove search info vendor"),
        _names("install uninstall publish yank login logout owner"),
    ),
    "go": Manager(_names("get mod work"), _names("install env")),
    "bundle": Manager(_names("install update add outdated lock"), _names("config"), _names("--system --path")),
    "composer": Manager(_names("install update require remove outdated"), _names("global config self-update")),
    "gem": Manager(_names("list search"), _names("install uninstall update push yank signin owner sources")),
    "pipx": Manager(system=_names("install uninstall upgrade upgrade-all inject ensurepath reinstall")),
    "conda": Manager(system=_names("install create update upgrade remove env config init")),
    "mamba": Manager(system=_names("install create update upgrade remove env config init")),
    "deno": Manager(_names("cache add outdated"), _names("install upgrade publish")),
    "mvn": Manager(_names("dependency:resolve dependency:get"), _names("deploy")),
    "gradle": Manager(system=_names("publish")),
    "dotnet": Manager(_names("restore add"), _names("tool nuget workload")),
    "apt": _SYSTEM, "apt-get": _SYSTEM, "aptitude": _SYSTEM, "yum": _SYSTEM, "dnf": _SYSTEM, "zypper": _SYSTEM,
    "apk": _SYSTEM, "snap": _SYSTEM, "flatpak": _SYSTEM, "port": _SYSTEM, "xbps-install": Manager(bare=SYSTEM),
    "brew": Manager(system=_names("install uninstall upgrade update reinstall tap services link cleanup")),
    "pacman": Manager(bare=SYSTEM), "emerge": Manager(bare=SYSTEM), "dpkg": Manager(bare=SYSTEM),
    "rpm": Manager(bare=SYSTEM), "nix-env": Manager(bare=SYSTEM), "easy_install": Manager(bare=SYSTEM),
    "rustup": Manager(bare=SYSTEM), "nvm": Manager(bare=SYSTEM), "pyenv": Manager(system=_names("install uninstall")),
    "rbenv": Manager(system=_names("install uninstall")), "asdf": Manager(system=_names("install uninstall plugin")),
    "mise": Manager(system=_names("install uninstall use")), "cpan": Manager(bare=SYSTEM),
    "cpanm": Manager(bare=SYSTEM), "luarocks": Manager(system=_names("install remove")),
}  # fmt: skip

PIP = frozenset(("pip", "pip2", "pip3"))
_PIP_CHANGES = _names("install uninstall")
_PIP_FETCHES = _names("download wheel index search")
_PIP_OUTSIDE = ("--user", "--target", "-t", "--prefix", "--root", "--break-system-packages", "--python")


def judge_manager(program: str, words: Sequence[str]) -> tuple[Risk, Authority] | None:
    """Return the class of a package manager's call, ``None`` for another program.

    :param words: the texts after the program.
    """
    manager = MANAGERS.get(program)
    if manager is None:
        return None
    verbs = [word for word in words if not word.startswith(("-", "+"))]
    if not verbs:
        return manager.bare
    if manager.bare == SYSTEM:
        return SYSTEM
    is_outside = any(word.partition("=")[0] in manager.outside or word in manager.outside for word in words)
    if verbs[0] in manager.system:
        return SYSTEM
    if verbs[0] in manager.project:
        return SYSTEM if is_outside else PROJECT
    return NOTHING


def judge_pip(words: Sequence[str], *, in_project: bool) -> tuple[Risk, Authority]:
    """Return the class of a pip call.

    :param in_project: whether this pip belongs to an environment inside the workspace.
    """
    verb = next((word for word in words if not word.startswith("-")), "")
    if verb in _PIP_CHANGES:
        is_outside = any(word.partition("=")[0] in _PIP_OUTSIDE for word in words)
        return PROJECT if in_project and not is_outside else SYSTEM
    if verb in ("config", "cache"):
        return SYSTEM
    return PROJECT if verb in _PIP_FETCHES else NOTHING
