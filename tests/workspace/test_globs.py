"""Glob patterns: what matches, what is refused, and that none is slow."""

from __future__ import annotations

import pytest

from crystal.workspace.globs import GlobError, compile_glob, expand_braces, literal_prefix


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("*.py", ["a.py", ".py"], ["a/b.py", "a.pyc", "apy"]),
        ("**/*.py", ["a.py", "a/b.py", "a/b/c.py"], ["a.txt"]),
        ("src/**", ["src/a", "src/a/b"], ["srcs/a", "a/src/b"]),
        ("src/**/t.?s", ["src/t.ts", "src/a/b/t.js"], ["src/t.tss", "t.ts"]),
        ("**/a/**/b", ["a/b", "x/a/y/z/b", "a/a/b"], ["a/b/c", "ab"]),
        ("*.{ts,tsx}", ["x.ts", "x.tsx"], ["x.t", "x.{ts,tsx}"]),
        ("{a,b/{c,d}}.x", ["a.x", "b/c.x", "b/d.x"], ["b.x", "c.x"]),
        ("[a-c][!x][^y].m", ["a1z.m", "cyx.m"], ["axz.m", "a1y.m", "d1z.m"]),
        (r"\*.\[x\]", ["*.[x]"], ["a.x", "*.x"]),
        ("src/", ["src/a", "src/b/c"], ["a/src/b"]),
        ("./a//b", ["a/b"], ["b"]),
        ("**", ["a", "a/b/.c"], []),
        (".*", [".env", ".github"], ["env"]),
        ("a\nb*", ["a\nbc"], ["a", "bc"]),
    ],
)
def test_patterns_match_as_the_shell_with_globstar(pattern: str, matching: list[str], others: list[str]) -> None:
    compiled = compile_glob(pattern)
    assert [path for path in [*matching, *others] if compiled.matches(path)] == matching


@pytest.mark.parametrize("pattern", ["", "a" * 2000, "{a", "x{a,{b}", "*/../x", "{a,..}/*", "a\0", "{a,b}" * 12])
def test_a_pattern_that_cannot_be_used_is_refused_in_one_sentence(pattern: str) -> None:
    with pytest.raises(GlobError) as refusal:
        compile_glob(pattern)
    assert str(refusal.value).endswith(".")


def test_many_stars_against_a_long_name_give_an_answer() -> None:
    assert not compile_glob("*a" * 60 + "b").matches("a" * 250)
    assert not compile_glob("**/a/" * 60 + "b").matches("a/" * 200 + "c")


def test_braces_expand_in_order_and_keep_escapes() -> None:
    assert expand_braces("{a,b}{1,2}") == ["a1", "a2", "b1", "b2"]
    assert expand_braces(r"\{a,b}") == [r"\{a,b}"]
    assert expand_braces("{,x}y") == ["y", "xy"]


@pytest.mark.parametrize(
    ("pattern", "split"),
    [
        ("src/a/*.py", ("src/a/", "*.py")),
        ("*.py", ("", "*.py")),
        ("a.py", ("", "a.py")),
        ("/etc/*", ("/etc/", "*")),
        ("../x/**", ("../x/", "**")),
        ("a/{b,c}/d", ("a/", "{b,c}/d")),
        (r"a/\[b/c*", ("a/", r"\[b/c*")),
    ],
)
def test_the_folder_named_in_full_is_split_off(pattern: str, split: tuple[str, str]) -> None:
    assert literal_prefix(pattern) == split


@pytest.mark.parametrize(("pattern", "depth"), [("*.py", 1), ("a/{b,c/d}", 3), ("a/**", None), ("{a,**}", None)])
def test_a_pattern_says_how_deep_it_reaches(pattern: str, depth: int | None) -> None:
    assert compile_glob(pattern).depth() == depth
