"""The moments at which the world may change or fail under our code: before each call it makes of the file system.

Nothing of ours is replaced, only the functions of ``os``; each still does what it does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

CALLS = (
    "access", "close", "fchmod", "fchown", "fstat", "fsync", "getxattr", "link", "listxattr", "lstat", "mkdir", "open",
    "read", "readlink", "replace", "rmdir", "scandir", "setxattr", "stat", "unlink", "write",
)  # fmt: skip


@contextmanager
def before_call(number: int, act: Callable[[], None], *, until: int | None = None) -> Iterator[list[str]]:
    """Act once before the ``number``-th call from now on, from 1, and yield the names of the calls as they come.

    :param until: act again before this call, to undo what was done.
    """
    made: list[str] = []
    acting = False

    def watched(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal acting
            if not acting:
                made.append(name)
                if len(made) in (number, until):
                    acting = True
                    try:
                        act()
                    except BaseException:
                        if name == "close":
                            # Whatever it says, a close has closed.
                            function(*arguments, **named)
                        raise
                    finally:
                        acting = False
            return function(*arguments, **named)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            function = getattr(os, name, None)
            if function is not None:
                patch.setattr(os, name, watched(name, function))
        yield made
