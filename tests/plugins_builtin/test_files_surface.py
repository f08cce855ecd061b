"""The file tools through the whole product: bad arguments, the fence at approval and at use, and the bug rows."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from crystal.engine.answers import Approve, Deny
from crystal.testing.crystaler import Crystaler
from crystal.testing.result import Call
from crystal.types.approval import GrantScope
from crystal.types.events import Event, ToolCallFinished
from tests.engine.runs import DONE, Operator, calls

ONCE = Approve(scope=GrantScope.ONCE)
Made = tuple[str, Any]


def edit(path: str, old: str = "old", new: str = "new", **more: Any) -> Made:
    return "edit", {"path": path, "old_string": old, "new_string": new, **more}


def write(path: str, content: str = "new\n") -> Made:
    return "write", {"path": path, "content": content}


def read(path: str, **more: Any) -> Made:
    return "read", {"path": path, **more}


def listing(path: str) -> Made:
    return "list", {"path": path}


def run(crystaler: Crystaler, *made: Made, operator: Operator | None = None) -> list[Call]:
    """Run the calls of one batch, what needs no operator passing, and return them as they finished."""
    crystaler.script([calls(*made), DONE])
    result = crystaler.run("do", "--approval", "full", operator=operator)
    assert result.stderr.count("Traceback") == 0
    finished = list(result.calls)
    assert [call.name for call in finished] == [name for name, _ in made]
    return finished


def files(folder: Path) -> dict[str, bytes | str]:
    """Every entry below a folder: the bytes of a file, the target of a link, ``/`` for a folder."""
    return {
        str(path.relative_to(folder)): os.readlink(path)
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else "/"
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's home folder, with keys in it."""
    folder = Path(os.path.realpath(tmp_path)) / "user"
    (folder / ".ssh").mkdir(parents=True)
    (folder / ".ssh" / "id_rsa").write_text("the-key")
    (folder / ".aws").mkdir()
    (folder / ".aws" / "credentials").write_text("the-key")
    monkeypatch.setenv("HOME", str(folder))
    return folder


HUGE = 10**4_000
TEXTS: list[Any] = [None, 1, 1.5, True, [], ["a.txt"], {}, {"a": 1}]
GOOD: dict[str, dict[str, Any]] = {
    "read": {"path": "a.txt"},
    "list": {"path": "."},
    "edit": {"path": "a.txt", "old_string": "old", "new_string": "new"},
    "write": {"path": "b.txt", "content": "new"},
}
NUMBERS: list[Any] = [0, -1, -HUGE, 1.5, -0.0, True, False, None, "1", "", [], {}]


def faulty(name: str) -> list[tuple[dict[str, Any], str]]:
    """Arguments that cannot be meant, with the argument that the answer must name."""
    good = GOOD[name]
    rows: list[tuple[dict[str, Any], str]] = []
    for argument in good:
        rows += [({**good, argument: value}, argument) for value in TEXTS]
        if name != "list":
            rows.append(({key: value for key, value in good.items() if key != argument}, argument))
    rows += [({**good, "depth": 1}, "depth"), ({**good, "": 1}, "''"), ({**good, "Path": "x"}, "Path")]
    if name in ("read", "list"):
        rows += [({**good, key: value}, key) for key in ("offset", "limit") for value in NUMBERS]
    if name == "list":
        rows.append(({**good, "limit": 1_001}, "limit"))
    if name == "edit":
        flags: list[Any] = [0, 1, "true", None, []]
        rows += [({**good, "replace_all": value}, "replace_all") for value in flags]
        rows += [({**good, "old_string": ""}, "old_string"), ({**good, "new_string": "old"}, "new_string")]
    if name == "write":
        rows.append(({**good, "content": "x" * 2_097_153}, "content"))
    for path, reason in (("", "empty"), ("a\0b", "NUL"), ("x/" * 3_000, "longer"), ("n" * 256, "longer")):
        rows.append(({**good, "path": path}, reason))
    return rows


@pytest.mark.parametrize("name", sorted(GOOD))
def test_arguments_that_cannot_be_meant_are_answered_by_name_and_change_nothing(
    crystaler: Crystaler, name: str
) -> None:
    crystaler.makefile("a.txt", "old\n")
    before = files(crystaler.workspace)
    rows = faulty(name)
    finished = run(crystaler, *((name, arguments) for arguments, _ in rows))
    for (arguments, named), call in zip(rows, finished, strict=True):
        assert call.failed, arguments
        assert named in call.output, (str(arguments)[:200], call.output[:300])
        assert len(call.output) < 10_000
        assert "Traceback" not in call.output
        assert "failed:" not in call.output
    assert files(crystaler.workspace) == before


