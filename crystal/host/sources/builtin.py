"""First-party plugins, in their fixed declared order; the list itself stands in ``plugins_builtin``."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator

from crystal.types._frozen import Frozen


class FoundPlugin(Frozen):
    """A plugin ready to register under its full name.

    :param close: takes its code out of the process when its host is retired; ``None`` when nothing is to be done.
    """

    name: str
    plugin: object
    close: Callable[[], None] | None = None


def builtin_plugins() -> Iterator[FoundPlugin]:
    """Yield the built-in plugins in registration order."""
    # By name: the host knows no built-in, it only gives them the first places.
    for module in importlib.import_module("plugins_builtin").MODULES:
        found = importlib.import_module(f"plugins_builtin.{module}")
        # A plugin with state of its own is a class, so that each host gets an instance.
        plugin = getattr(found, "Plugin", found)
        yield FoundPlugin(name=f"builtin:{plugin.name}", plugin=plugin)
