"""Generate docs/hooks.md from the hook specifications; with ``--check`` say whether it is current."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

import crystal.hookspecs
from crystal.hookspecs import SPECIFICATIONS
from crystal.hookspecs.pending import PENDING
from crystal.host.manager import HookSpecification, read_specifications

TARGET = Path(__file__).with_name("hooks.md")
HEAD = """# Hooks

Generated from `crystal/hookspecs/` by `python docs/hook_reference.py`; do not edit.

{intro}

| kind | what the host does |
| --- | --- |
| notify | calls every implementation in order; results are ignored |
| append | joins the returned texts, blank ones dropped, in order |
| fold | each implementation sees the previous accepted replacement; `None` keeps it |
| collect | gathers contributions; each entry is admitted or omitted on its own |
"""


def reference() -> str:
    """Return the whole page."""
    parts = [HEAD.format(intro=_markdown(inspect.getdoc(crystal.hookspecs) or ""))]
    found = read_specifications()
    for module in SPECIFICATIONS:
        title = module.__name__.rpartition(".")[2].capitalize()
        parts.append(f"## {title}\n\n{_markdown(inspect.getdoc(module) or '')}\n")
        parts += [_section(each) for each in found.values() if each.function.__module__ == module.__name__]
    return "\n".join(parts)


def _section(specification: HookSpecification) -> str:
    declaration = specification.declaration
    kind = declaration.kind.value + (", raw" if declaration.raw else "")
    signature = str(inspect.signature(specification.function)).replace("'", "")
    lines = [
        f"### {specification.name}\n",
        f"```python\ndef {specification.name}{signature}\n```\n",
        f"*Kind:* {kind}. *Contract:* {declaration.contract}\n",
    ]
    if specification.name in PENDING:
        lines.append(f"*Not called yet; it comes with {PENDING[specification.name]}.*\n")
    lines.append(_markdown(inspect.getdoc(specification.function) or "") + "\n")
    return "\n".join(lines)


def _markdown(text: str) -> str:
    """Turn the reST of a docstring into Markdown: roles become code, fields become a list."""
    text = re.sub(r":(?:func|class|data|mod|meth):`~?([^`]+)`", lambda match: f"`{match[1].rpartition('.')[2]}`", text)
    text = text.replace("``", "`")
    text = re.sub(r"\n+:param (\w+):", r"\n\n* `\1`:", text)
    return re.sub(r"\n+:return:", r"\n\n* returns", text)


def main() -> None:
    """Write the page, or check it."""
    page = reference()
    if sys.argv[1:] == ["--check"]:
        if not TARGET.exists() or TARGET.read_text("utf-8") != page:
            sys.exit("docs/hooks.md is stale; run: python docs/hook_reference.py")
        return
    TARGET.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
