"""Runs one command and writes down its wall time, exit status and peak resident memory.

A script of its own, ``meter.py FIGURES COMMAND [ARGUMENT ...]``, started without site packages: on Linux a
child's peak counts what its parent held when it was spawned, so the parent must be smaller than any child.
"""

import os
import sys
import time


def main() -> None:
    figures, *command = sys.argv[1:]
    began = time.perf_counter()
    child = os.posix_spawn(command[0], command, os.environ)
    _, status, usage = os.wait4(child, 0)
    wall = time.perf_counter() - began
    unit = 1 if sys.platform == "darwin" else 1024
    with open(figures, "w", encoding="ascii") as file:
        file.write(f"{wall} {os.waitstatus_to_exitcode(status)} {usage.ru_maxrss * unit}")


if __name__ == "__main__":
    main()
