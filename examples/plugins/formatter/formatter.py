"""Formats a file after the model edited it, tells the model so, and shows the last run in a status field.

A formatter runs when it is installed; FORMATTERS says which, by the end of the file's name. All of them only read the
repository's settings; one that runs code of the repository does not belong here. Put the field ``formatter``
on the custom status line to see it.
"""

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path

from crystal import StatusField, hookimpl

SECONDS = 20
FORMATTERS = {
    ".py": ("ruff", "format", "--quiet", "--"),
    ".go": ("gofmt", "-w", "--"),
    ".rs": ("rustfmt", "--quiet", "--"),
}


class Formatter:
    name = "formatter"

    def __init__(self):
        self.workspace = Path()
        self.updates = None

    @hookimpl
    def contribute_status_fields(self):
        return [StatusField(name="formatter", description="the file that was formatted last")]

    @hookimpl
    def attach_status(self, updates):
        self.updates = updates

    @hookimpl
    def on_session_started(self, session):
        self.workspace = session.workspace

    @hookimpl
    async def on_tool_result(self, call, result):
        if result.failed or call.name not in ("edit", "write"):
            return None
        path = (self.workspace / call.arguments["path"]).resolve()
        command = FORMATTERS.get(path.suffix, ("",))
        program = shutil.which(command[0])
        if program is None or not path.is_relative_to(self.workspace):
            return None
        before = path.read_bytes()
        said = await self.format([program, *command[1:], str(path)])
        if said:
            return replace(result, text=f"{result.text}\n{command[0]} refused the file: {said}")
        if path.read_bytes() == before:
            return None
        self.show(path.name)
        return replace(result, text=f"{result.text}\n{command[0]} formatted it; read it again before the next edit.")

    async def format(self, command):
        """Run one formatter and return what it complained about; empty when it is content."""
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=self.workspace,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            _, error = await asyncio.wait_for(process.communicate(), SECONDS)
        except TimeoutError:
            return f"it took longer than {SECONDS} s"
        finally:
            if process.returncode is None:
                process.kill()
        return error.decode("utf-8", "replace").strip()[:500] if process.returncode else ""

    def show(self, text):
        if self.updates is not None:
            self.updates.set("formatter", text)
