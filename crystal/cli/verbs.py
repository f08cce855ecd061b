"""The slash verbs and their aliases; ``crystal run`` refuses a task that begins with one."""

from __future__ import annotations

VERBS = frozenset(
    (
        *("help", "h", "plan", "approval", "attach", "thinking", "think", "effort", "tokens", "verbose", "model"),
        *("promptset", "prompts", "status", "stats", "btw", "side", "statusline", "clear", "new", "cd", "space"),
        *("resume", "continue", "fork", "sessions", "compact", "summarize", "export", "todos", "todo", "tools"),
        *("plugins", "skills", "mcp", "hooks", "permissions", "trust", "undo", "quit", "exit", "q"),
    )
)


def is_verb(task: str) -> bool:
    """Whether the first word of ``task`` is a slash verb."""
    words = task.split(maxsplit=1)
    return bool(words) and words[0].startswith("/") and words[0][1:].lower() in VERBS
