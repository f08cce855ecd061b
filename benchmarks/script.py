"""What the stand-in model says: a pure function of the request, so the server keeps no state between runs."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.dialects import Answer, Inquiry

READ_TOOLS = ("read", "read_file", "view_file", "view")
SHELL_TOOLS = ("exec_command", "shell", "shell_command", "bash")
FINAL_TEXT = "done"


def note_name(index: int) -> str:
    """The workspace-relative path of one note."""
    return f"notes/{index:03d}.txt"


def note_text(index: int) -> str:
    """The three lines of one note; the first tells which note it is."""
    return f"note {index:03d}\nfirst thing to remember\nsecond thing to remember\n"


def note_mark(index: int) -> str:
    """The words by which a tool result shows that it holds this note."""
    return f"note {index:03d}"


@dataclass(frozen=True, slots=True)
class Script:
    """Ask for one note a round until the transcript holds `rounds` results, then say the final text."""

    rounds: int

    def answer(self, inquiry: Inquiry, *, number: int, body_size: int) -> Answer:
        """Answer one request; the token count stays small so that no client compacts its transcript."""
        tokens = 100 + body_size // 400
        tool = self._tool(inquiry.tools) if inquiry.results < self.rounds else ""
        if not tool:
            return Answer(number=number, model=inquiry.model, input_tokens=tokens, text=FINAL_TEXT)
        arguments = _arguments(inquiry.tools[tool], note_name(inquiry.results))
        return Answer(
            number=number,
            model=inquiry.model,
            input_tokens=tokens,
            tool=tool,
            arguments=json.dumps(arguments),
        )

    @staticmethod
    def _tool(offered: Mapping[str, Any]) -> str:
        return next((name for name in READ_TOOLS + SHELL_TOOLS if name in offered), "")


def _arguments(schema: Mapping[str, Any], path: str) -> dict[str, Any]:
    properties = schema.get("properties", {})
    required = schema.get("required") or list(properties)[:1]
    return {name: _value(name, properties[name], path) for name in required}


def _value(name: str, schema: Mapping[str, Any], path: str) -> Any:
    is_list = schema.get("type") == "array"
    if name in {"cmd", "command"}:
        return ["cat", path] if is_list else f"cat {path}"
    if "path" in name or "file" in name:
        return [path] if is_list else path
    return {"integer": 1, "number": 1, "boolean": False}.get(str(schema.get("type")), "read a note")
