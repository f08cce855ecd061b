"""What goes wrong when code from a folder is imported.

``ContextImportError`` is what the code itself sees; ``LoadFailed`` is what the host sees when the folder's entry module
came to nothing, whatever the code raised.
"""

from __future__ import annotations

import os
from pathlib import Path

from crystal.host.isolation import own_words
from crystal.workspace.fence import printable

REASON_CHARACTERS = 2_000
"""A reason is a sentence, though names in it may have any length."""

_SYNTAX_ERRORS = (SyntaxError, IndentationError, TabError)


class ContextImportError(ModuleNotFoundError):
    """An import inside a context that leads nowhere. The message names the module and what helps."""


class LoadFailed(Exception):
    """The entry module of a folder could not be loaded; the error itself is the cause of this one.

    The message is one clause that names the module, the fault and its place. Messages of foreign exceptions stay out of
    it: they may quote anything.
    """

    def __init__(self, module: str, reason: str) -> None:
        super().__init__(f"{printable(module)} {reason}")
        self.module = module
        self.reason = reason


def load_failed(module: str, error: BaseException, folder: Path) -> LoadFailed:
    """Describe what importing ``module`` raised.

    :param folder: whose code it is; the last line of it in the traceback is the place.
    """
    # The exact type: a foreign class may say anything, or raise when it is asked.
    if type(error) is ContextImportError:
        reason = f"cannot be imported{place_in(error, folder)}: {printable(str(error)[:REASON_CHARACTERS])}"
    elif type(error) in _SYNTAX_ERRORS and isinstance(error, SyntaxError) and isinstance(error.filename, str):
        file = printable(os.path.relpath(error.filename, folder))
        line = "" if error.lineno is None else f"line {error.lineno} of "
        said = f": {printable(error.msg)}" if isinstance(error.msg, str) else ""
        reason = f"has a syntax error in {line}{file}{said}"[:REASON_CHARACTERS]
    else:
        kind = printable(type(error).__name__)
        does = f"ends the process when it is imported ({kind})" if isinstance(error, SystemExit) else f"raised {kind}"
        reason = f"{does}{place_in(error, folder)}{printable(own_words(error)[:REASON_CHARACTERS])}"
    return LoadFailed(module, reason)


def place_in(error: BaseException, folder: Path) -> str:
    """Return the last line of a folder's code that a traceback passes, beginning with a space; empty without one."""
    place = ""
    traceback = error.__traceback__
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if file.startswith(f"{folder}{os.sep}"):
            shown = printable(file[len(str(folder)) + 1 :])
            place = f" in line {traceback.tb_lineno} of {shown}"
        traceback = traceback.tb_next
    return place