def test_whole_numbers_written_as_fractions_and_huge_ones_are_numbers(crystaler: Crystaler) -> None:
    crystaler.makefile("a.txt", "one\ntwo\n")
    finished = run(
        crystaler, read("a.txt", offset=2.0, limit=1.0), read("a.txt", limit=HUGE), read("a.txt", offset=HUGE),
        read("a.txt", offset=1e300), ("list", {"path": ".", "offset": HUGE}),
    )  # fmt: skip
    assert [call.failed for call in finished] == [False, False, True, True, True]
    assert finished[0].output == "     2\ttwo"
    assert all("past its end" in call.output for call in finished[2:])


@pytest.mark.parametrize("text", ["[redacted:OPENAI_API_KEY]", "key = [redacted:OPENAI_API_KEY]\n"])
def test_a_mark_of_the_host_is_not_written_over_the_secret_it_stands_for(crystaler: Crystaler, text: str) -> None:
    crystaler.environ["OPENAI_API_KEY"] = "sk-0123456789abcdef"
    crystaler.makefile("conf", "key = sk-0123456789abcdef\nold\n")
    before = files(crystaler.workspace)
    finished = run(crystaler, read("conf"), write("conf", text), write("new", text), edit("conf", "old", text))
    assert "sk-0123456789abcdef" not in finished[0].output
    assert [call.failed for call in finished] == [False, True, True, True]
    assert all("[redacted:OPENAI_API_KEY]" in call.output for call in finished[1:])
    assert files(crystaler.workspace) == before


def test_two_edits_of_one_file_in_one_message_both_land_in_order(crystaler: Crystaler) -> None:
    file = crystaler.makefile("f", "".join(f"{number}\n" for number in range(1, 101)))
    finished = run(
        crystaler, read("f"), edit("f", "\n50\n", "\nFIFTY\n"), edit("f", "\n75\n", "\nSEVENTY\n"),
        edit("f", "FIFTY\n51", "LI"),
    )  # fmt: skip
    assert [call.failed for call in finished] == [False] * 4
    words = {50: "LI", 75: "SEVENTY"}
    assert file.read_text() == "".join(f"{words.get(n, n)}\n" for n in range(1, 101) if n != 51)


def test_a_file_that_changed_after_it_was_read_is_read_again_first(crystaler: Crystaler) -> None:
    file = crystaler.makefile("f", "old\n")
    crystaler.script([calls(read("f")), calls(edit("f"), write("f")), DONE])

    def change(event: Event) -> None:
        if isinstance(event, ToolCallFinished) and event.name == "read":
            file.write_text("old too\n")

    result = crystaler.run("do", "--approval", "full", listener=change)
    assert [call.failed for call in result.calls] == [False, True, True]
    assert all("changed on disk since it was read" in call.output for call in result.calls[1:])
    assert file.read_text() == "old too\n"


def test_what_is_no_file_is_said_at_once(crystaler: Crystaler) -> None:
    workspace = crystaler.workspace
    os.mkfifo(workspace / "live.pipe")
    (workspace / "zero").symlink_to("/dev/zero")
    (workspace / "stdin").symlink_to("/dev/stdin")
    crystaler.makefile("f", "old\n")
    with socket.socket(socket.AF_UNIX) as server:
        # The path of a socket is short, whatever the folder of the test is called.
        descriptor = os.open(workspace, os.O_RDONLY)
        server.bind(f"/dev/fd/{descriptor}/s")
        os.close(descriptor)
        finished = run(
            crystaler,
            *(made for path in ("live.pipe", "s", "zero", "stdin") for made in (read(path), edit(path), write(path))),
            listing("."),
            operator=Operator(ONCE),
        )
    assert all(call.failed for call in finished[:-1])
    kinds = ["named pipe"] * 3 + ["socket"] * 3 + ["device"] * 3
    assert all(kind in call.output for kind, call in zip(kinds, finished, strict=False))
    assert "live.pipe (named pipe)" in finished[-1].output
    assert "s (socket)" in finished[-1].output


OUTSIDE = [
    "../ws-evil/x", "{root}/ws-evil/x", "{workspace}/../ws-evil/x", "~/x", "/proc/self/root/etc/hosts", "out/f",
    "out/new/f", "d", "chain/f", "in/../../ws-evil/x", "/proc/self/cwd/x", "/dev/fd/0", "/proc/1/status",
]  # fmt: skip


