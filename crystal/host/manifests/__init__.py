"""Manifests of disk extensions: reading what a stranger may have written, checking it, and switching one on or off."""
