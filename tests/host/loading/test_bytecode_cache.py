"""Compiled code is kept by content, for the owner alone, and never believed."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from types import CodeType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.host.loading import bytecode
from crystal.host.loading.bytecode import BytecodeCache
from tests.host.loading.folders import Load, write_folder


def value_of(code: CodeType) -> object:
    scope: dict[str, object] = {}
    exec(code, scope)
    return scope["value"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "home" / "cache" / "bytecode"


def test_an_entry_is_used_again_by_a_later_process(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = BytecodeCache(place).compile(b"value = 1", "/x/acme.py")
    monkeypatch.setattr(bytecode, "compile_source", None)  # compiling would fail
    again = BytecodeCache(place).compile(b"value = 1", "/x/acme.py")
    assert again == first
    assert again.co_filename == "/x/acme.py"


@pytest.mark.parametrize(
    ("source", "path", "attribute"),
    [
        (b"value = 2", "/x/acme.py", None),
        (b"value = 1", "/y/acme.py", None),
        (b"value = 1", "/x/acme.py", "version"),
    ],
)
def test_content_file_name_and_interpreter_each_make_another_entry(
    place: Path, monkeypatch: pytest.MonkeyPatch, source: bytes, path: str, attribute: str | None
) -> None:
    BytecodeCache(place).compile(b"value = 1", "/x/acme.py")
    if attribute is not None:
        monkeypatch.setattr(sys, attribute, "another")
    code = BytecodeCache(place).compile(source, path)
    assert (value_of(code), code.co_filename) == (int(source[-1:]), path)
    assert len(list(place.iterdir())) == 2


def test_entries_are_the_owners_alone(place: Path) -> None:
    old = os.umask(0)
    try:
        BytecodeCache(place).compile(b"value = 1", "/x/acme.py")
    finally:
        os.umask(old)
    [entry] = place.iterdir()
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.stat().st_mode) == 0o700


@settings(deadline=None, max_examples=80)
@given(data=st.data())
def test_a_damaged_entry_is_recompiled(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    place = tmp_path_factory.mktemp("cache") / "bytecode"
    BytecodeCache(place).compile(b"value = 1", "/x/acme.py")
    [entry] = place.iterdir()
    whole = entry.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    damaged = data.draw(
        st.sampled_from(
            [whole[:at], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :], b"", whole + b"x", b"\0" * len(whole)]
        )
    )
    entry.write_bytes(damaged)
    assert value_of(BytecodeCache(place).compile(b"value = 1", "/x/acme.py")) == 1
    assert entry.read_bytes() == whole


@pytest.mark.parametrize("kind", ["folder", "link", "pipe", "shared", "group"])
def test_an_entry_of_another_kind_or_that_others_may_write_is_not_read(place: Path, kind: str) -> None:
    cache = BytecodeCache(place)
    cache.compile(b"value = 1", "/x/acme.py")
    [entry] = place.iterdir()
    whole = entry.read_bytes()
    entry.unlink()
    if kind == "folder":
        entry.mkdir()
    elif kind == "link":
        (place.parent / "elsewhere").write_bytes(whole)
        entry.symlink_to(place.parent / "elsewhere")
    elif kind == "pipe":
        os.mkfifo(entry)
    else:
        entry.write_bytes(whole)
        entry.chmod(0o666 if kind == "shared" else 0o620)
    assert value_of(BytecodeCache(place).compile(b"value = 1", "/x/acme.py")) == 1
    if kind != "folder":
        assert stat.S_IMODE(entry.lstat().st_mode) == 0o600
        assert entry.read_bytes() == whole


@pytest.mark.parametrize("kind", ["world", "link", "file", "unmakeable"])
def test_a_folder_that_is_not_the_owners_alone_is_not_used(place: Path, kind: str) -> None:
    place.parent.mkdir(parents=True)
    if kind == "world":
        place.mkdir()
        place.chmod(0o777)
    elif kind == "link":
        (place.parent / "elsewhere").mkdir()
        place.symlink_to(place.parent / "elsewhere")
    elif kind == "file":
        place.write_text("")
    else:
        place.parent.rmdir()
        place.parent.write_text("")
    cache = BytecodeCache(place)
    for _ in range(2):
        assert value_of(cache.compile(b"value = 1", "/x/acme.py")) == 1
    if kind in ("world", "link"):
        assert list(place.iterdir()) == []


def test_a_folder_that_disappears_costs_only_time(place: Path) -> None:
    cache = BytecodeCache(place)
    cache.compile(b"value = 1", "/x/acme.py")
    for entry in place.iterdir():
        entry.unlink()
    place.rmdir()
    assert value_of(cache.compile(b"value = 2", "/x/acme.py")) == 2
    assert value_of(cache.compile(b"value = 3", "/x/acme.py")) == 3


def test_past_its_bound_the_longest_unused_entries_go(place: Path) -> None:
    source = b"value = 1\nx = '" + b"y" * 1000 + b"'\n"
    cache = BytecodeCache(place, maximum_bytes=8_000)
    for number in range(6):
        cache.compile(source, f"/x/{number}.py")
    entries = sorted(place.iterdir(), key=lambda entry: entry.stat().st_mtime_ns)
    for age, entry in enumerate(entries):
        os.utime(entry, (1_000_000 + age, 1_000_000 + age))
    BytecodeCache(place, maximum_bytes=8_000).compile(source, "/x/0.py")  # in use again
    (place / "unfinished.tmp").write_bytes(b"z" * 2000)
    os.utime(place / "unfinished.tmp", (1, 1))
    (place / "foreign").write_text("stays")
    for number in range(6, 9):
        cache.compile(source, f"/x/{number}.py")
    left = set(place.iterdir())
    assert entries[0] in left
    assert entries[1] not in left
    assert not (place / "unfinished.tmp").exists()
    assert (place / "foreign").exists()
    assert sum(entry.stat().st_size for entry in left) <= 8_000


def test_a_context_writes_no_bytecode_elsewhere_whatever_the_environment_says(
    load: Load, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    context = load({"acme.py": "import utils", "utils.py": ""}, cache=BytecodeCache(place))
    context.entry("acme.py")
    assert len(list(place.iterdir())) == 2
    assert sorted(os.listdir(context.modules.folder)) == ["acme.py", "utils.py"]
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    context = load({"more.py": ""}, key="more", cache=BytecodeCache(place))
    context.entry("more.py")
    assert len(list(place.iterdir())) == 3


def test_a_syntax_error_is_not_kept(place: Path) -> None:
    with pytest.raises(SyntaxError):
        BytecodeCache(place).compile(b"(", "/x/acme.py")
    assert not place.exists()


def test_many_processes_may_share_a_folder(place: Path) -> None:
    children = []
    for _ in range(4):
        child = os.fork()
        if not child:
            try:
                cache = BytecodeCache(place, maximum_bytes=20_000)
                for number in range(40):
                    cache.compile(f"value = {number}\n".encode() * 20, f"/x/{number}.py")
            except BaseException:
                os._exit(1)
            os._exit(0)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 4
    assert value_of(BytecodeCache(place).compile(b"value = 7\n" * 20, "/x/7.py")) == 7
    assert not list(place.glob("*.tmp"))


def test_nothing_is_made_before_it_is_needed(tmp_path: Path) -> None:
    write_folder(tmp_path, {"home/x": ""})
    BytecodeCache(tmp_path / "home/cache/bytecode")
    assert not (tmp_path / "home/cache").exists()
