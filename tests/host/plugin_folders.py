"""Plugin folders on disk, made in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def make_plugin(tree: Path, name: str, manifest: Any = None, **files: str) -> Path:
    """Write ``tree/name`` with a manifest, a value or the bytes themselves, and its files; ``a_py`` is ``a.py``."""
    folder = tree / name
    folder.mkdir(parents=True)
    if manifest is None:
        manifest = {"module": "acme.py"}
        files = {"acme_py": f"name = {name!r}\n", **files}
    data = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
    (folder / "plugin.json").write_bytes(data)
    for file, text in files.items():
        (folder / file.replace("_py", ".py")).write_text(text)
    return folder
