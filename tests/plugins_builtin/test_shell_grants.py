"""What a grant of a command is given for: by verb where a table says so, else its exact words, and never more."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins_builtin.shell_risk.grants import ANY_ARGUMENTS, VERBS, grant_parts
from tests.plugins_builtin.shell_rows import FORBIDDEN, PRIVILEGED, WRITE

ANY = ANY_ARGUMENTS


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("git status", [f"git status{ANY}"]),
        ("git status --short src", [f"git status{ANY}"]),
        ("git log -5 --author 'a b'", [f"git log{ANY}"]),
        ("cargo test -q", [f"cargo test{ANY}"]),
        ("go test ./...", [f"go test{ANY}"]),
        ("git status && git diff", [f"git status{ANY}", f"git diff{ANY}"]),
        ("git status; git status -s", [f"git status{ANY}"]),
        ("git log | head -3", [f"git log{ANY}", "head -3"]),
        ("npm ci", ["npm ci"]),
        ("npm ci # a comment", ["npm ci"]),
        (" npm  ci ", ["npm  ci"]),
        # exact words: an assignment, an option before the verb, a redirection, an expansion, a marked option
        ("X=1 git status", ["X=1 git status"]),
        ("git -c a.b=c status", ["git -c a.b=c status"]),
        ("git -C src status", ["git -C src status"]),
        ("git status > f", ["git status > f"]),
        ("git diff --output=f", ["git diff --output=f"]),
        ("git diff --outp=f", ["git diff --outp=f"]),
        ("git diff --ext-diff", ["git diff --ext-diff"]),
        ("git add *", ["git add *"]),
        ("git add {a,b}", ["git add {a,b}"]),
        ("git add ~/x", ["git add ~/x"]),
        ('git add "$x"', ['git add "$x"']),
        ("cargo test --config x", ["cargo test --config x"]),
        ("cargo test --manifest-path=x", ["cargo test --manifest-path=x"]),
        ("go test -exec sh", ["go test -exec sh"]),
        ("g\\it status", ["g\\it status"]),
        ("'git' status", ["'git' status"]),
        ("/usr/bin/git status", ["/usr/bin/git status"]),
        ("./git status", ["./git status"]),
        # interpreters, runners and wrappers: exact words always
        ("python a.py", ["python a.py"]),
        ("make test", ["make test"]),
        ("sh x.sh", ["sh x.sh"]),
        ("npx jest", ["npx jest"]),
        ("timeout 5 git status", ["timeout 5 git status"]),
        ("env git status", ["env git status"]),
        # what hangs together is one part
        ("cd src && git status", ["cd src && git status"]),
        ("for f in a; do rm $f; done", ["for f in a; do rm $f; done"]),
        ("x=a; rm $x", ["x=a; rm $x"]),
        ("(git status)", ["(git status)"]),
        ("if true; then ls; fi", ["if true; then ls; fi"]),
        ("echo $(git status)", ["echo $(git status)"]),
        ("cat <<'E'\nx\nE", ["cat <<'E'\nx\nE"]),
    ],
)
def test_a_grant_is_given_for_these_parts(command: str, parts: list[str]) -> None:
    assert grant_parts(command) == tuple(parts)


@pytest.mark.parametrize(
    "command",
    ["", "  ", "# x", "'", "ls &&", "$x", "$(echo ls) x", "eval ls", "source f", "trap 'x' EXIT", "ls\x00", "l? x"],
)
def test_what_cannot_be_read_or_is_built_at_run_time_cannot_be_granted(command: str) -> None:
    assert grant_parts(command) is None


@pytest.mark.parametrize(("program", "verb"), [(program, verb) for program in VERBS for verb in VERBS[program]])
def test_each_verb_is_granted_with_any_arguments_but_the_marked_ones(program: str, verb: str) -> None:
    assert grant_parts(f"{program} {verb}") == grant_parts(f"{program} {verb} a --b c") == (f"{program} {verb}{ANY}",)
    for option in VERBS[program][verb]:
        for command in (f"{program} {verb} {option} x", f"{program} {verb} a {option}=x"):
            assert grant_parts(command) == (command,)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([*WRITE, *PRIVILEGED, *FORBIDDEN]), st.sampled_from([*WRITE, *PRIVILEGED, *FORBIDDEN]))
def test_a_grant_covers_nothing_but_what_it_was_given_for(granted: str, other: str) -> None:
    given_for, wanted = grant_parts(granted), grant_parts(other)
    if given_for is None or wanted is None or not set(wanted) <= set(given_for):
        return
    for part in wanted:
        words = part.removesuffix(ANY)
        assert words in granted, "every command that is covered stood in the line that was granted"


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_every_text_has_parts_or_none(command: str) -> None:
    parts = grant_parts(command)
    assert parts is None or (parts and all(part.strip() for part in parts))
