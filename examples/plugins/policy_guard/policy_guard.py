"""Asks a person about what a team wants a person to see, whatever the approval mode and the grants say.

A guard can only raise: it makes calls ask, it never lets one pass. Headless runs deny what it asks about.
"""

from fnmatch import fnmatchcase

from crystal import ApprovalAdvice, Risk, hookimpl

name = "policy-guard"

GUARDED_FILES = {
    ".github/workflows/*": "CI definitions are changed by people",
    "migrations/*": "migrations are reviewed before they are written",
    "*.lock": "lock files are made by their tools",
}
GUARDED_COMMANDS = {
    "git commit": "commits are made by people",
    "git push": "nothing is published without a person",
    "terraform": "infrastructure is changed by people",
    "kubectl": "clusters are changed by people",
}


@hookimpl
def on_approval(call, facts):
    reason = judge(call)
    if reason is None:
        return None
    return ApprovalAdvice(risk=Risk.PRIVILEGED, require_prompt=True, reason=reason)


def judge(call):
    """Return why a person must see the call, or None."""
    if call.name in ("edit", "write"):
        path = call.arguments["path"].replace("\\", "/").removeprefix("./")
        return next((why for shape, why in GUARDED_FILES.items() if fnmatchcase(f"/{path}", f"*/{shape}")), None)
    if call.name == "bash":
        # Words, not a parser: a guard that asks once too often is right, one that is clever is not.
        command = " ".join(call.arguments["command"].split())
        return next((why for words, why in GUARDED_COMMANDS.items() if words in command), None)
    return None
