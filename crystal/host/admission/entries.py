"""What every admission shares: an entry that breaks a rule is omitted with a note, and takes no other with it."""

from __future__ import annotations

import re
from collections.abc import Callable

from crystal.host.dispatch import Collected
from crystal.types.notes import Note, NoteCode
from crystal.workspace.fence import printable

_SHOWN = 80

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


class Omitted(Exception):
    """An entry breaks a rule. The message completes "… is omitted: it …"."""

    def __init__(self, code: NoteCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def _which(entry: object, position: int) -> str:
    """Say which entry it is, by its place in the plugin's list and, where it has one, its name."""
    name = _name_of(entry)
    named = f", named {printable(name[:_SHOWN])!r}" if type(name) is str else ""
    return f"number {position} of its list{named}"


def _name_of(entry: object) -> object:
    """Return the name of an entry of one of the host's own classes; for others it may be code of the plugin."""
    try:
        return getattr(entry, "name", None) if type(entry).__module__.startswith("crystal.") else None
    except KeyboardInterrupt:
        raise
    except BaseException:
        # A class may call itself one of the host's.
        return None


def check_each(entries: tuple[Collected, ...], kind: str, check: Callable[[Collected], None]) -> tuple[Note, ...]:
    """Call ``check`` with every entry and return a note for each one that it omits or that raises."""
    notes = []
    positions: dict[str, int] = {}
    for collected in entries:
        positions[collected.plugin] = position = positions.get(collected.plugin, 0) + 1
        try:
            check(collected)
        except Omitted as omitted:
            code, reason = omitted.code, str(omitted)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            code, reason = NoteCode.CONTRIBUTION_INVALID, f"raised {type(error).__name__} when it was looked at"
        else:
            continue
        notes.append(
            Note(
                code=code,
                text=f"A {kind} of plugin '{collected.plugin}' is omitted ({_which(collected.entry, position)}): "
                f"it {reason}.",
                source=collected.plugin,
            )
        )
    return tuple(notes)
