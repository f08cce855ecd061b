"""The fence: where a path really lies and who may touch it."""

from __future__ import annotations

import errno
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


@pytest.mark.parametrize("text", ["a\0b", "\0", "", "a\ud800b", "n" * 256, "a/" * 500_000, "é" * 200, "\x1b" * 5_000])
def test_a_path_no_file_can_have_is_refused_in_one_sentence(fence: Fence, text: str) -> None:
    with pytest.raises(PathRefused) as refusal:
        fence.resolve(text)
    assert str(refusal.value).endswith(".")
    assert str(refusal.value).isprintable()
    assert len(str(refusal.value)) < 2_000


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


def test_a_link_to_a_credential_is_a_credential(fence: Fence) -> None:
    (fence.workspace / "notes.txt").symlink_to(f"{fence.user_home}/.ssh/id_rsa")
    assert zone_of(fence, "notes.txt") is PathZone.CREDENTIAL


@pytest.mark.parametrize(
    "name",
    ["config.json", "providers.json", "credentials.json", "permissions.json", "trust.json", "mcp.json", "sessions.db",
     "sessions.db-wal", "config.json.bak", "media/x", "logs/x", "cache/bytecode/x.code", "Config.json"],
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


def test_what_cannot_be_told_because_the_path_is_too_long_is_refused(fence: Fence) -> None:
    (fence.workspace / "out").symlink_to(fence.workspace.parent / "other")
    descriptor = os.open(fence.workspace, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=descriptor)
        descriptor, parent = os.open("d" * 250, os.O_RDONLY, dir_fd=descriptor), descriptor
        os.close(parent)
    os.symlink(fence.workspace.parent / "other", "out", dir_fd=descriptor)
    os.close(descriptor)
    # By a text that is short enough, through a link, to a place whose own path is not.
    deep = "/".join(["d" * 250] * 10)
    (fence.workspace / "half").symlink_to(deep)
    assert fence.resolve("half/x").real == f"{fence.workspace}/{deep}/x"
    with pytest.raises(PathRefused, match="longer than a path"):
        fence.resolve(f"half/{deep}/out/f")


def test_a_workspace_that_is_the_root_keeps_its_guards(fence: Fence) -> None:
    rooted = Fence(workspace=Path("/"), home=fence.home, user_home=fence.user_home)
    zones = {
        text: (rooted.resolve(text).zone, rooted.resolve(text).inside)
        for text in ("/", "usr/bin", ".git/config", "/proc", "/proc/1/status", "/proc/self/cwd", "/etc/shadow",
                     f"{fence.home}/trust.json", f"{fence.home}/x")
    }  # fmt: skip
    inside, outside = (PathZone.WORKSPACE, True), (PathZone.OUTSIDE, False)
    assert zones == {
        "/": inside, "usr/bin": inside, ".git/config": (PathZone.GUARDED, True), "/proc": outside,
        "/proc/1/status": outside, "/proc/self/cwd": outside, "/etc/shadow": (PathZone.CREDENTIAL, True),
        f"{fence.home}/trust.json": (PathZone.HOST, False), f"{fence.home}/x": outside,
    }  # fmt: skip
    assert rooted.show("/usr/bin") == "usr/bin"


@pytest.mark.parametrize("below", ["", "/data/tools/x", "/skills"])
def test_a_workspace_in_the_crystal_home_has_nothing_inside(fence: Fence, below: str) -> None:
    workspace = Path(f"{fence.home}{below}")
    workspace.mkdir(parents=True, exist_ok=True)
    at_home = Fence(workspace=workspace, home=fence.home, user_home=fence.user_home)
    assert (zone_of(at_home, "x"), at_home.resolve("x").inside) == (PathZone.OUTSIDE, False)
    assert zone_of(at_home, f"{fence.home}/permissions.json") is PathZone.HOST


def test_a_users_home_in_the_workspace_keeps_its_credentials(fence: Fence) -> None:
    wide = Fence(workspace=fence.workspace.parent, home=fence.home, user_home=fence.user_home)
    assert zone_of(wide, "user/.aws/config") is PathZone.CREDENTIAL
    assert zone_of(wide, "user/notes") is PathZone.WORKSPACE
    at_home = Fence(workspace=fence.workspace.parent / "user", home=fence.home, user_home=fence.user_home)
    assert zone_of(at_home, ".npmrc") is PathZone.CREDENTIAL
    assert zone_of(at_home, "project/.npmrc") is PathZone.WORKSPACE


@pytest.mark.parametrize(
    "text", ["sub", "sub/", "sub//", "./sub/.", "sub/../sub", "in", "in/", "in/../sub", "sub/x/.."]
)
def test_every_spelling_of_a_place_is_that_place(fence: Fence, text: str) -> None:
    (fence.workspace / "sub").mkdir()
    (fence.workspace / "in").symlink_to("sub/")
    assert fence.resolve(text).real == f"{fence.workspace}/sub"


def test_a_link_that_was_followed_is_not_followed_again_by_a_name_that_came_later(fence: Fence) -> None:
    (fence.workspace / "a").mkdir()
    assert fence.admit("a/f", frozenset()).real == f"{fence.workspace}/a/f"
    (fence.workspace / "a").rename(fence.workspace / "b")
    (fence.workspace / "a").symlink_to(fence.workspace.parent / "other")
    with pytest.raises(PathRefused, match="outside the workspace"):
        fence.admit("a/f", frozenset({f"{fence.workspace}/a/f"}))


@pytest.mark.parametrize("spelling", ["HOME", "hOmE", "ho\u200dme"])
def test_another_spelling_of_the_home_is_the_home_only_where_the_system_says_so(fence: Fence, spelling: str) -> None:
    path = fence.home.parent / spelling
    assert zone_of(fence, str(path / "trust.json")) is PathZone.OUTSIDE
    # A link stands for a file system that takes both names for one; the zone of a path is asked, not where it leads.
    path.symlink_to(fence.home)
    assert fence.zone(f"{path}/trust.json") is PathZone.HOST


NAMES = ("a", "b", "c")
TARGETS = st.lists(st.sampled_from(["..", ".", *NAMES, "", "ws", "other"]), min_size=1, max_size=5).map(
    lambda parts: "/".join(parts) or "."
)
LINKS = st.dictionaries(
    st.tuples(st.sampled_from(["ws", "ws/a", "ws/a/b", "other", "other/a"]), st.sampled_from(["b", "c", "l", "m"])),
    st.tuples(st.booleans(), TARGETS),
    max_size=8,
)
PATHS = st.lists(st.sampled_from(["..", ".", "", *NAMES, "l", "m", "ws", "other", "f"]), min_size=1, max_size=8)


@settings(max_examples=100, deadline=None)
@given(links=LINKS, paths=st.lists(PATHS.map("/".join), min_size=1, max_size=12))
def test_a_path_leads_where_the_kernel_says_and_is_inside_only_when_that_is(
    tmp_path_factory: pytest.TempPathFactory, links: dict[tuple[str, str], tuple[bool, str]], paths: list[str]
) -> None:
    root = Path(os.path.realpath(tmp_path_factory.mktemp("tree")))
    for folder in ("ws/a/b", "other/a"):
        (root / folder).mkdir(parents=True)
    for file in ("ws/f", "ws/a/f", "other/f", "other/a/f"):
        (root / file).touch()
    for (folder, name), (absolute, target) in links.items():
        if not os.path.lexists(root / folder / name):
            (root / folder / name).symlink_to(f"{root}/{target}" if absolute else target)
    fence = Fence(workspace=root / "ws", home=root / "home", user_home=root / "user")
    for text in filter(None, paths):
        written = text if text.startswith("/") else f"{root}/ws/{text}"
        reached, fault = kernels_path(written)
        try:
            resolved = fence.resolve(text)
        except PathRefused:
            # A loop; the kernel may have stopped before it, at something missing that a `..` takes back.
            assert fault in (errno.ELOOP, errno.ENOENT, errno.ENOTDIR)
            continue
        # Of what is missing the kernel says nothing more; the standard library follows the part that exists.
        assert resolved.real == (os.path.realpath(written) if reached is None else reached)
        assert fault in (None, errno.ENOENT, errno.ENOTDIR)
        inside = resolved.real == f"{root}/ws" or resolved.real.startswith(f"{root}/ws/")
        assert resolved.inside == inside


def kernels_path(path: str) -> tuple[str | None, int | None]:
    """Where the kernel itself arrives, or the number of its refusal."""
    try:
        descriptor = os.open(path, os.O_PATH)
    except OSError as error:
        return None, error.errno
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}"), None
    finally:
        os.close(descriptor)
