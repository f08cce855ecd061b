"""Replacing files whole: what is not content stays, and every failure leaves the old file or the new one, alone."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from crystal.workspace.atomic_write import FileChanged, replace_in_folder
from tests.workspace.moments import before_call

OLD, NEW = b"old\n" * 100, b"new\n" * 300


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = Path(os.path.realpath(tmp_path)) / "folder"
    made.mkdir()
    return made


@pytest.fixture(params=["unnamed", "named"])
def _both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """File systems differ in whether they can hold a file without a name; both ways make the same promises."""
    if request.param == "named":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)


def replace(file: Path, data: bytes, expected: os.stat_result | None) -> os.stat_result:
    descriptor = os.open(file.parent, os.O_RDONLY)
    try:
        return replace_in_folder(descriptor, file.name, data, expected)
    finally:
        os.close(descriptor)


def attributes(file: Path) -> dict[str, bytes]:
    listed = os.listxattr(file) if hasattr(os, "listxattr") else []
    return {name: os.getxattr(file, name) for name in listed}


@pytest.mark.usefixtures("_both_ways")
@pytest.mark.parametrize("mode", [0o755, 0o600, 0o644, 0o4755, 0o2775, 0o400])
def test_an_existing_file_keeps_mode_owner_and_extended_attributes(folder: Path, mode: int) -> None:
    file = folder / "f"
    file.write_bytes(OLD)
    if os.geteuid() == 0:
        os.chown(file, 1234, 5678)
    if hasattr(os, "setxattr"):
        with suppress(OSError):
            os.setxattr(file, "user.origin", b"\0\xff")
    file.chmod(mode)
    before, kept = file.stat(), attributes(file)
    status = replace(file, NEW, before)
    now = file.stat()
    assert (file.read_bytes(), stat.S_IMODE(now.st_mode), attributes(file)) == (NEW, mode, kept)
    assert (now.st_uid, now.st_gid) == (before.st_uid, before.st_gid)
    assert (status.st_ino, status.st_size, status.st_mtime_ns) == (now.st_ino, len(NEW), now.st_mtime_ns)
    assert os.listdir(folder) == ["f"]


@pytest.mark.usefixtures("_both_ways")
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_gets_what_the_umask_leaves(folder: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        replace(folder / "f", NEW, None)
    finally:
        os.umask(before)
    assert ((folder / "f").read_bytes(), stat.S_IMODE((folder / "f").stat().st_mode)) == (NEW, mode)
    assert os.listdir(folder) == ["f"]


def test_whom_the_owner_cannot_be_kept_for_the_file_is_opened_to_nobody_new(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = folder / "f"
    file.write_bytes(OLD)
    found = file.stat()
    fields = list(found)
    fields[0], fields[4], fields[5] = stat.S_IFREG | 0o6674, found.st_uid + 1, found.st_gid + 1
    others = os.stat_result(fields, {"st_mtime_ns": found.st_mtime_ns, "st_ctime_ns": found.st_ctime_ns})

    def refuse(descriptor: int, owner: int, group: int) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "fchown", refuse)
    replace(file, NEW, others)
    assert stat.S_IMODE(file.stat().st_mode) == 0o644


def test_other_hard_links_keep_the_old_bytes(folder: Path) -> None:
    (folder / "f").write_bytes(OLD)
    os.link(folder / "f", folder / "other")
    replace(folder / "f", NEW, (folder / "f").stat())
    assert ((folder / "f").read_bytes(), (folder / "other").read_bytes()) == (NEW, OLD)


@pytest.mark.usefixtures("_both_ways")
@pytest.mark.parametrize("change", ["bytes", "mode", "removed", "replaced", "link", "folder"])
def test_a_file_that_became_another_one_is_left_as_it_is(folder: Path, change: str) -> None:
    file = folder / "f"
    file.write_bytes(OLD)
    expected = file.stat()

    def act() -> None:
        if change == "bytes":
            file.write_bytes(b"theirs")
            os.utime(file, ns=(expected.st_atime_ns, expected.st_mtime_ns))
        elif change == "mode":
            file.chmod(0o640)
        else:
            file.unlink()
        if change == "replaced":
            file.write_bytes(OLD)
        elif change == "link":
            file.symlink_to("elsewhere")
        elif change == "folder":
            file.mkdir()

    act()
    state = [
        (entry.name, entry.is_symlink(), entry.is_file() and Path(entry).read_bytes()) for entry in os.scandir(folder)
    ]
    with pytest.raises(FileChanged):
        replace(file, NEW, expected)
    assert state == [
        (entry.name, entry.is_symlink(), entry.is_file() and Path(entry).read_bytes()) for entry in os.scandir(folder)
    ]


@pytest.mark.usefixtures("_both_ways")
def test_a_new_file_never_replaces_one_that_was_made_in_the_meantime(folder: Path) -> None:
    number = 0
    while True:
        number += 1
        file = folder / f"f{number}"

        def make(file: Path = file) -> None:
            file.write_bytes(b"theirs")

        with before_call(number, make) as calls:
            try:
                replace(file, NEW, None)
            except FileChanged:
                assert file.read_bytes() == b"theirs"
        if len(calls) < number:
            break
        if file.read_bytes() != b"theirs":
            # It came after ours had its name, and wrote over it, as everybody may.
            assert calls.index("link") < number
    assert number > 5
    assert {name[0] for name in os.listdir(folder)} == {"f"}


FAULTS = [errno.ENOSPC, errno.EACCES, errno.EPERM, errno.EIO, errno.EROFS, errno.EDQUOT, errno.EOPNOTSUPP, errno.EINTR]


@pytest.mark.usefixtures("_both_ways")
@pytest.mark.parametrize("fault", [*FAULTS, "interrupt"])
@pytest.mark.parametrize("existing", [True, False])
def test_a_fault_at_any_moment_leaves_the_old_file_or_the_new_one_and_nothing_else(
    folder: Path, fault: int | str, existing: bool
) -> None:
    file = folder / "f"

    def fail() -> None:
        raise KeyboardInterrupt if isinstance(fault, str) else OSError(fault, os.strerror(fault))

    number, failures = 0, 0
    while True:
        number += 1
        file.unlink(missing_ok=True)
        if existing:
            file.write_bytes(OLD)
            file.chmod(0o640)
        expected = file.stat() if existing else None
        descriptor = os.open(folder, os.O_RDONLY)
        done = False
        with before_call(number, fail) as calls, suppress(OSError, KeyboardInterrupt):
            replace_in_folder(descriptor, "f", NEW, expected)
            done = True
        os.close(descriptor)
        if len(calls) < number:
            break
        failures += not done
        content = file.read_bytes() if file.exists() else None
        assert content in ([NEW] if done else [NEW, OLD if existing else None]), calls
        assert [name for name in os.listdir(folder) if name != "f"] == [], calls
        if existing:
            assert stat.S_IMODE(file.stat().st_mode) == 0o640, calls
    assert failures >= 2


KILLED = """
import os, signal, sys
sys.path[:0] = [os.getcwd()]
from crystal.workspace.atomic_write import replace_in_folder
number, existing, named = (int(word) for word in sys.argv[2:])
if named:
    vars(os).pop("O_TMPFILE", None)
