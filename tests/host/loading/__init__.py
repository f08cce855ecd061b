"""Load contexts: code from folders, isolated."""