def make_outside(crystaler: Crystaler) -> tuple[Path, Path]:
    workspace = Path(os.path.realpath(crystaler.workspace))
    root = workspace.parent
    for name in ("ws-evil/x", "other/f"):
        (root / name).parent.mkdir()
        (root / name).write_text("old secret\n")
    (workspace / "sub").mkdir()
    (workspace / "sub" / "f").write_text("old\n")
    for link, target in (("out", root / "other"), ("in", "sub"), ("d", root / "other" / "z"), ("chain", "out")):
        (workspace / link).symlink_to(target)
    return root, workspace


@pytest.mark.parametrize("text", OUTSIDE)
def test_nothing_outside_is_touched_without_the_operator(crystaler: Crystaler, user: Path, text: str) -> None:
    root, workspace = make_outside(crystaler)
    (user / "x").write_text("old secret\n")
    path = text.format(root=root, workspace=workspace)
    before = [files(folder) for folder in (workspace, root / "other", root / "ws-evil", user)]
    finished = run(crystaler, read(path), listing(path), edit(path), write(path))
    assert all(call.failed and "secret" not in call.output for call in finished)
    assert [files(folder) for folder in (workspace, root / "other", root / "ws-evil", user)] == before


def test_links_that_stay_inside_and_a_workspace_behind_a_link_work(crystaler: Crystaler) -> None:
    _, workspace = make_outside(crystaler)
    linked = workspace.parent / "linked"
    linked.symlink_to(workspace)
    made = [read("in/f"), edit("in/f"), listing("in"), write("in/new"), listing("."), listing(str(workspace)),
            read(f"{linked}/sub/f"), edit(f"{linked}/in/f", "new", "old")]  # fmt: skip
    crystaler.script([calls(*made), DONE])
    result = crystaler.run("do", "--approval", "full", "-w", str(linked))
    assert [call.failed for call in result.calls] == [False] * len(made)
    assert (workspace / "in").is_symlink()
    assert ((workspace / "sub/f").read_text(), (workspace / "sub/new").read_text()) == ("old\n", "new\n")


@pytest.mark.parametrize("moment", ["before the answer", "while another call runs"])
def test_a_place_that_is_another_one_when_the_call_runs_is_refused(crystaler: Crystaler, moment: str) -> None:
    root, workspace = make_outside(crystaler)
    (root / "third").mkdir()
    (root / "third" / "f").write_text("old secret\n")
    before = [files(root / name) for name in ("other", "third", "ws-evil")]

    def swap(*_: object) -> None:
        for name, target in (("sub", "third"), ("out", "third")):
            place = workspace / name
            if place.is_symlink():
                place.unlink()
            else:
                place.rename(workspace / "old")
            place.symlink_to(root / target)

    made = [read("out/f"), edit("out/f"), write("out/new"), read("sub/f"), edit("sub/f"), write("sub/new")]
    swapped: list[int] = []

    def first(*_: object) -> None:
        if not swapped:
            swapped.append(1)
            swap()

    if moment == "before the answer":
        finished = run(crystaler, *made, operator=Operator(ONCE, first=first))
        # What was asked about before the swap is refused; what came later was asked about as what it was then.
        assert finished[0].failed
        assert "secret" not in finished[0].output
        assert files(root / "other") == before[0]
        return
    crystaler.makeplugin("Swapper", Swapper(first))
    finished = run(crystaler, *made[3:])
    assert all(call.failed and "secret" not in call.output for call in finished)
    assert [files(root / name) for name in ("other", "third", "ws-evil")] == before


class Swapper:
    """A plugin that acts when a call has been judged, which is after its path was resolved and before it is used."""

    name = "Swapper"

    def __init__(self, act: Any) -> None:
        from crystal import hookimpl

        def on_approval(call: Any, facts: Any) -> None:
            act()

        self.on_approval = hookimpl(on_approval)


KEYS = ["~/.ssh/id_rsa", "{user}/.ssh/id_rsa", "~/.SSH/id_rsa", "key", "chain", "folder/id_rsa", "hard", "id_ed25519",
        "~/.aws/credentials", "tls/server.key"]  # fmt: skip


def make_keys(crystaler: Crystaler, user: Path) -> None:
    workspace = crystaler.workspace
    for name in ("id_ed25519", "tls/server.key"):
        crystaler.makefile(name, "the-key")
    (workspace / "key").symlink_to(user / ".ssh" / "id_rsa")
    (workspace / "chain").symlink_to("key")
    (workspace / "folder").symlink_to(user / ".ssh")
    os.link(user / ".ssh" / "id_rsa", workspace / "hard")


