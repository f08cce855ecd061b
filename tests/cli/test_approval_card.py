"""The card of a request for approval: everything is in it, as it is, and nothing in it is what it is not."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.cli.approval_card import card, choices, enter_approves, parse_answer
from crystal.cli.page import Page, Tone
from crystal.engine.answers import Approve, Deny
from crystal.types._readonly import read_only
from crystal.types.approval import Authority, Classification, GrantScope, Risk
from crystal.types.events import ApprovalAsked
from plugins_builtin.files.line_diff import unified_diff

EVERY = (GrantScope.ONCE, GrantScope.SESSION, GrantScope.PERSISTENT)
PAGE = Page(width=80)
WRITE = Classification(risk=Risk.WRITE, summary="write a.txt")


def asked(arguments: Mapping[str, Any], **fields: Any) -> ApprovalAsked:
    values: dict[str, Any] = {
        "request_id": "r",
        "call_id": "c",
        "name": "write",
        "arguments": read_only(dict(arguments)),
        "host": WRITE,
        "final": WRITE,
        "offered": EVERY,
        "reason": "asked",
    }
    return ApprovalAsked(**{**values, **fields})


def shown(event: ApprovalAsked, page: Page = PAGE) -> list[str]:
    return [row.text for row in card(event, page)]


@given(
    content=st.text(st.characters() | st.sampled_from("\n\t\r\x1b\u202e\u200b\u00ad\ufeff\U000e0041 a")),
    width=st.integers(20, 100),
    encoding=st.sampled_from(["utf-8", "ascii", "latin-1", "cp1252"]),
)
@settings(max_examples=100, deadline=None)
def test_a_text_is_whole_and_behind_its_marks_on_any_terminal(content: str, width: int, encoding: str) -> None:
    page = Page(width=width, encoding=encoding)
    rows = [row.text for row in page.quoted(content)]
    assert [row for row in rows if row[:6] not in ("    | ", "    > ")] == []
    joined = "".join(("\n" if row.startswith("    |") else "") + row[6:] for row in rows)
    assert joined.removeprefix("\n") == page.visible(content).removesuffix("\n") or "\r\n" in content
    for row in rows:
        row.encode(encoding)
        assert not re.search("[\x00-\x08\x0a-\x1f\x7f-\x9f]", row)
        assert {unicodedata.category(character) for character in row} & {"Cf", "Cs", "Co", "Cn", "Zl", "Zp"} == set()
        wide = sum(unicodedata.east_asian_width(character) in "WF" for character in row)
        assert len(row) + wide <= width or any(map(unicodedata.combining, row))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rm\u00a0-rf", "rm\\xa0-rf"),
        ("a\u200bb\u2060c\ufeffd", "a\\u200bb\\u2060c\\ufeffd"),
        ("x\ufe0f\u3164\u2800", "x\\ufe0f\\u3164\\u2800"),
        ("\U000e0072\U000e006d", "\\U000e0072\\U000e006d"),
        ("\u754c\u3000caf\u00e9 e\u0301", "\u754c\u3000caf\u00e9 e\u0301"),
    ],
)
def test_what_is_drawn_as_nothing_is_seen(text: str, expected: str) -> None:
    assert PAGE.visible(text) == expected


def test_every_argument_is_shown_whole() -> None:
    arguments = {
        "path": "a.txt",
        "content": "one\n\n  two\n",
        "flag": True,
        "none": None,
        "nested": {"list": [1, "x" * 100], "text": "a\nb"},
        "": "",
    }
    rows = shown(asked(arguments))
    for row in (
        "  path = a.txt",
        "  content =",
        "    | one",
        "    | ",
        "    |   two",
        "  flag = true",
        "  none = null",
    ):
        assert row in rows
    text = "".join(row[6:] for row in rows if row.startswith(("    | ", "    > ")))
    assert "x" * 100 in text
    assert '"a\\nb"' in text


def test_a_name_that_a_model_made_up_cannot_pass_for_a_row_of_ours() -> None:
    rows = shown(asked({"summary: read\n  asked because": "x", "y" * 200 + "[approval] read": "z"}))
    assert "  summary: read\\n  asked because = x" in rows
    assert [row for row in rows if not row.startswith("  ")] == ["[approval] write: Write + Workspace"]


@pytest.mark.parametrize(
    ("final", "words"),
    [
        ({"risk": Risk.PRIVILEGED}, "since then the risk was raised to Privileged"),
        ({"authority": Authority.WORKSPACE | Authority.NETWORK}, "since then Network was added"),
        ({"require_prompt": True}, "since then a prompt was required"),
        (
            {"risk": Risk.FORBIDDEN, "authority": Authority.WORKSPACE | Authority.OUTSIDE_WORKSPACE},
            "since then the risk was raised to Forbidden and OutsideWorkspace was added",
        ),
        ({"summary": "because of a rule"}, ""),
    ],
)
def test_a_class_that_was_raised_stands_beside_the_hosts_own(final: dict[str, Any], words: str) -> None:
    values = {"risk": Risk.WRITE, "summary": "a hook's reason", **final}
    text = "\n".join(shown(asked({}, final=Classification(**values)), Page(width=300)))
    assert ("the host's own class: Write + Workspace; " in text) is bool(words)
    assert words in text
    assert values["summary"] in text


def test_a_diff_is_set_off_and_only_a_diff() -> None:
    diff = unified_diff("a\n-b\n", "a\n+c\n", "f")
    rows = card(asked({"content": "+ not\n- a diff"}, preview=diff), PAGE)
    assert [(row.text, row.tone) for row in rows if row.tone not in (Tone.PLAIN, Tone.HEADING)] == [
        ("    | --- f", Tone.REMOVED),
        ("    | +++ f", Tone.ADDED),
        ("    | @@ -1,2 +1,2 @@", Tone.PLACE),
        ("    | --b", Tone.REMOVED),
        ("    | ++c", Tone.ADDED),
    ]


@given(text=st.text(max_size=8), count=st.integers(1, 3))
@settings(max_examples=100, deadline=None)
def test_only_what_was_offered_and_said_approves(text: str, count: int) -> None:
    offered = EVERY[:count]
    answer = parse_answer(text, offered)
    word = text.strip().lower()
    if isinstance(answer, Approve):
        assert answer.scope in offered
        assert word in ("", "y", "yes", "1", "s", "session", "2", "a", "always", "3")
        assert word or count > 1
    elif isinstance(answer, Deny):
        assert word in ("n", "no", "4", "deny", "\x1b")


@pytest.mark.parametrize(
    ("offered", "expected", "enter"),
    [
        (EVERY, "[Y]es, once; [s]ession; [a]lways; [n]o", True),
        (EVERY[:2], "[Y]es, once; [s]ession; [n]o", True),
        (EVERY[:1], "[y]es, once; [n]o", False),
        ((), "[n]o", False),
    ],
)
def test_the_choices_are_those_offered_and_a_capital_says_what_enter_does(
    offered: tuple[GrantScope, ...], expected: str, enter: bool
) -> None:
    assert choices(offered) == expected
    assert enter_approves(offered) is enter
