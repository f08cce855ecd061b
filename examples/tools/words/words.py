"""Two tools from one module. The host has made ``path`` absolute and asked about one outside the workspace."""

from collections import Counter
from pathlib import Path

from crystal import tool


@tool
def count_words(path: str, most: int = 10) -> str:
    """Count the words of a text file and list the most frequent ones."""
    words = Counter(Path(path).read_text("utf-8").lower().split())
    return "\n".join(f"{count} {word}" for word, count in words.most_common(most))


@tool
def longest_lines(path: str, most: int = 3) -> str:
    """List the numbers and lengths of the longest lines of a text file."""
    lines = enumerate(Path(path).read_text("utf-8").splitlines(), 1)
    longest = sorted(lines, key=lambda line: (-len(line[1]), line[0]))[:most]
    return "\n".join(f"line {number}: {len(text)} characters" for number, text in longest)
