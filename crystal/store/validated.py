"""Remembers which bytes of a home file were found valid, so that an unchanged file needs no pydantic at the next start.

The memory is ``cache/validated.json``: for each file a SHA-256 of its bytes, the release that checked it and the notes
that the check gave. It holds no value of the file and may be deleted, damaged or unwritable at any time.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from crystal._version import VERSION
from crystal.store.errors import HomeFileError
from crystal.store.home import Home
from crystal.store.json_files import JsonFile, read_json_object
from crystal.types.notes import Note, NoteCode

MEMORY_NAME = "validated.json"


def validate_once(home: Home, file: JsonFile, validate: Callable[[JsonFile], tuple[str, ...]]) -> tuple[Note, ...]:
    """Return the notes about a file, from memory when these bytes were checked before, else by ``validate``.

    :param validate: imports pydantic, raises ``HomeFileError`` for an invalid file, returns the texts of notes.
    """
    import hashlib

    digest = hashlib.sha256(file.data).hexdigest()
    remembered = _recall(home)
    entry = remembered.get(file.path.name)
    if isinstance(entry, dict) and entry.get("digest") == digest and entry.get("version") == VERSION:
        known = entry.get("notes")
        if isinstance(known, list) and all(isinstance(text, str) for text in known):
            return _notes(file.path, known)
    texts = validate(file)
    remembered[file.path.name] = {"digest": digest, "version": VERSION, "notes": list(texts)}
    _remember(home, remembered)
    return _notes(file.path, texts)


def _notes(path: Path, texts: list[str] | tuple[str, ...]) -> tuple[Note, ...]:
    return tuple(Note(code=NoteCode.CONFIG_UNKNOWN_KEY, text=text, source=str(path)) for text in texts)


def _recall(home: Home) -> dict[str, Any]:
    try:
        memory = read_json_object(home.cache / MEMORY_NAME)
    except HomeFileError:
        return {}  # a broken cache costs one validation, nothing else
    return dict(memory.value) if memory else {}


def _remember(home: Home, remembered: dict[str, Any]) -> None:
    import json

    try:
        home.write_private(home.cache / MEMORY_NAME, json.dumps(remembered, indent=1).encode())
    except HomeFileError:
        return  # a home that cannot be written is validated at every start
