"""Hooks whose stage is not built yet, each with what will bring it. The list may not be longer than the truth."""

from __future__ import annotations

PENDING = {
    "on_compaction": "compaction",
    "rewrite_compaction": "compaction",
}