folder = os.open(sys.argv[1], os.O_RDONLY)
expected = os.stat("f", dir_fd=folder) if existing else None
made = 0
def watched(function):
    def call(*arguments, **named):
        global made
        made += 1
        if made == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **named)
    return call
for name in ("open", "write", "fstat", "fchmod", "link", "stat", "replace", "unlink", "close", "fsync"):
    setattr(os, name, watched(getattr(os, name)))
replace_in_folder(folder, "f", b"new\\n" * 300, expected)
"""


@pytest.mark.parametrize("existing", [True, False])
@pytest.mark.parametrize("named", [False, True])
def test_a_kill_at_any_moment_leaves_the_old_file_or_the_new_one(folder: Path, existing: bool, named: bool) -> None:
    file = folder / "f"
    unnamed = hasattr(os, "O_TMPFILE") and not named
    number, killed = 0, True
    while killed:
        number += 1
        for name in os.listdir(folder):
            (folder / name).unlink()
        if existing:
            file.write_bytes(OLD)
        words = [str(folder), str(number), str(int(existing)), str(int(named))]
        finished = subprocess.run([sys.executable, "-c", KILLED, *words], check=False, capture_output=True)
        killed = finished.returncode == -signal.SIGKILL
        assert killed or finished.returncode == 0, finished.stderr
        content = file.read_bytes() if file.exists() else None
        assert content in ([NEW, OLD if existing else None] if killed else [NEW])
        left = [name for name in os.listdir(folder) if name != "f"]
        assert len(left) <= (1 if existing or not unnamed else 0)
        assert all(name.startswith(".crystal-") and name.endswith(".tmp") for name in left)
        if unnamed:
            # What is left was complete before it had a name.
            assert [(folder / name).read_bytes() for name in left] == [NEW] * len(left)
    assert number > 5


FULL = """
import os, resource, sys
sys.path[:0] = [os.getcwd()]
from crystal.workspace.atomic_write import replace_in_folder
if sys.argv[2] == "named":
    vars(os).pop("O_TMPFILE", None)
