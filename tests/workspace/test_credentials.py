"""Places of keys and passwords: every datum by itself, below itself, and by other names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from crystal.types.paths import PathZone
from crystal.workspace import credentials
from crystal.workspace.fence import Fence, PathRefused, permit


@pytest.fixture
def fence(tmp_path: Path) -> Fence:
    root = Path(os.path.realpath(tmp_path))
    for name in ("ws", "home", "user"):
        (root / name).mkdir()
    return Fence(workspace=root / "ws", home=root / "home", user_home=root / "user")


def zone_of(fence: Fence, text: str) -> PathZone:
    return fence.resolve(text.format(user=fence.user_home)).zone


KEY_FILES = (
    *sorted(credentials.NAMES_ANYWHERE),
    *(f"{prefix}{end}" for prefix in credentials.KEY_PREFIXES for end in ("", ".bak", "_sk", ".pem", ".old.1")),
    *(f"server{suffix}" for suffix in credentials.KEY_SUFFIXES),
    "ssh_host_rsa_key",
)


@pytest.mark.parametrize("place", credentials.HOME_PATHS)
@pytest.mark.parametrize("home", ["{user}", "/root", "/var/root", "/private/var/root", "/home/someone", "/Users/some"])
def test_each_place_of_a_home_is_forbidden_with_what_lies_below_and_in_every_case(
    fence: Fence, place: str, home: str
) -> None:
    for text in (f"{home}/{place}", f"{home}/{place}/below/it", f"{home}/x/../{place.upper()}", f"{home}/{place}/"):
        assert zone_of(fence, text) is PathZone.CREDENTIAL
    assert zone_of(fence, f"{home}/{place}x") is not PathZone.CREDENTIAL


@pytest.mark.parametrize("place", [path for path in credentials.HOME_PATHS if path not in credentials.NAMES_ANYWHERE])
def test_what_is_a_credential_in_a_home_is_an_ordinary_file_of_a_workspace(fence: Fence, place: str) -> None:
    if not place.lower().endswith(tuple(credentials.NAMES_ANYWHERE)):
        assert zone_of(fence, place) is PathZone.WORKSPACE


@pytest.mark.parametrize("place", credentials.SYSTEM_PATHS)
def test_each_place_of_the_system_is_forbidden(fence: Fence, place: str) -> None:
    # The links of this machine are not the matter: some systems keep these places elsewhere.
    assert fence.zone(place) is fence.zone(f"{place}/below") is fence.zone(place.upper()) is PathZone.CREDENTIAL
    assert fence.zone(f"{place}x") is PathZone.OUTSIDE


@pytest.mark.parametrize("folder", sorted(credentials.FOLDERS_ANYWHERE))
@pytest.mark.parametrize("where", ["", "deep/er/", "{user}/", "/srv/", "/proc/1/root/root/"])
def test_each_folder_of_keys_is_forbidden_wherever_it_lies(fence: Fence, folder: str, where: str) -> None:
    for text in (f"{where}{folder}", f"{where}{folder}/x", f"{where}{folder.upper()}/x/y"):
        assert zone_of(fence, text) is PathZone.CREDENTIAL
    assert zone_of(fence, f"{where}{folder}s") is not PathZone.CREDENTIAL


@pytest.mark.parametrize("name", KEY_FILES)
@pytest.mark.parametrize("where", ["", "deep/er/", "{user}/", "/srv/", ".git/"])
def test_each_name_of_a_private_key_is_forbidden_wherever_it_lies(fence: Fence, name: str, where: str) -> None:
    for text in (f"{where}{name}", f"{where}{name.upper()}"):
        assert zone_of(fence, text) is PathZone.CREDENTIAL


@pytest.mark.parametrize("name", sorted(credentials.PROCESS_FILES))
def test_what_shows_a_process_from_inside_is_forbidden(fence: Fence, name: str) -> None:
    assert fence.zone(f"/proc/1/{name}") is fence.zone(f"/proc/1/task/1/{name}") is PathZone.CREDENTIAL
    assert zone_of(fence, f"/proc/self/{name}") is PathZone.CREDENTIAL


@pytest.mark.parametrize(
    "text",
    [
        "~/.ssh/config", "~/.gnupg", "~/.aws/credentials", "~/.config/gcloud/x/y", "~/.azure/accessTokens.json",
        "~/.kube/config", "~/.docker/config.json", "~/.npmrc", "~/.pypirc", "~/.config/pip/pip.conf", "~/.netrc",
        "~/.cargo/credentials", "~/.cargo/credentials.toml", "~/.gem/credentials", "~/.git-credentials",
        "~/.config/git/credentials", "~/.config/gh/hosts.yml", "/etc/shadow", "id_ed25519", "tls/server.key", "x.PFX",
        "../ws/id_rsa", "./id_rsa", "id_rsa/", "no/../id_rsa", "id_rs\u200da", "\u017fub/.\u017fsh/config",
    ],
)  # fmt: skip
def test_the_kinds_that_everybody_expects_are_forbidden_to_readers_and_writers(fence: Fence, text: str) -> None:
    resolved = fence.resolve(text)
    assert resolved.zone is PathZone.CREDENTIAL
    for writing in (False, True):
        assert "needs the operator's approval for this very call" in (permit(resolved, frozenset(), writing) or "")
        assert permit(resolved, frozenset({resolved.real}), writing) is None


@pytest.mark.parametrize(
    "text",
    [
        ".env", ".env.production", ".npmrc", "id_rsa.pub", "id_ed25519.pub", "id_rsa_test.py", "cert.pem", "keys.py",
        "monkey", "config.json", "sub/.netrc", ".sshd", "key", "credentials.json", "src/credentials.py", "gnupg/x",
    ],
)  # fmt: skip
def test_ordinary_files_of_a_workspace_are_no_credentials(fence: Fence, text: str) -> None:
    assert zone_of(fence, text) is PathZone.WORKSPACE


def test_another_name_of_a_credential_is_a_credential(fence: Fence) -> None:
    assert fence.user_home is not None
    workspace, user = fence.workspace, fence.user_home
    for place in (".ssh/config", ".aws/credentials", ".config/gcloud/deep/er/token", ".netrc", ".gnupg/ring"):
        file = user / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("secret")
        name = place.replace("/", "-").strip(".")
        (workspace / f"link-{name}").symlink_to(file)
        (workspace / f"chain-{name}").symlink_to(f"link-{name}")
        os.link(file, workspace / f"hard-{name}")
        for kind in ("link", "chain", "hard"):
            assert zone_of(fence, f"{kind}-{name}") is PathZone.CREDENTIAL
            with pytest.raises(PathRefused, match="place for credentials"):
                fence.admit(f"{kind}-{name}", frozenset())
    (workspace / "folder").symlink_to(user / ".aws")
    assert zone_of(fence, "folder/new") is PathZone.CREDENTIAL


def test_a_hard_link_to_a_file_of_the_crystal_home_is_a_file_of_the_host(fence: Fence) -> None:
    for name in ("trust.json", "sessions.db", "notes.txt"):
        (fence.home / name).write_text("x")
        os.link(fence.home / name, fence.workspace / name)
    zones = [zone_of(fence, name) for name in ("trust.json", "sessions.db", "notes.txt")]
    assert zones == [PathZone.HOST, PathZone.HOST, PathZone.WORKSPACE]


def test_hard_links_among_ordinary_files_are_ordinary(fence: Fence) -> None:
    (fence.workspace / "a").write_text("x")
    os.link(fence.workspace / "a", fence.workspace / "b")
    assert [zone_of(fence, name) for name in ("a", "b")] == [PathZone.WORKSPACE] * 2
