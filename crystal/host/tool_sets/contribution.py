"""What a tool set contributes besides what any plugin may."""

from __future__ import annotations

from crystal.types.tools import ToolContribution


class ToolSetContribution(ToolContribution):
    """A tool of a tool set.

    :param author_always: whether its author asks for calls without a question, and the operator's
        ``externalToolApproval`` follows the authors of that tree.
    """

    author_always: bool = False
