"""House rules: a line in every system prompt, and a person for every commit."""

from crystal import ApprovalAdvice, hookimpl

name = "house-rules"


@hookimpl
def on_prompt(prompt):
    return "House rule: keep functions short, and never commit without being asked."


@hookimpl
def on_approval(call, facts):
    if call.name == "bash" and "git commit" in call.arguments.get("command", ""):
        return ApprovalAdvice(require_prompt=True, reason="commits are made by people")
    return None
