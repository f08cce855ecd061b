"""A tool that is a program: started without a shell, given its arguments, read in bounded memory, ended whole."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from crystal.host.tool_sets.arguments import ArgumentRefused, bind_arguments, encode_input, fence_arguments
from crystal.host.tool_sets.content import CONTENT_BYTES, IMAGE_BYTES, ContentRefused, read_content
from crystal.host.tool_sets.directories import DirectoriesRefused, SetDirectories
from crystal.host.tool_sets.program import ProgramRefused, find_command
from crystal.types._frozen import Frozen
from crystal.types.tools import ToolCall, ToolContext, ToolDefinition, ToolOutput
from crystal.workspace.fence import Fence, PathRefused
from crystal.workspace.open_files import FileMissing, FileRefused, open_regular, read_bytes
from crystal.workspace.programs.keepers import KeeperLost, Keepers, ProcessEnd
from crystal.workspace.programs.kept_output import KeptOutput, join_streams
from crystal.workspace.programs.live_output import LIVE_SECONDS, LiveLines, Pace


class ExecProgram(Frozen):
    """What a manifest says about one tool.

    :param folder: real path of the set's directory.
    :param command: the program and its leading arguments, prefix and suffix together.
    :param flags: flag by property, in the order of the file.
    :param path_arguments: properties that are file paths.
    :param stdin: whether the argument object stands on standard input.
    :param content: whether the output is one JSON object with text and images.
    :param seconds: the limit of a call; ``None`` for none.
    """

    definition: ToolDefinition
    folder: Path
    command: tuple[str, ...]
    flags: Mapping[str, str]
    path_arguments: tuple[str, ...]
    stdin: bool
    content: bool
    seconds: float | None


class _Collected:
    """The whole of an output up to a limit; beyond it only the count goes on."""

    def __init__(self, limit: int) -> None:
        self.total = 0
        self.data = bytearray()
        self._limit = limit

    def feed(self, data: bytes | memoryview) -> None:
        self.total += len(data)
        self.data += data[: max(self._limit - len(self.data), 0)]


class ExecTool:
    """Runs one program of a set.

    :param directories: makes the set's runtime directories at its first call.
    :param keepers: what a program leaves running ends with them.
    """

    def __init__(self, program: ExecProgram, directories: SetDirectories, keepers: Keepers) -> None:
        self._program = program
        self._directories = directories
        self._keepers = keepers

    @property
    def definition(self) -> ToolDefinition:
        """What the model is told."""
        return self._program.definition

    async def invoke(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Run the program with the fenced arguments of ``call``.

        :raises asyncio.CancelledError: the call was cancelled; everything it started has been ended.
        """
        program = self._program
        fence = Fence.at(context.workspace, context.home)
        try:
            arguments = fence_arguments(call.arguments, program.path_arguments, fence, context.permitted_paths)
            command = [
                *find_command(program.command, program.folder, context.workspace),
                *bind_arguments(program.flags, arguments),
            ]
            self._directories.make(context)
        except (PathRefused, ArgumentRefused, ProgramRefused, DirectoriesRefused) as refused:
            return _failure(f"{call.name}: {refused}")
        stdin = encode_input(arguments) if program.stdin else b""
        stdout: KeptOutput | _Collected = _Collected(CONTENT_BYTES) if program.content else KeptOutput()
        stderr = KeptOutput()
        try:
            end = await self._run(command, stdin, context, stdout, stderr)
        except OSError as error:
            return _failure(f"{call.name}: {_start_failure(error, command[0], context.workspace)}")
        except KeeperLost:
            return _failure(f"{call.name}: the process that keeps programs together was ended from outside.")
        if isinstance(stdout, KeptOutput):
            return _text_output(end, program, stdout, stderr)
        return self._content_output(end, stdout, stderr, fence, context)

    async def _run(
        self,
        command: list[str],
        stdin: bytes,
        context: ToolContext,
        stdout: KeptOutput | _Collected,
        stderr: KeptOutput,
    ) -> ProcessEnd:
        # Content is for the host alone; what is shown while it runs are the logs.
        shown = (stdout, stderr) if isinstance(stdout, KeptOutput) else (stderr,)
        live = LiveLines(context.progress, shown)
        pace = Pace(asyncio.get_running_loop(), LIVE_SECONDS, live.show_new)

        def receive(kept: KeptOutput | _Collected, data: memoryview) -> None:
            kept.feed(data)
            if kept in shown:
                live.arrived(shown.index(kept))
                pace.ask()

        try:
            end = await self._keepers.run(
                [os.fsencode(part) for part in command],
                workspace=context.workspace,
                environment=make_environment(context),
                seconds=self._program.seconds,
                on_stdout=partial(receive, stdout),
                on_stderr=partial(receive, stderr),
                stdin=stdin,
            )
        finally:
            pace.stop()
        live.finish()
        return end

    def _content_output(
        self, end: ProcessEnd, stdout: _Collected, stderr: KeptOutput, fence: Fence, context: ToolContext
    ) -> ToolOutput:
        program = self._program
        logs = join_streams(KeptOutput(), stderr)
        if fault := describe_fault(end, program.seconds):
            printed = KeptOutput()
            printed.feed(bytes(stdout.data))
            return _failure(join_streams(printed, stderr) + fault)
        if stdout.total > CONTENT_BYTES:
            return _failure(
                f"{logs}The output has {stdout.total:,} bytes, but content may have {CONTENT_BYTES:,} at most; "
                "name large images by 'path'."
            )
        try:
            text, images = read_content(bytes(stdout.data), partial(_read_image, fence=fence, context=context))
        except ContentRefused as refused:
            return _failure(f"{logs}The output of {program.definition.name} {refused}.")
        if images and not context.accepts_images:
            said = f"{text}\n" if text else ""
            count = "an image" if len(images) == 1 else f"{len(images)} images"
            return _failure(f"{said}({program.definition.name} answered {count}, which this model cannot be shown.)")
        return ToolOutput(text=text, images=images)


