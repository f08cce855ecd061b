"""The smallest possible agent, as a floor: ask, read the named file, ask again until the answer is a text.

Run as a script, ``bare_client.py http.client|httpx BASE_URI``. It encodes every message once, saves nothing
and approves nothing, so no agent on the same HTTP library can take less. Each library is imported by the one
function that uses it, since the time to import it is part of what is measured.
"""

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

TASK = "Read the notes and say done."
READ_TOOL = {
    "type": "function",
    "function": {
        "name": "read",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}
HEADERS = {"content-type": "application/json", "authorization": "Bearer none"}

Post = Callable[[bytes], bytes]


def post_with_http_client(base_uri: str) -> Post:
    import http.client

    address = urlsplit(base_uri)
    connection = http.client.HTTPConnection(address.hostname or "", address.port)

    def post(body: bytes) -> bytes:
        connection.request("POST", f"{address.path}/chat/completions", body, HEADERS)
        return connection.getresponse().read()

    return post


def post_with_httpx(base_uri: str) -> Post:
    import httpx

    client = httpx.Client(verify=False, trust_env=False)

    def post(body: bytes) -> bytes:
        with client.stream("POST", f"{base_uri}/chat/completions", content=body, headers=HEADERS) as response:
            return b"".join(response.iter_bytes())

    return post


POSTS = {"http.client": post_with_http_client, "httpx": post_with_httpx}


def deltas(stream: bytes) -> Iterator[dict[str, Any]]:
    for line in stream.split(b"\n"):
        if line.startswith(b"data: {"):
            yield json.loads(line[6:])["choices"][0]["delta"]


def run(post: Post) -> str:
    """Play rounds until the model answers with a text, and return it."""
    settings = json.dumps({"model": "mock", "stream": True, "tools": [READ_TOOL]}).encode()
    head = settings.removesuffix(b"}") + b', "messages": ['
    messages = [json.dumps({"role": "user", "content": TASK}).encode()]
    while True:
        text, call, arguments = "", "", ""
        for delta in deltas(post(head + b",".join(messages) + b"]}")):
            text += delta.get("content") or ""
            for part in delta.get("tool_calls", ()):
                call = call or part["id"]
                arguments += part["function"]["arguments"]
        if not call:
            return text
        with open(json.loads(arguments)["path"], encoding="utf-8") as file:
            result = file.read()
        function = {"name": "read", "arguments": arguments}
        tool_calls = [{"id": call, "type": "function", "function": function}]
        messages.append(json.dumps({"role": "assistant", "content": None, "tool_calls": tool_calls}).encode())
        messages.append(json.dumps({"role": "tool", "tool_call_id": call, "content": result}).encode())


if __name__ == "__main__":
    library, base_uri = sys.argv[1:]
    print(run(POSTS[library](base_uri)))
