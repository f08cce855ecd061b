"""The fence: where a path really lies and who may touch it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.types.paths import PathZone
from crystal.workspace.fence import Fence, PathRefused, permit, printable


@pytest.fixture
def fence(tmp_path: Path) -> Fence:
    root = Path(os.path.realpath(tmp_path))
    for name in ("ws", "home", "user", "other", "ws-evil"):
        (root / name).mkdir()
    return Fence(workspace=root / "ws", home=root / "home", user_home=root / "user")


def zone_of(fence: Fence, text: str) -> PathZone:
    return fence.resolve(text).zone


@pytest.mark.parametrize("text", ["x", "./x", "a/../x", "missing/deep/x", ".", "./", "../ws", "../ws/", ".env"])
def test_what_lies_in_the_workspace_is_of_the_workspace(fence: Fence, text: str) -> None:
    resolved = fence.resolve(text)
    assert (resolved.zone, resolved.inside, resolved.text) == (PathZone.WORKSPACE, True, text)


def test_the_workspace_itself_is_inside_by_its_absolute_name(fence: Fence) -> None:
    assert fence.resolve(str(fence.workspace)).inside
    assert fence.resolve(f"{fence.workspace}/").real == str(fence.workspace)


@pytest.mark.parametrize(
    "text", ["../ws-evil/x", "{root}/ws-evil/x", "{root}/ws/../ws-evil/x", "..", "/", "~", "~/x", "{root}/WS-EVIL"]
)
def test_a_sibling_with_the_same_prefix_a_parent_and_the_users_home_are_outside(fence: Fence, text: str) -> None:
    resolved = fence.resolve(text.format(root=fence.workspace.parent))
    assert (resolved.zone, resolved.inside) == (PathZone.OUTSIDE, False)


def test_a_tilde_in_the_middle_or_before_a_name_is_an_ordinary_character(fence: Fence) -> None:
    assert fence.resolve("~root/x").real == f"{fence.workspace}/~root/x"
    assert fence.resolve("a/~/x").real == f"{fence.workspace}/a/~/x"


@pytest.mark.parametrize("text", ["a\0b", "\0", "", "a\ud800b"])
def test_a_path_no_file_can_have_is_refused_in_one_sentence(fence: Fence, text: str) -> None:
    with pytest.raises(PathRefused) as refusal:
        fence.resolve(text)
    assert str(refusal.value).endswith(".")
    assert str(refusal.value).isprintable()


def test_links_are_followed_for_real_wherever_they_stand_in_the_path(fence: Fence) -> None:
    workspace, other = fence.workspace, fence.workspace.parent / "other"
    (workspace / "sub").mkdir()
    (workspace / "out").symlink_to(other)
    (workspace / "in").symlink_to(workspace / "sub")
    (workspace / "dangling").symlink_to(other / "z")
    (workspace / "chain").symlink_to("out")
    (other / "back").symlink_to(workspace / "sub")
    assert fence.resolve("out/f").real == str(other / "f")
    assert [
        zone_of(fence, text) for text in ("out", "out/f", "out/new/f", "dangling", "chain/f", "in/../../other")
    ] == [PathZone.OUTSIDE] * 6
    assert fence.resolve("in/f").real == str(workspace / "sub" / "f")
    assert fence.resolve("out/back/f").inside
    # The parent of a link's target, not of the link.
    assert fence.resolve("out/../x").real == str(workspace.parent / "x")


def test_a_workspace_reached_by_a_link_is_the_same_workspace(fence: Fence) -> None:
    linked = fence.workspace.parent / "linked"
    linked.symlink_to(fence.workspace)
    assert fence.resolve(str(linked / "x")).inside
    assert Fence.at(linked, fence.home).workspace == fence.workspace


def test_a_loop_of_links_is_refused(fence: Fence) -> None:
    (fence.workspace / "a").symlink_to("b")
    (fence.workspace / "b").symlink_to("a")
    with pytest.raises(PathRefused, match="loop"):
        fence.resolve("a/x")


def test_a_way_through_the_process_is_outside_even_when_it_ends_inside(
    fence: Fence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(fence.workspace)
    (fence.workspace / "x").write_text("x")
    (fence.workspace / "link").symlink_to("/proc/self/cwd/x")
    with open(fence.workspace / "x") as file:
        ways = ["/proc/self/root/etc/hosts", "/proc/self/cwd/x", f"/dev/fd/{file.fileno()}", "link", "/proc/self/maps"]
        found = [fence.resolve(way) for way in ways]
    assert [(resolved.zone, resolved.inside) for resolved in found] == [(PathZone.OUTSIDE, False)] * 5


@pytest.mark.parametrize(
    "text",
    [
        "~/.ssh/config", "~/.gnupg", "~/.aws/credentials", "~/.netrc", "~/.git-credentials", "~/.npmrc", "~/.pypirc",
        "~/.docker/config.json",
        "~/.kube/config", "~/.cargo/credentials.toml", "~/.config/gcloud/x/y", "~/.config/gh/hosts.yml",
        "id_rsa", "deep/id_ed25519",
        "id_ecdsa_sk", "id_rsa.bak", "tls/server.key", "server-key.pem", "store.p12", "x.PFX",
        "ssh_host_rsa_key", "sub/.ssh/config", "~/.SSH/config", "/etc/shadow", "/proc/1/environ",
    ],
)  # fmt: skip
def test_credential_locations_are_credentials_wherever_they_are_written_from(fence: Fence, text: str) -> None:
    resolved = fence.resolve(text)
    assert resolved.zone is PathZone.CREDENTIAL
    assert permit(resolved, frozenset(), writing=False) is not None
    assert permit(resolved, frozenset({resolved.real}), writing=True) is None


@pytest.mark.parametrize(
    "text",
    [
        ".env",
        ".npmrc",
        "id_rsa.pub",
        "id_rsa_test.py",
        "cert.pem",
        "keys.py",
        "monkey",
        "config.json",
        "sub/.netrc",
        ".sshd",
    ],
)
def test_ordinary_files_of_a_workspace_are_no_credentials(fence: Fence, text: str) -> None:
    assert zone_of(fence, text) is PathZone.WORKSPACE


def test_a_link_to_a_credential_is_a_credential(fence: Fence) -> None:
    (fence.workspace / "notes.txt").symlink_to(f"{fence.user_home}/.ssh/id_rsa")
    assert zone_of(fence, "notes.txt") is PathZone.CREDENTIAL


@pytest.mark.parametrize(
    "name",
    ["config.json", "providers.json", "credentials.json", "permissions.json", "trust.json", "mcp.json", "sessions.db",
     "sessions.db-wal", "config.json.bak", "media/x", "logs/x", "Config.json"],
)  # fmt: skip
def test_crystals_own_files_are_the_hosts_and_the_rest_of_its_home_is_outside(fence: Fence, name: str) -> None:
    assert zone_of(fence, f"{fence.home}/{name}") is PathZone.HOST
    assert [
        zone_of(fence, f"{fence.home}/{other}") for other in ("", "skills/x", "plugins/x/config.json", "data/x")
    ] == [PathZone.OUTSIDE] * 4


def test_a_home_in_the_workspace_is_still_outside_it(fence: Fence) -> None:
    inner = Fence(workspace=fence.workspace, home=fence.workspace / ".crystal", user_home=fence.user_home)
    resolved = [inner.resolve(text) for text in (".crystal/config.json", ".crystal/skills/x", ".crystal", "x")]
    assert [(path.zone, path.inside) for path in resolved] == [
        (PathZone.HOST, False), (PathZone.OUTSIDE, False), (PathZone.OUTSIDE, False), (PathZone.WORKSPACE, True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        ".git/config",
        ".git",
        "sub/.git/hooks/x",
        ".crystal/plugins/p.py",
        ".crystal",
        ".GIT/config",
        ".crystal/database",
    ],
)
def test_writing_under_git_or_crystal_needs_approval_and_reading_does_not(fence: Fence, text: str) -> None:
    resolved = fence.resolve(text)
    assert (resolved.zone, resolved.inside) == (PathZone.GUARDED, True)
    assert permit(resolved, frozenset(), writing=False) is None
    assert permit(resolved, frozenset(), writing=True) is not None
    assert permit(resolved, frozenset({resolved.real}), writing=True) is None


@pytest.mark.parametrize(
    "text", [".crystal/data/tools/x", ".crystal/data", ".gitignore", ".github/w.yml", ".crystal.md"]
)
def test_data_and_names_that_only_begin_alike_are_ordinary(fence: Fence, text: str) -> None:
    assert permit(fence.resolve(text), frozenset(), writing=True) is None


def test_a_path_outside_is_used_only_when_that_real_path_was_approved(fence: Fence) -> None:
    other = fence.workspace.parent / "other"
    with pytest.raises(PathRefused, match="outside the workspace"):
        fence.admit("../other/x", frozenset())
    with pytest.raises(PathRefused):
        fence.admit("../other/x", frozenset({str(other)}))
    assert fence.admit("../other/x", frozenset({str(other / "x")})).real == str(other / "x")


def test_names_in_sentences_hold_no_control_characters(fence: Fence) -> None:
    assert printable("a\x1b[31mb\n\u202e\udcff é\u00a0") == "a\\x1b[31mb\\n\\u202e\ufffd é\u00a0"
    assert fence.show(f"{fence.workspace}/sub/x\n") == "sub/x\\n"
    assert fence.show(str(fence.workspace)) == "."
    assert fence.show("/etc/hosts") == "/etc/hosts"


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["..", ".", "a", "out", "in", "loop", ".git", "", "~"]), max_size=8).map("/".join))
def test_a_path_called_inside_never_opens_anything_outside(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    root = Path(os.path.realpath(tmp_path_factory.getbasetemp())) / "property"
    workspace = root / "ws"
    if not workspace.exists():
        (workspace / "a" / "a").mkdir(parents=True)
        (root / "other").mkdir()
        (workspace / "out").symlink_to(root / "other")
        (workspace / "a" / "in").symlink_to("../a")
        (workspace / "a" / "out").symlink_to("../../other")
        (workspace / "loop").symlink_to("loop")
    fence = Fence(workspace=workspace, home=root / "home", user_home=root / "user")
    try:
        resolved = fence.resolve(text)
    except PathRefused:
        return
    absolute = text if text.startswith("/") else f"{workspace}/{text}"
    if text != "~" and not text.startswith("~/"):
        assert resolved.real == os.path.realpath(absolute)
    assert resolved.inside == (resolved.real == str(workspace) or resolved.real.startswith(f"{workspace}/"))
