"""A run with ``--ask`` on a real pseudo-terminal, and someone who types at it when a prompt stands there."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence

from crystal.testing.crystaler import Crystaler

CRYSTAL = (sys.executable, "-P", "-c", "from crystal.cli.main import main; main()")
PROMPT = re.compile(rb"(\[n\]o|to deny|dismisses|\[d\]ismiss): $")
COLOURS = re.compile("\x1b\\[(0|1|31|32|36)m")


class LineTerminal:
    """One ``crystal run --ask`` that has a pseudo-terminal of its own as its controlling terminal.

    :param size: columns and lines; a terminal that does not know its size has 0 of both.
    :param early: typed before the program starts.
    """

    def __init__(
        self,
        crystaler: Crystaler,
        *options: str,
        size: tuple[int, int] = (0, 0),
        environ: Mapping[str, str] | None = None,
        early: bytes = b"",
    ) -> None:
        assert crystaler._script is not None
        self._control, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        if early:
            os.write(self._control, early)
        self.process = subprocess.Popen(
            [
                *(*CRYSTAL, "run", "do it", "--ask", "--script", str(crystaler._script)),
                *("--home", str(crystaler.home), "-w", str(crystaler.workspace), *options),
            ],
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=terminal,
            env={**crystaler.environ, **(environ or {})},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(terminal)
        self.raw = b""

    def until_prompt(self) -> str:
        """Wait until a prompt stands there; return what was written since the last one."""
        before = len(self.raw)
        while not PROMPT.search(self.raw[before:]):
            if not self._more():
                raise AssertionError(f"the run ended without a prompt: {self.raw!r}")
        return self._text(self.raw[before:])

    def type(self, text: str | bytes) -> None:
        """Type as it is, without Enter."""
        os.write(self._control, text.encode() if isinstance(text, str) else text)

    def resize(self, columns: int, lines: int) -> None:
        """Change the size; the program hears of it by a signal."""
        fcntl.ioctl(self._control, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def hang_up(self) -> None:
        """Close the terminal, as a window that is closed does."""
        os.close(self._control)
        self._control = -1

    def end(self) -> tuple[int, str, str]:
        """Wait for the end; return the exit code, all that stood on the terminal, and stdout."""
        while self._control >= 0 and self._more():
            pass
        stdout, _ = self.process.communicate(timeout=30)
        if self._control >= 0:
            os.close(self._control)
        return self.process.returncode, self._text(self.raw), self._text(stdout)

    def interrupt(self) -> None:
        """Send the signal that ``kill -INT`` sends."""
        self.process.send_signal(signal.SIGINT)

    def _more(self) -> bool:
        try:
            piece = os.read(self._control, 65536)
        except OSError:  # the other end is closed: the process has ended
            return False
        self.raw += piece
        return bool(piece)

    @staticmethod
    def _text(raw: bytes) -> str:
        return raw.decode("utf-8", "replace").replace("\r\n", "\n")


def ask(crystaler: Crystaler, *answers: str, options: Sequence[str] = ()) -> tuple[int, str, str]:
    """Run and type each answer, with Enter, when a prompt stands there.

    :return: the exit code, what stood on the terminal, and stdout.
    """
    terminal = LineTerminal(crystaler, *options)
    for answer in answers:
        terminal.until_prompt()
        terminal.type(f"{answer}\n")
    return terminal.end()


def steering(shown: str) -> list[str]:
    """Return the control characters of a terminal's text that are not our own colours, nor what the person typed."""
    plain = COLOURS.sub("", shown)
    return re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", plain)
