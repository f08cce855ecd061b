"""The prompt files that a workspace brings: they count only as the operator trusted them, file by file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from crystal.engine.prompts.overlay import PROMPTS, PromptFile, PromptRefused, prompt_files, read_prompt, refusal_note
from crystal.host.sources.project_trust import EntryState, ProjectCode, ProjectEntry
from crystal.store.home import Home
from crystal.store.trust import remembered_entries
from crystal.types._frozen import Frozen
from crystal.types.notes import Note, NoteCode, Severity
from crystal.workspace.fence import Fence, printable

_NEVER_OF_A_WORKSPACE = "review"


class ProjectPrompts(Frozen):
    """What counts of a workspace's prompt files.

    :param texts: by prompt.
    :param untrusted: files that do not count until the operator trusts them as they are.
    """

    texts: Mapping[str, str]
    notes: tuple[Note, ...]
    untrusted: tuple[ProjectEntry, ...] = ()


def read_project_prompts(home: Home, workspace: Path, project: ProjectCode) -> ProjectPrompts:
    """Read the prompt files of a workspace that the operator trusts as they are.

    :param workspace: real path.
    :raises HomeFileError: when ``trust.json`` is broken.
    """
    folder = _folder(home, workspace)
    if folder is None or project is ProjectCode.NEVER:
        return ProjectPrompts(texts={}, notes=())
    if not _is_inside(folder, home, workspace):
        return ProjectPrompts(texts={}, notes=(_leaves(folder),))
    notes = [_not_of_a_workspace(path) for path in prompt_files(folder, _NEVER_OF_A_WORKSPACE)]
    asks = project is ProjectCode.ASK
    remembered = remembered_entries(home, str(workspace)) if asks else {}
    texts: dict[str, str] = {}
    untrusted: list[ProjectEntry] = []
    for prompt, path in _files(folder):
        known = remembered.get(_entry(path))
        if prompt in texts:
            continue
        if asks and known is None:
            untrusted.append(ProjectEntry(name=_entry(path), state=EntryState.NEW))
            continue
        try:
            file = _read(path)
        except PromptRefused as refused:
            notes.append(refusal_note(path, refused))
            continue
        if asks and file.digest != known:
            untrusted.append(ProjectEntry(name=_entry(path), state=EntryState.CHANGED, digest=file.digest))
        elif file.text:
            texts[prompt] = file.text
    return ProjectPrompts(texts=texts, notes=tuple(notes), untrusted=tuple(untrusted))


def project_prompts(home: Home, workspace: Path) -> tuple[ProjectEntry, ...]:
    """Return every prompt file of a workspace that needs trust, with its digest as it is now.

    :param workspace: real path.
    :raises HomeFileError: when ``trust.json`` is broken.
    """
    folder = _folder(home, workspace)
    if folder is None or not _is_inside(folder, home, workspace):
        return ()
    remembered = remembered_entries(home, str(workspace))
    return tuple(_judged(path, remembered) for _, path in _files(folder))


def _judged(path: Path, remembered: Mapping[str, str]) -> ProjectEntry:
    name = _entry(path)
    try:
        digest = _read(path).digest
    except PromptRefused:
        return ProjectEntry(name=name, state=EntryState.REFUSED)
    known = remembered.get(name)
    state = EntryState.NEW if known is None else EntryState.TRUSTED if known == digest else EntryState.CHANGED
    return ProjectEntry(name=name, state=state, digest=digest)


def _folder(home: Home, workspace: Path) -> Path | None:
    """Return where a workspace keeps its prompts; ``None`` when there are none, or they are the home's own."""
    folder = workspace / ".crystal" / "prompts"
    if not os.path.lexists(folder):
        return None
    own = workspace / ".crystal"
    is_home = os.path.exists(own) and os.path.exists(home.root) and os.path.samefile(own, home.root)
    return None if is_home else folder


def _is_inside(folder: Path, home: Home, workspace: Path) -> bool:
    return Fence.at(workspace, home.root).contains(os.path.realpath(folder))


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for prompt in PROMPTS:
        if prompt != _NEVER_OF_A_WORKSPACE:
            for path in prompt_files(folder, prompt):
                yield prompt, path


def _entry(path: Path) -> str:
    return f"prompts/{path.name}"


def _read(path: Path) -> PromptFile:
    if os.path.dirname(os.path.realpath(path)) != os.path.realpath(path.parent):
        raise PromptRefused("is a link that leaves its folder; put the file itself in its place")
    return read_prompt(path)


def _leaves(folder: Path) -> Note:
    shown = printable(str(folder))
    text = (
        f"The project's prompts are left out: {shown} is a link that leaves the workspace. Put a folder in its place."
    )
    return Note(code=NoteCode.PROMPT_FILE, text=text, source=shown)


def _not_of_a_workspace(path: Path) -> Note:
    shown = printable(str(path))
    text = (
        f"The prompt file {shown} is not used: the Review text is never a workspace's; put it into the home's prompts."
    )
    return Note(code=NoteCode.PROMPT_FILE, text=text, source=shown, severity=Severity.INFO)
