"""A tool made from a typed function: its name, description and schema come from the function."""

from pathlib import Path

from crystal import Risk, hookimpl, tool

name = "word-count"


@tool(risk=Risk.READ, path_arguments=("path",))
def count_words(path: str, context) -> str:
    """Count the words of a text file."""
    text = (Path(context.workspace) / path).read_text("utf-8", "replace")
    return f"{path} has {len(text.split())} words."


@hookimpl
def contribute_tools():
    return [count_words]
