"""Names that only this host may give, whether or not the thing is present or enabled."""

from __future__ import annotations

BUILTIN_PROTOCOLS = frozenset(("deepseek", "openai", "responses", "anthropic", "gemini", "ollama", "local", "scripted"))
RESERVED_TOOLS = frozenset(
    (
        *("read", "list", "tree", "glob", "grep", "search", "todowrite", "todoread", "question"),
        *("edit", "write", "bash", "skill"),
        *("tool_search", "tool_call", "run_script", "plugin_list", "plugin_create", "plugin_delete"),
        *("skill_create", "skill_view", "skill_list"),
        *("mcp_list", "mcp_add", "mcp_remove", "mcp_resources", "mcp_read"),
    )
)
VERBS = frozenset(
    (
        *("help", "h", "plan", "approval", "attach", "thinking", "think", "effort", "tokens", "verbose", "model"),
        *("promptset", "prompts", "status", "stats", "btw", "side", "statusline", "clear", "new", "cd", "space"),
        *("resume", "continue", "fork", "sessions", "compact", "summarize", "export", "todos", "todo", "tools"),
        *("plugins", "skills", "mcp", "hooks", "permissions", "trust", "undo", "quit", "exit", "q"),
    )
)
"""Slash verbs and their aliases, without the slash."""

PLACEHOLDERS = frozenset(
    (
        *("env", "skills", "instructions_section", "instructions", "workspace", "is_git_repo", "platform", "os"),
        *("architecture", "date", "time", "provider", "model", "model_line", "mode", "product_name", "session_id"),
        *("approval", "conversation", "tool_name", "tool_arguments", "host_risk", "host_authority"),
        *("classification_summary", "prior_summary_section", "summary_task", "output_template", "todos_section"),
    )
)
"""Tokens of prompt texts, without the braces."""

STATUS_FIELDS = frozenset(
    (
        *("approval", "branch", "context", "mode", "model", "provider", "session", "thinking", "tokens", "turns"),
        *("workspace", "on", "off", "reset"),
    )
)
"""Fields of the custom status line, and the words of the verb that sets it."""