@pytest.mark.parametrize("text", KEYS)
def test_a_credential_is_forbidden_to_every_file_tool_by_every_name(
    crystaler: Crystaler, user: Path, text: str
) -> None:
    make_keys(crystaler, user)
    path = text.format(user=user)
    before = [files(user), files(crystaler.workspace)]
    finished = run(crystaler, read(path), listing(path), edit(path, "the-key"), write(path))
    assert all(call.failed and "the-key" not in call.output for call in finished)
    for call in finished:
        assert call.approval is not None
        assert call.approval["class"].startswith("Forbidden")
        assert (call.approval["rule"], call.approval["approved"]) == (3, False)
    assert [files(user), files(crystaler.workspace)] == before


def test_the_operators_once_opens_that_credential_for_that_call_and_no_other(crystaler: Crystaler, user: Path) -> None:
    make_keys(crystaler, user)
    finished = run(crystaler, read("key"), read("key"), operator=Operator(ONCE, Deny()))
    assert [call.failed for call in finished] == [False, True]
    assert "the-key" in finished[0].output


def test_a_workspaces_own_env_file_is_an_ordinary_file(crystaler: Crystaler) -> None:
    crystaler.makefile(".env", "old=1\n")
    finished = run(crystaler, read(".env"), edit(".env"), write("sub/.env"))
    assert [call.failed for call in finished] == [False] * 3
    assert (crystaler.workspace / ".env").read_text() == "new=1\n"


def test_the_home_in_the_workspace_is_outside_and_its_files_are_forbidden(crystaler: Crystaler) -> None:
    crystaler.home = crystaler.workspace / ".crystal"
    crystaler.makeconfig()
    config = (crystaler.home / "config.json").read_bytes()
    finished = run(
        crystaler, read(".crystal/config.json"), edit(".crystal/config.json", "{}"), write(".crystal/trust.json", "{}"),
        read(".crystal/sessions.db"), write(".crystal/notes"), listing(".crystal"),
    )  # fmt: skip
    assert all(call.failed for call in finished)
    classes = [str((call.approval or {})["class"]) for call in finished]
    assert [name.startswith("Forbidden") for name in classes] == [True] * 4 + [False] * 2
    assert all("OutsideWorkspace" in name for name in classes)
    assert (crystaler.home / "config.json").read_bytes() == config
    assert not (crystaler.home / "notes").exists()


def test_a_name_that_no_utf_8_can_spell_is_listed_and_refused_with_the_way_on(crystaler: Crystaler) -> None:
    file = Path(os.fsdecode(os.fsencode(crystaler.workspace) + b"/caf\xe9"))
    file.write_text("old\n")
    made = [made for path in ("caf\ufffd", "caf\udce9") for made in (read(path), edit(path), write(path))]
    finished = run(crystaler, listing("."), *made)
    assert "caf\ufffd (its name is not UTF-8; rename it with bash to use it)" in finished[0].output
    assert all(call.failed for call in finished[1:])
    assert ["cannot be given in a path" in call.output for call in finished[1:4]] == [True] * 3
    assert ["'path' holds half of a surrogate pair" in call.output for call in finished[4:]] == [True] * 3
    assert [(name, Path(crystaler.workspace / name).read_text()) for name in os.listdir(crystaler.workspace)] == [
        ("caf\udce9", "old\n")
    ]


def test_an_image_reaches_a_model_that_takes_images(crystaler: Crystaler) -> None:
    crystaler.makefile("logo.txt", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    [finished] = run(crystaler, read("logo.txt"))
    assert (finished.failed, finished.output) == (False, "logo.txt: image/png, 16 bytes")


def test_a_run_that_ends_leaves_the_modes_and_the_folder_as_they_were(crystaler: Crystaler) -> None:
    script, secret = crystaler.makefile("run.sh", "old\n"), crystaler.makefile("secret", "old\n")
    script.chmod(0o755)
    secret.chmod(0o600)
    before = os.umask(0o022)
    try:
        run(crystaler, edit("run.sh"), read("secret"), write("secret"), write("fresh"))
    finally:
        os.umask(before)
    modes = {name: (crystaler.workspace / name).stat().st_mode & 0o7777 for name in os.listdir(crystaler.workspace)}
    assert modes == {"run.sh": 0o755, "secret": 0o600, "fresh": 0o644}
