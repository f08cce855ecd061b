"""The file tools: ``read``, ``list``, ``edit`` and ``write``. What they may touch is decided by the fence."""

from __future__ import annotations

from crystal import hookimpl
from crystal.types.tools import Catalog, ToolContribution
from plugins_builtin.files.edit import EditTool
from plugins_builtin.files.listing import ListTool
from plugins_builtin.files.preview import preview_edit, preview_write
from plugins_builtin.files.read import ReadTool
from plugins_builtin.files.write import WriteTool

name = "files"


@hookimpl
def contribute_tools() -> list[ToolContribution]:
    """Bring the file tools; ``edit`` and ``write`` are for Work only."""
    state = frozenset({"file_state"})
    path = ("path",)
    return [
        ToolContribution(name="read", tool=ReadTool(), path_arguments=path, capabilities=state),
        ToolContribution(name="list", tool=ListTool(), path_arguments=path, default_paths={"path": "."}),
        ToolContribution(
            name="edit",
            tool=EditTool(),
            catalogs=Catalog.WORK,
            path_arguments=path,
            preview=preview_edit,
            capabilities=state,
            parallel=False,
        ),
        ToolContribution(
            name="write",
            tool=WriteTool(),
            catalogs=Catalog.WORK,
            path_arguments=path,
            preview=preview_write,
            capabilities=state,
            parallel=False,
        ),
    ]
