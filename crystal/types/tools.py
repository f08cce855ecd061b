"""Tools: how one describes itself, is called and answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Flag, auto
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from crystal.types._frozen import Frozen
from crystal.types._readonly import EMPTY, ReadOnlyDict
from crystal.types.approval import ApprovalMode, Authority, Classification, Risk
from crystal.types.items import Image
from crystal.types.paths import ResolvedPath


class Catalog(Flag):
    """The two tool lists of the product."""

    PLAN = auto()
    WORK = auto()
    BOTH = PLAN | WORK


class ToolDefinition(Frozen):
    """What the model is told about a tool.

    :param name: ``^[A-Za-z][A-Za-z0-9_-]*$``, 1 to 64 characters.
    :param schema: JSON Schema of the arguments, an object schema.
    """

    name: str
    description: str
    schema: Mapping[str, Any]


class ToolCall(Frozen):
    """One call with parsed arguments. ``arguments`` is read-only; return a changed copy to change it."""

    id: str
    name: str
    arguments: ReadOnlyDict = EMPTY


class ToolOutput(Frozen):
    """What a tool answers. A failure is a value with ``failed=True`` that the model reads, not an exception."""

    text: str
    images: tuple[Image, ...] = ()
    failed: bool = False


class ToolContext(Frozen):
    """Host facts and operations that every call gets.

    :param workspace: real path of the workspace; the working directory of the session.
    :param home: the Crystal home; outside every workspace.
    :param mode: the catalog of the turn, ``Catalog.PLAN`` or ``Catalog.WORK``.
    :param global_data: the plugin's own directory for all workspaces; may not exist yet.
    :param project_data: the plugin's own directory in this workspace; may not exist yet.
    :param accepts_images: whether images in the output will reach the model.
    :param permitted_paths: real paths beyond the workspace (or guarded) that were approved for this very call.
    :param progress: shows a line of live output on the operator's side; never reaches the model.
    :param tools: the definitions of the live registry.
    :param call: runs another tool through the whole pipeline, approval included.
    :param program_timeout: seconds a program started by the tool may take when the call names no limit; ``None`` for
        no limit.
    :param login_shell: whether commands run in a login shell of their own instead of the captured environment.
    """

    workspace: Path
    home: Path
    session_id: str
    call_id: str
    approval: ApprovalMode
    mode: Catalog
    global_data: Path
    project_data: Path
    accepts_images: bool
    permitted_paths: frozenset[str]
    progress: Callable[[str], None]
    tools: Sequence[ToolDefinition]
    call: Callable[[str, Mapping[str, Any]], Awaitable[ToolOutput]]
    program_timeout: float | None = 120.0
    login_shell: bool = False


@runtime_checkable
class Tool(Protocol):
    """What a contribution brings: a definition and a way to run it."""

    @property
    def definition(self) -> ToolDefinition:
        """What the model is told."""

    async def invoke(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Run one call.

        :raises Exception: anything raised becomes a failed result that names the exception.
        """


PreClassifier = Callable[[ToolCall, Classification], "Classification | None"]
"""A tool's own look at one call: it may raise risk or authority or require a prompt; lowering is ignored."""


GrantParts = Callable[[ToolCall], "tuple[str, ...] | None"]
"""What a Session or Persistent grant of one call is given for, as texts; a call is covered when every one of its texts
was granted. ``None``: this call can be approved once only."""

Preview = Callable[[ToolCall, ToolContext], str]
"""What a call would change, as text for the person who is asked; it changes nothing itself."""


class ToolContribution(Frozen):
    """One tool on its way into the catalogs.

    :param name: the model-facing name; equals the definition's.
    :param path_arguments: names of arguments that are file paths; the host resolves and fences them.
    :param default_paths: for a path argument that may be left out, what it then means.
    :param risk: the plugin's own class for its tool; ``None`` leaves it to the classifiers.
    :param pre_classifier: may raise the class of a single call.
    :param grant_parts: narrows what a grant covers; without it a grant covers every call of the tool.
    :param preview: called when the operator is asked about a call, such as a diff for a tool that edits files.
    :param capabilities: for first-party tools only: ``ask``, ``todos``, ``file_state``, ``registry``.
    :param parallel: whether calls judged Read + Workspace may run beside others.
    """

    name: str
    tool: Tool
    catalogs: Catalog = Catalog.BOTH
    path_arguments: tuple[str, ...] = ()
    default_paths: Mapping[str, str] = EMPTY
    risk: Risk | None = None
    authority: Authority = Authority.WORKSPACE
    pre_classifier: PreClassifier | None = None
    grant_parts: GrantParts | None = None
    preview: Preview | None = None
    capabilities: frozenset[str] = frozenset()
    parallel: bool = True


class ClassifierFacts(Frozen):
    """What a classifier is told besides the call.

    :param paths: the declared path arguments of the call, resolved.
    :param plugin: the plugin that contributed the tool, such as ``builtin:files``.
    """

    workspace: Path
    home: Path
    paths: tuple[ResolvedPath, ...]
    plugin: str


@runtime_checkable
class Classifier(Protocol):
    """Gives calls of tools their class."""

    def classify(self, call: ToolCall, facts: ClassifierFacts) -> Classification | None:
        """Return the class of ``call``, or ``None`` for a tool this classifier does not know."""