def make_environment(context: ToolContext) -> list[bytes]:
    """Return the environment of a program: the host's own, and what a tool may need to know about the session."""
    own = {
        "CRYSTAL_WORKSPACE": str(context.workspace),
        "CRYSTAL_SESSION": context.session_id,
        "CRYSTAL_APPROVAL": context.approval.value,
        "CRYSTAL_DATA_GLOBAL": str(context.global_data),
        "CRYSTAL_DATA_PROJECT": str(context.project_data),
    }
    return [os.fsencode(f"{name}={value}") for name, value in {**os.environ, **own}.items()]


def describe_fault(end: ProcessEnd, seconds: float | None) -> str:
    """Say how a program ended that did not end well; empty when it did."""
    if end.timed_out:
        return f"(timed out after {seconds:g} s; the program and everything it started were ended)"
    if end.input_refused:
        return "(it closed its standard input unread and went on; it and everything it started were ended)"
    if end.status is None:
        return "(ended, but its exit status could not be read)"
    if end.status < 0:
        return f"(ended by signal {-end.status})"
    return f"(exit {end.status})" if end.status else ""


def _text_output(end: ProcessEnd, program: ExecProgram, stdout: KeptOutput, stderr: KeptOutput) -> ToolOutput:
    text = join_streams(stdout, stderr)
    fault = describe_fault(end, program.seconds)
    return ToolOutput(text=text + fault or "(no output)", failed=bool(fault))


def _read_image(text: str, fence: Fence, context: ToolContext) -> bytes:
    """Read an image that an output names: in the workspace, approved for the call, or in the set's own directories."""
    try:
        resolved = fence.resolve(text)
        own = [Path(os.path.realpath(folder)) for folder in (context.global_data, context.project_data)]
        if not any(Path(resolved.real).is_relative_to(folder) for folder in own):
            resolved = fence.admit(text, context.permitted_paths)
        with open_regular(resolved.real, fence.show(resolved.real)) as opened:
            return read_bytes(opened, IMAGE_BYTES + 1)
    except (PathRefused, FileMissing, FileRefused) as refused:
        raise ContentRefused(f"names an image that cannot be used: {refused}") from refused
    except OSError as error:
        raise ContentRefused(f"names an image that cannot be read: {error.strerror}") from error


def _start_failure(error: OSError, program: str, workspace: Path) -> str:
    if error.filename == "workspace":
        return f"the workspace {workspace} cannot be entered: {error.strerror}."
    return f"{program} could not be started: {error.strerror}."


def _failure(text: str) -> ToolOutput:
    return ToolOutput(text=text, failed=True)
