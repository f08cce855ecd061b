"""The part of ``importlib.metadata`` that looks for distributions, looking into one folder."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from crystal.host.loading.distributions import brings, metadata_folders, normalised
from crystal.host.loading.names import HOST_PROVIDED, PUBLIC_TOPS
from crystal.host.loading.shared import SharedFinder
from crystal.host.loading.stand_ins import Imports, Members

_OF_THE_HOST = frozenset(map(normalised, (*HOST_PROVIDED, *PUBLIC_TOPS, "crystal-harness")))


def metadata_members(context: Imports) -> Members:
    """Return the functions of ``importlib.metadata`` that search, bound to a context."""

    class EntryPoint(metadata.EntryPoint):
        """Python's own, but that it loads what the folder brings."""

        def load(self) -> Any:
            """Import the module and return what is named in it."""
            attributes = filter(None, self.attr.split("."))
            return functools.reduce(getattr, attributes, context.resolve(self.module))

    class Distribution(metadata.PathDistribution):
        """A distribution of the folder."""

        @property
        def entry_points(self) -> metadata.EntryPoints:
            """Its entry points."""
            points = [EntryPoint(point.name, point.value, point.group) for point in super().entry_points]
            for point in points:
                vars(point)["dist"] = self
            return metadata.EntryPoints(points)

    def distributions(*, name: str | None = None, **options: Any) -> Iterator[metadata.Distribution]:
        seen = set()
        for root in context.modules.roots:
            for info, found, _ in metadata_folders(root):
                if found not in seen and (name is None or found == normalised(name)):
                    seen.add(found)
                    yield Distribution(Path(info))

    def distribution(distribution_name: str) -> metadata.Distribution:
        # Libraries ask with their __name__, too.
        wanted = context.plain_name(distribution_name)
        if not wanted:
            raise ValueError("A distribution name is required.")
        if normalised(wanted) in _OF_THE_HOST:
            return metadata.distribution(wanted)
        found = next(distributions(name=wanted), None)
        if found is None:
            found = next(iter(_shared(wanted)), None)
        if found is None:
            raise metadata.PackageNotFoundError(wanted)
        return found

    def entry_points(**options: Any) -> metadata.EntryPoints:
        points = [point for found in distributions() for point in found.entry_points]
        return metadata.EntryPoints(points).select(**options)

    def packages_distributions() -> dict[str, list[str]]:
        names: dict[str, list[str]] = {}
        for root in context.modules.roots:
            for info, found, _ in metadata_folders(root):
                for top in context.modules.top_levels:
                    if brings(info, top):
                        names.setdefault(top, []).append(found)
        return names

    return {
        "distribution": distribution,
        "distributions": distributions,
        "entry_points": entry_points,
        "packages_distributions": packages_distributions,
        "version": lambda distribution_name: distribution(distribution_name).version,
        "metadata": lambda distribution_name: distribution(distribution_name).metadata,
        "files": lambda distribution_name: distribution(distribution_name).files,
        "requires": lambda distribution_name: distribution(distribution_name).requires,
    }


def _shared(name: str) -> Iterator[metadata.Distribution]:
    for finder in sys.meta_path:
        if isinstance(finder, SharedFinder):
            yield from finder.find_distributions(metadata.DistributionFinder.Context(name=name))
