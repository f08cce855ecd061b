"""Hooks whose stage is not built yet, each with what will bring it. The list may not be longer than the truth."""

from __future__ import annotations

PENDING = {
    "attach_clients": "model clients for plugins",
    "attach_data_directories": "disk plugins",
    "attach_status": "status fields",
    "contribute_commands": "the interactive session",
    "contribute_placeholders": "prompt files",
    "contribute_status_fields": "status fields",
    "on_compaction": "compaction",
    "rewrite_compaction": "compaction",
}
