"""Tool sets as values and on disk, made in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SCHEMA = {"type": "object", "properties": {"environment": {"type": "string"}, "path": {"type": "string"}}}

SHORT = {"runner": "exec", "description": "Ship it.", "schema": SCHEMA, "command": ["deploy", "release"]}
"""A program that is one tool."""

PYTHON = {"runner": "python", "module": "acme.py"}


def tool(name: str, **fields: Any) -> dict[str, Any]:
    """Return an entry of a ``tools`` list."""
    return {"name": name, "description": f"Do {name}.", "schema": SCHEMA, **fields}


def several(*tools: Any, **fields: Any) -> dict[str, Any]:
    """Return a program that is several tools."""
    return {"runner": "exec", "command": ["acme"], "tools": list(tools), **fields}


def make_tool_set(tree: Path, name: str, manifest: Any = None, **files: str) -> Path:
    """Write ``tree/name`` with a manifest, a value or the bytes themselves, and its files; ``a_py`` is ``a.py``."""
    folder = tree / name
    folder.mkdir(parents=True)
    value = SHORT if manifest is None else manifest
    (folder / "tools.json").write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
    for file, text in files.items():
        (folder / file.replace("_py", ".py")).write_text(text)
    return folder
