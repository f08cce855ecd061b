"""Compaction: facts that a plugin wants to survive it. ``rewrite_compaction`` of the raw hooks runs afterwards."""

from __future__ import annotations

from crystal.hookspecs._kinds import append
from crystal.types.session import CompactionFacts


@append("Appends only; history is chosen and folded by the host.")
def on_compaction(compaction: CompactionFacts) -> str | None:
    """Called twice for each compaction: phase ``prompt`` before the summary is asked for, ``summary`` when it came.

    May return facts to append to the prompt or to the stored summary. May not drop history or replace the compactor.

    :param compaction: the ``phase`` and the ``text`` so far.
    :return: the text to append, or ``None``; blank text is dropped.
    """
