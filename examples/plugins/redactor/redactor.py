"""Keeps secrets away from the model: tokens, keys and passwords are replaced in results and in every request.

Crystal itself hides the keys of your providers; this plugin adds the shapes of other people's. The stored session keeps
what ``on_tool_result`` left; ``transform_model`` catches what was stored before the plugin was there.
"""

import re
from dataclasses import replace

from crystal import hookimpl
from crystal.types.items import AssistantItem, ToolResultItem, UserItem

name = "redactor"

SECRETS = {
    "aws-key": r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    "github-token": r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,})\b",
    "slack-token": r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    "jwt": r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    "private-key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    "url-password": r"(?<=://)[^/\s:@]+:[^/\s:@]+(?=@)",
}
PATTERN = re.compile("|".join(f"(?P<{kind.replace('-', '_')}>{shape})" for kind, shape in SECRETS.items()), re.DOTALL)


def redact(text):
    return PATTERN.sub(lambda match: f"[secret:{match.lastgroup.replace('_', '-')}]", text)


@hookimpl
def on_tool_result(call, result):
    text = redact(result.text)
    return None if text == result.text else replace(result, text=text)


@hookimpl
def transform_model(request):
    changed = [
        replace(item, text=redact(item.text)) if isinstance(item, (UserItem, AssistantItem, ToolResultItem)) else item
        for item in request.items
    ]
    return None if changed == list(request.items) else changed
