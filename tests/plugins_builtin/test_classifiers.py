"""The class of every built-in call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crystal.types._readonly import read_only
from crystal.types.approval import Authority, Classification, Risk
from crystal.types.paths import PathZone, ResolvedPath
from crystal.types.tools import Classifier, ClassifierFacts, ToolCall
from plugins_builtin.classifiers import contribute_classifiers

INSIDE = ResolvedPath(text="src/a.py", real="/ws/src/a.py", zone=PathZone.WORKSPACE, inside=True)
GUARDED = ResolvedPath(text=".git/config", real="/ws/.git/config", zone=PathZone.GUARDED, inside=True)
OUTSIDE = ResolvedPath(text="../b", real="/b", zone=PathZone.OUTSIDE, inside=False)
KEY_INSIDE = ResolvedPath(text="id_rsa", real="/ws/id_rsa", zone=PathZone.CREDENTIAL, inside=True)
KEY_OUTSIDE = ResolvedPath(text="~/.ssh/x", real="/u/.ssh/x", zone=PathZone.CREDENTIAL, inside=False)
HOST = ResolvedPath(text="~/.crystal/trust.json", real="/h/trust.json", zone=PathZone.HOST, inside=False)

BOTH = Authority.WORKSPACE | Authority.OUTSIDE_WORKSPACE
READ_TOOLS = ("read", "list", "glob", "grep", "tree", "search")


def classify(
    name: str, arguments: dict[str, Any], *paths: ResolvedPath, workspace: Path = Path("/ws")
) -> Classification | None:
    (classifier,) = contribute_classifiers()
    assert isinstance(classifier, Classifier)
    facts = ClassifierFacts(workspace=workspace, home=Path("/h"), paths=paths, plugin="builtin:any")
    return classifier.classify(ToolCall(id="1", name=name, arguments=read_only(arguments)), facts)


@pytest.mark.parametrize("name", READ_TOOLS)
@pytest.mark.parametrize(
    ("paths", "risk", "authority"),
    [
        ((), Risk.READ, Authority.WORKSPACE),
        ((INSIDE,), Risk.READ, Authority.WORKSPACE),
        ((GUARDED,), Risk.READ, Authority.WORKSPACE),
        ((OUTSIDE,), Risk.READ, Authority.OUTSIDE_WORKSPACE),
        ((INSIDE, OUTSIDE), Risk.READ, BOTH),
        ((KEY_INSIDE,), Risk.FORBIDDEN, Authority.WORKSPACE),
        ((KEY_OUTSIDE,), Risk.FORBIDDEN, Authority.OUTSIDE_WORKSPACE),
        ((HOST,), Risk.FORBIDDEN, Authority.OUTSIDE_WORKSPACE),
        ((INSIDE, HOST), Risk.FORBIDDEN, BOTH),
    ],
)
def test_reading_tools(name: str, paths: tuple[ResolvedPath, ...], risk: Risk, authority: Authority) -> None:
    found = classify(name, {}, *paths)
    summary = " ".join([name, *(path.text for path in paths)])
    assert found == Classification(risk=risk, authority=authority, summary=summary)


@pytest.mark.parametrize("name", ["edit", "write"])
@pytest.mark.parametrize(
    ("paths", "risk", "authority"),
    [
        ((INSIDE,), Risk.WRITE, Authority.WORKSPACE),
        ((GUARDED,), Risk.PRIVILEGED, Authority.WORKSPACE),
        ((OUTSIDE,), Risk.WRITE, Authority.OUTSIDE_WORKSPACE),
        ((KEY_INSIDE,), Risk.FORBIDDEN, Authority.WORKSPACE),
        ((KEY_OUTSIDE,), Risk.FORBIDDEN, Authority.OUTSIDE_WORKSPACE),
        ((HOST,), Risk.FORBIDDEN, Authority.OUTSIDE_WORKSPACE),
        ((INSIDE, GUARDED), Risk.PRIVILEGED, Authority.WORKSPACE),
        ((), Risk.PRIVILEGED, Authority.WORKSPACE),
    ],
)
def test_writing_tools(name: str, paths: tuple[ResolvedPath, ...], risk: Risk, authority: Authority) -> None:
    found = classify(name, {"content": "secret"}, *paths)
    summary = " ".join([name, *(path.text for path in paths)])
    assert found == Classification(risk=risk, authority=authority, summary=summary)


@pytest.mark.parametrize("name", ["todoread", "todowrite", "question", "skill"])
def test_tools_that_touch_the_sessions_own_state_pass_as_reads(name: str) -> None:
    assert classify(name, {"todos": [], "questions": []}) == Classification(risk=Risk.READ, summary=name)


def test_bash_is_judged_by_its_command_with_the_calls_own_workspace(tmp_path: Path) -> None:
    workspace = tmp_path.resolve() / "ws"
    (workspace / ".git").mkdir(parents=True)
    for command, label in (
        ("ls", "Write + Workspace"),
        (f"cat {workspace}/f", "Write + Workspace"),
        (f"cat {workspace.parent}/f", "Write + Workspace + OutsideWorkspace"),
        ("touch .git/x", "Privileged + Workspace"),
        ("cat ~/.ssh/id_rsa", "Forbidden + Workspace + OutsideWorkspace"),
    ):
        found = classify("bash", {"command": command}, workspace=workspace)
        assert found is not None
        assert (found.label, found.summary) == (label, command)


def test_a_bash_call_without_a_command_is_privileged() -> None:
    assert classify("bash", {"command": 1}) == Classification(risk=Risk.PRIVILEGED, summary="bash")


@pytest.mark.parametrize("name", ["deploy", "Read", "bash2", ""])
def test_other_tools_are_left_to_other_classifiers(name: str) -> None:
    assert classify(name, {}, INSIDE) is None


def test_the_summary_names_what_is_searched_and_prints_on_one_line() -> None:
    found = classify("grep", {"pattern": "a\n\x1b[2Jb"}, INSIDE)
    assert found is not None
    assert found.summary == "grep a\\n\\x1b[2Jb src/a.py"
