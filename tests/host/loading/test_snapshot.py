"""A folder is read once: what its digest covers, what it does not, and what refuses it."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.host.loading import snapshot as limits
from crystal.host.loading.snapshot import FolderRefused, read_folder
from tests.host.loading.folders import write_folder

FILES = {"acme.py": "x = 1\n", "lib/dep/__init__.py": "", "lib/dep/data.bin": b"\0\1", "plugin.json": "{}"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path.resolve() / "acme", FILES)


def test_code_and_manifests_are_kept_and_everything_is_digested(folder: Path) -> None:
    snapshot = read_folder(folder)
    assert snapshot.folder == folder
    assert dict(snapshot.files) == {"acme.py": b"x = 1\n", "lib/dep/__init__.py": b"", "plugin.json": b"{}"}
    assert list(snapshot.entries) == sorted(FILES)


def test_the_digest_is_the_same_on_every_machine(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "any", {"acme.py": "x = 1\n", "lib/ü.py": "", "data.bin": b"\xff"})
    (folder / "run").write_text("")
    (folder / "run").chmod(0o755)
    (folder / "also.py").symlink_to("acme.py")
    (folder / "all").symlink_to("lib")
    assert read_folder(folder).digest == "baa570ac0945fe8259810ba9adb980c6eedd22d6c027087f0a9aae3fc6294c47"


def changes() -> dict[str, Callable[[Path], object]]:
    return {
        "bytes": lambda folder: (folder / "acme.py").write_text("x = 2\n"),
        "data": lambda folder: (folder / "lib/dep/data.bin").write_bytes(b"\0\2"),
        "new": lambda folder: (folder / "new").write_text(""),
        "name": lambda folder: (folder / "acme.py").rename(folder / "acmf.py"),
        "gone": lambda folder: (folder / "lib/dep/data.bin").unlink(),
        "executable": lambda folder: (folder / "acme.py").chmod(0o755),
        "link": lambda folder: (folder / "l").symlink_to("acme.py"),
        "kind": lambda folder: ((folder / "plugin.json").unlink(), (folder / "plugin.json").symlink_to("acme.py")),
        "hidden": lambda folder: (folder / ".hidden").write_text(""),
        "compiled": lambda folder: (folder / "acme.pyc").write_bytes(b""),
        "moved": lambda folder: (folder / "lib/dep/data.bin").rename(folder / "lib/data.bin"),
    }


@pytest.mark.parametrize("change", changes())
def test_any_change_changes_the_digest(folder: Path, change: str) -> None:
    before = read_folder(folder).digest
    changes()[change](folder)
    assert read_folder(folder).digest != before


@pytest.mark.parametrize("place", ["__pycache__", "lib/dep/__pycache__"])
def test_bytecode_folders_are_no_part_of_it(folder: Path, place: str) -> None:
    before = read_folder(folder)
    write_folder(folder, {f"{place}/acme.cpython-311.pyc": b"x", f"{place}/evil.py": "x"})
    assert read_folder(folder) == before


def test_times_owners_of_rights_and_empty_folders_do_not_matter(folder: Path) -> None:
    before = read_folder(folder)
    os.utime(folder / "acme.py", (1, 1))
    (folder / "acme.py").chmod(0o640)
    (folder / "empty").mkdir()
    assert read_folder(folder) == before


TREES = st.dictionaries(
    st.lists(st.text("abü.", min_size=1, max_size=3).filter(lambda part: part.strip(".")), min_size=1, max_size=3).map(
        "/".join
    ),
    st.binary(max_size=8),
    max_size=8,
)


def is_tree(files: dict[str, bytes]) -> bool:
    return not any(other.startswith(f"{name}/") for name in files for other in files)


@settings(deadline=None, max_examples=60)
@given(files=TREES.filter(is_tree), order=st.randoms(use_true_random=False))
def test_the_order_of_creation_does_not_matter(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes], order: object
) -> None:
    base = tmp_path_factory.mktemp("trees")
    names = list(files)
    one = write_folder(base / "one", {name: files[name] for name in sorted(names)})
    order.shuffle(names)  # type: ignore[attr-defined]
    two = write_folder(base / "two", {name: files[name] for name in names})
    one.mkdir(exist_ok=True)
    two.mkdir(exist_ok=True)
    first, second = read_folder(one), read_folder(two)
    assert first.digest == second.digest
    assert list(first.files.items()) == list(second.files.items())


@settings(deadline=None, max_examples=60)
@given(one=TREES.filter(is_tree), two=TREES.filter(is_tree))
def test_different_trees_have_different_digests(
    tmp_path_factory: pytest.TempPathFactory, one: dict[str, bytes], two: dict[str, bytes]
) -> None:
    base = tmp_path_factory.mktemp("trees")
    folders = [write_folder(base / name, files) for name, files in (("one", one), ("two", two))]
    for folder in folders:
        folder.mkdir(exist_ok=True)
    assert (read_folder(folders[0]).digest == read_folder(folders[1]).digest) == (one == two)


def test_a_digest_can_be_foretold_for_one_changed_file(folder: Path) -> None:
    before = read_folder(folder)
    foretold = before.digest_with("plugin.json", b'{"enabled": false}')
    (folder / "plugin.json").write_text('{"enabled": false}')
    assert read_folder(folder).digest == foretold
    (folder / "lib/dep/data.bin").write_bytes(b"other")
    assert read_folder(folder).digest != foretold


def test_links_inside_are_followed_by_content(folder: Path) -> None:
    (folder / "alias.py").symlink_to("acme.py")
    (folder / "text.py").symlink_to("lib/dep/data.bin")
    (folder / "absolute.py").symlink_to(folder / "acme.py")
    snapshot = read_folder(folder)
    assert snapshot.files["alias.py"] == snapshot.files["absolute.py"] == b"x = 1\n"
    assert snapshot.files["text.py"] == b"\0\1"
    assert snapshot.links == {"absolute.py": "acme.py", "alias.py": "acme.py", "text.py": "lib/dep/data.bin"}


def test_links_between_folders_neither_loop_nor_multiply(folder: Path) -> None:
    for number in range(30):
        (folder / f"level{number}").mkdir()
        for name in ("a", "b"):
            (folder / f"level{number}" / name).symlink_to(f"../level{number + 1}")
    (folder / "level30").mkdir()
    (folder / "self").symlink_to(".")
    (folder / "lib/up").symlink_to("..")
    snapshot = read_folder(folder)
    assert len(snapshot.entries) == len(FILES) + 62
    assert snapshot.resolve("self/self/lib/up/acme.py") == "acme.py"


def test_a_link_to_nowhere_inside_is_only_a_link(folder: Path) -> None:
    (folder / ".#acme.py").symlink_to("someone@host.1:2")
    snapshot = read_folder(folder)
    assert snapshot.entries[".#acme.py"] == "link someone@host.1:2"
    assert ".#acme.py" not in snapshot.files


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("../other/x.py", "is a link that leaves the folder"),
        ("..", "is a link that leaves the folder"),
        ("/dev/null", "is a link that leaves the folder"),
        ("../missing", "is a link that leaves the folder"),
        ("../acme-twin/x.py", "is a link that leaves the folder"),
        ("__pycache__/x.py", "is a link into __pycache__"),
        ("__pycache__", "is a link into __pycache__"),
    ],
)
@pytest.mark.parametrize("name", ["l.py", "data.txt", "lib/deep.py"])
def test_a_link_that_leads_where_nothing_is_digested_refuses_the_folder(
    folder: Path, name: str, target: str, reason: str
) -> None:
    write_folder(folder.parent, {"other/x.py": "", "acme-twin/x.py": "", "acme/__pycache__/x.py": ""})
    if not target.startswith("/"):
        target = os.path.relpath(folder / target, (folder / name).parent)
    (folder / name).symlink_to(target)
    with pytest.raises(FolderRefused) as refused:
        read_folder(folder)
    assert reason in str(refused.value)
    assert str(refused.value).endswith(".")


def test_links_that_go_round_refuse_the_folder(folder: Path) -> None:
    (folder / "a.py").symlink_to("b.py")
    (folder / "b.py").symlink_to("a.py")
    with pytest.raises(FolderRefused, match=r"py cannot be read: too many levels of symbolic links"):
        read_folder(folder)


def test_a_link_that_leaves_by_way_of_another_refuses_the_folder(folder: Path) -> None:
    write_folder(folder.parent, {"other/x.py": ""})
    (folder / "out").symlink_to("../other")
    (folder / "a.py").symlink_to("out/x.py")
    with pytest.raises(FolderRefused, match="leaves the folder"):
        read_folder(folder)


def test_pipes_sockets_and_devices_refuse_the_folder_without_blocking(folder: Path) -> None:
    os.mkfifo(folder / "pipe.py")
    with pytest.raises(FolderRefused, match=r"pipe\.py is a named pipe, not a file; take it out\."):
        read_folder(folder)
    (folder / "pipe.py").unlink()
    where = Path.cwd()
    os.chdir(folder)  # the name of a socket may not be long
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind("s")
    finally:
        os.chdir(where)
    with pytest.raises(FolderRefused, match=r"s cannot be read|s is a socket"):
        read_folder(folder)


def test_what_cannot_be_read_refuses_the_folder(tmp_path: Path) -> None:
    with pytest.raises(FolderRefused, match="gone cannot be read"):
        read_folder(tmp_path / "gone")
    with pytest.raises(FolderRefused, match="cannot be read"):
        read_folder(write_folder(tmp_path, {"file": ""}) / "file")


def test_a_file_without_permission_refuses_the_folder(folder: Path) -> None:
    (folder / "secret").write_text("")
    (folder / "secret").chmod(0)
    # Root may read everything, so a child reads as nobody.
    for place in (folder, *folder.parents):
        if place != Path("/tmp") and place.is_relative_to("/tmp"):
            place.chmod(0o755)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            if os.geteuid() == 0:
                os.setuid(65534)
            read_folder(folder)
        except FolderRefused as refused:
            os.write(writing, str(refused).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as said:
        assert said.read() == b"secret cannot be read: permission denied; mend its permissions or take it out."
    os.waitpid(child, 0)


def test_control_characters_of_names_do_not_reach_the_message(folder: Path) -> None:
    (folder / "a\x1b[31m\n").symlink_to("/")
    with pytest.raises(FolderRefused) as refused:
        read_folder(folder)
    assert str(refused.value).isprintable()


def test_names_that_are_no_text_are_digested(folder: Path) -> None:
    before = read_folder(folder).digest
    try:
        (folder / os.fsdecode(b"\xff.py")).write_text("")
    except OSError:
        assert sys.platform == "darwin"  # which has no such names
        return
    assert read_folder(folder).digest != before


def test_too_much_refuses_the_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAXIMUM_FILES", 6)
    read_folder(folder)
    (folder / "one_more").write_text("")
    with pytest.raises(FolderRefused, match="past 6; keep data"):
        read_folder(folder)
    monkeypatch.undo()
    monkeypatch.setattr(limits, "MAXIMUM_DEPTH", 3)
    read_folder(folder)
    write_folder(folder, {"a/b/c/d": ""})
    with pytest.raises(FolderRefused, match="more than 3 folders deep"):
        read_folder(folder)


def test_a_huge_file_is_refused_before_it_is_read(folder: Path) -> None:
    with open(folder / "huge.py", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(FolderRefused, match="holds more than 256 MiB"):
        read_folder(folder)


def test_many_files_together_are_refused_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_folder(folder, {f"f{number}": b"x" * 1000 for number in range(5)})
    monkeypatch.setattr(limits, "MAXIMUM_BYTES", 4500)
    with pytest.raises(FolderRefused, match="MiB"):
        read_folder(folder)
    monkeypatch.setattr(limits, "MAXIMUM_BYTES", 6000)
    read_folder(folder)
