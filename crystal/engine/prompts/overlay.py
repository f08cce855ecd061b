"""Which text each prompt has: a trusted workspace's before the home's before the built-in one. Binds nothing.

The Review text guards the operator from what the workspace holds, so it is never the workspace's.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from crystal.engine.prompts.texts import BUILT_IN, Templates
from crystal.host.sources.project_trust import ProjectCode, ProjectEntry
from crystal.store.home import Home, describe
from crystal.types._frozen import Frozen
from crystal.types.notes import Note, NoteCode
from crystal.workspace.fence import printable
from crystal.workspace.open_files import FileMissing, FileRefused, open_regular, read_bytes

PROMPT_BYTES = 256 * 1024
"""A larger prompt file is not used; it would fill the context of many models."""

PROMPTS = ("work", "plan", "review")
_SUFFIXES = (".md", ".txt")


class PromptRefused(Exception):
    """A prompt file cannot be used; the message says why and the mend, and goes on a sentence that names the file."""


class PromptFile(Frozen):
    """A prompt file as it was read.

    :param text: without a byte order mark and outer white space; empty when it is blank, which is as good as missing.
    :param digest: SHA-256 of its bytes, in hexadecimal digits.
    """

    text: str
    digest: str


class FoundTemplates(Frozen):
    """The prompts that count, and what there is to say about the others.

    :param untrusted: files of the workspace that do not count.
    """

    templates: Templates
    notes: tuple[Note, ...]
    untrusted: tuple[ProjectEntry, ...]


def read_templates(home: Home, workspace: Path, project: ProjectCode) -> FoundTemplates:
    """Read the prompt files of the home and of the workspace. One that cannot be used is a note and counts as missing.

    :param workspace: real path.
    :raises HomeFileError: when ``trust.json`` is broken.
    """
    texts, notes = _of_home(home)
    untrusted: tuple[ProjectEntry, ...] = ()
    if os.path.lexists(workspace / ".crystal" / "prompts"):
        # Imported only here: what reads trust is not needed where there is nothing to trust.
        from crystal.engine.prompts.project import read_project_prompts

        theirs = read_project_prompts(home, workspace, project)
        texts |= theirs.texts
        notes += theirs.notes
        untrusted = theirs.untrusted
    return FoundTemplates(templates=replace(BUILT_IN, **texts), notes=tuple(notes), untrusted=untrusted)


def _of_home(home: Home) -> tuple[dict[str, str], list[Note]]:
    texts: dict[str, str] = {}
    notes: list[Note] = []
    for prompt in PROMPTS:
        for path in prompt_files(home.root / "prompts", prompt):
            try:
                text = read_prompt(path).text
            except PromptRefused as refused:
                notes.append(refusal_note(path, refused))
                continue
            if text:
                texts[prompt] = text
                break
    return texts, notes


def prompt_files(folder: Path, prompt: str) -> Iterator[Path]:
    """Yield the files of ``folder`` that may give ``prompt``, the one that counts first."""
    for suffix in _SUFFIXES:
        path = folder / f"{prompt}{suffix}"
        if os.path.lexists(path):
            yield path


def read_prompt(path: Path) -> PromptFile:
    """Read a prompt file; it may be a link.

    :raises PromptRefused: when it is not a readable UTF-8 text of at most 256 KiB.
    """
    try:
        with open_regular(os.path.realpath(path), printable(str(path))) as opened:
            data = read_bytes(opened, PROMPT_BYTES + 1)
    except FileMissing:
        raise PromptRefused("is a link that leads nowhere; mend or remove it") from None
    except FileRefused:
        raise PromptRefused("is not a regular file; put a text file in its place") from None
    except OSError as error:
        raise PromptRefused(f"cannot be read: {describe(error)}; change its permissions or remove it") from error
    if len(data) > PROMPT_BYTES:
        raise PromptRefused(f"is larger than {PROMPT_BYTES // 1024} KiB; shorten it")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise PromptRefused(f"is not UTF-8 text (line {line}); save it as UTF-8") from error
    if "\0" in text:
        raise PromptRefused("holds a NUL character, so it is not text; save it as UTF-8")
    return PromptFile(text=text.strip(), digest=hashlib.sha256(data).hexdigest())


def refusal_note(path: Path, refused: PromptRefused) -> Note:
    """Return the note about a prompt file that is not used."""
    shown = printable(str(path))
    return Note(code=NoteCode.PROMPT_FILE, text=f"The prompt file {shown} is not used: it {refused}.", source=shown)