folder = os.open(sys.argv[1], os.O_RDONLY)
resource.setrlimit(resource.RLIMIT_FSIZE, (500, resource.RLIM_INFINITY))
for name, expected in (("f", os.stat("f", dir_fd=folder)), ("new", None)):
    try:
        replace_in_folder(folder, name, b"x" * 2000, expected)
    except OSError as error:
        print(name, error.errno)
"""


@pytest.mark.parametrize("way", ["unnamed", "named"])
def test_no_room_for_the_new_bytes_leaves_the_old_file_and_no_other(folder: Path, way: str) -> None:
    (folder / "f").write_bytes(OLD)
    finished = subprocess.run(
        [sys.executable, "-c", FULL, str(folder), way], check=False, capture_output=True, text=True
    )
    assert finished.stdout.split() == ["f", str(errno.EFBIG), "new", str(errno.EFBIG)], finished.stderr
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 500
    assert (os.listdir(folder), (folder / "f").read_bytes()) == (["f"], OLD)


@pytest.mark.usefixtures("_both_ways")
def test_a_file_that_another_program_has_locked_is_left_to_it(folder: Path) -> None:
    file = folder / "f"
    file.write_bytes(OLD)
    with file.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(FileChanged, match="locked"):
            replace(file, NEW, file.stat())
        assert (file.read_bytes(), os.listdir(folder)) == (OLD, ["f"])
    replace(file, NEW, file.stat())
    assert file.read_bytes() == NEW


@contextmanager
def without_privileges() -> Iterator[None]:
    """Root may write everywhere, so a test that runs as root becomes nobody for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.usefixtures("_both_ways")
def test_a_folder_that_takes_no_file_refuses_even_a_file_that_could_be_written(folder: Path) -> None:
    file = folder / "f"
    file.write_bytes(OLD)
    file.chmod(0o666)
    expected = file.stat()
    descriptor = os.open(folder, os.O_RDONLY)
    folder.chmod(0o555)
    try:
        with without_privileges(), pytest.raises(PermissionError):
            replace_in_folder(descriptor, "f", NEW, expected)
    finally:
        folder.chmod(0o755)
        os.close(descriptor)
    assert (file.read_bytes(), os.listdir(folder)) == (OLD, ["f"])


@pytest.mark.usefixtures("_both_ways")
def test_a_name_as_long_as_names_can_be_is_replaced(folder: Path) -> None:
    file = folder / ("n" * 255)
    replace(file, OLD, None)
    replace(file, NEW, file.stat())
    assert (file.read_bytes(), len(os.listdir(folder))) == (NEW, 1)
