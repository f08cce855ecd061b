"""System prompts: the host's own texts and how one is composed."""
