"""Links that appear while a call runs: at no moment does a file tool read or change what lies outside."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from crystal.types.tools import ToolOutput
from plugins_builtin.files.edit import EditTool
from plugins_builtin.files.listing import ListTool
from plugins_builtin.files.read import ReadTool
from plugins_builtin.files.write import WriteTool
from tests.plugins_builtin.tool_calls import Session
from tests.workspace.moments import before_call

SECRET = "outside-secret"


def state_of(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every entry below a folder with its bytes and the time of its last change."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        found[str(path.relative_to(folder))] = (path.read_bytes() if path.is_file() else b"", status.st_ctime_ns)
    return found


class World:
    """A workspace with ``sub/f``, a folder outside with the same names, and a way to swap one for a link to the other.

    :param swapped: what becomes a link: ``sub``, ``sub/f``, ``sub/deep`` (missing before) or ``sub/new`` (too).
    """

    def __init__(self, root: Path, swapped: str) -> None:
        self.session = Session(root)
        self.other = root / "other"
        for place in ("f", "new/x", "deep/er/x"):
            (self.other / place).parent.mkdir(parents=True, exist_ok=True)
            (self.other / place).write_text(SECRET)
        self.session.write("sub/f", "inside\n")
        self.before = state_of(self.other)
        self._place = self.session.workspace / swapped
        self._kept = self.session.workspace / "kept"
        self._target = self.other / swapped.removeprefix("sub").strip("/")

    def swap(self) -> None:
        """Put the link in, or take it away and put back what was there."""
        if self._place.is_symlink():
            self._place.unlink()
            if self._kept.exists():
                self._kept.rename(self._place)
            return
        if self._place.exists():
            self._place.rename(self._kept)
        if self._place.parent.is_dir():
            self._place.symlink_to(self._target)


def read_file(session: Session) -> ToolOutput:
    return session.call(ReadTool(), path="sub/f")


def read_missing(session: Session) -> ToolOutput:
    return session.call(ReadTool(), path="sub/nex")


def list_folder(session: Session) -> ToolOutput:
    return session.call(ListTool(), path="sub")


def edit_file(session: Session) -> ToolOutput:
    return session.call(EditTool(), path="sub/f", old_string="i", new_string="I", replace_all=True)


def overwrite(session: Session) -> ToolOutput:
    return session.call(WriteTool(), path="sub/f", content="new\n")


def create(session: Session) -> ToolOutput:
    return session.call(WriteTool(), path="sub/new", content="new\n")


def create_deep(session: Session) -> ToolOutput:
    return session.call(WriteTool(), path="sub/deep/er/new", content="new\n")


CASES = [
    (read_file, "sub"), (read_file, "sub/f"), (list_folder, "sub"), (edit_file, "sub"), (edit_file, "sub/f"),
    (overwrite, "sub"), (overwrite, "sub/f"), (create, "sub"), (create, "sub/new"), (create_deep, "sub"),
    (create_deep, "sub/deep"),
]  # fmt: skip


@pytest.mark.parametrize("back", [False, True], ids=["stays", "goes back"])
@pytest.mark.parametrize(("call", "swapped"), CASES, ids=lambda case: getattr(case, "__name__", case))
def test_a_link_that_appears_at_any_moment_leads_no_tool_outside(
    tmp_path: Path, call: Callable[[Session], ToolOutput], swapped: str, back: bool
) -> None:
    number = 0
    succeeded = refused = 0
    while True:
        number += 1
        root = Path(os.path.realpath(tmp_path)) / str(number)
        root.mkdir()
        world = World(root, swapped)
        if call is overwrite:
            read_file(world.session)
        with before_call(number, world.swap, until=number + 1 if back else None) as calls:
            output = call(world.session)
        assert state_of(world.other) == world.before, calls[:number]
        assert SECRET not in output.text
        assert not any(content == SECRET.encode() for _, content, _ in world.session.memory.before_images)
        assert "Similar names there: new" not in output.text
        if call is list_folder:
            assert output.failed or output.text in ("f", "f\nnew", ". is empty")
        succeeded += not output.failed
        refused += output.failed
        shutil.rmtree(root)
        if len(calls) < number:
            break
    # The call was really swapped under: at some moments it noticed, and the last time nothing happened any more.
    assert number > 8
    assert succeeded or call is read_missing
    assert refused


def test_a_folder_swapped_between_approval_and_use_is_refused(tmp_path: Path) -> None:
    world = World(Path(os.path.realpath(tmp_path)), "sub")
    session = world.session
    session.permitted = frozenset({str(session.workspace / "sub" / "f"), str(world.other / "new" / "x")})
    world.swap()
    for call in (read_file, edit_file, overwrite, create, create_deep, list_folder):
        output = call(session)
        assert output.failed
        assert "outside the workspace" in output.text
    assert state_of(world.other) == world.before
