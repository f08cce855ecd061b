"""Every first-party contribution, written only against the public API."""

from __future__ import annotations

MODULES = (
    "classifiers",
    "files",
    "search",
    "todos",
    "question",
    "shell",
    "protocols.scripted",
    "protocols.openai",
)
"""The plugins in registration order."""
