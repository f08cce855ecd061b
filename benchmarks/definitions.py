"""What it costs to define a value class, as a dataclass and as Crystal does it; run by the measured interpreter.

``python definitions.py frozen`` or ``python definitions.py dataclass`` prints milliseconds a class.
"""

import sys
import time

COUNT = 200
FIELDS = "id: str\n    text: str\n    images: tuple[str, ...] = ()\n    failed: bool = False\n    name: str = ''"
SOURCES = {
    "frozen": f"class Value(Frozen):\n    'A value.'\n    {FIELDS}",
    "dataclass": f"@dataclass(frozen=True, slots=True, kw_only=True)\nclass Value:\n    'A value.'\n    {FIELDS}",
}


def main() -> None:
    """Define the class again and again, with one instance each time, and print the mean."""
    kind = sys.argv[1]
    from dataclasses import dataclass

    from crystal.types._frozen import Frozen

    code = compile(SOURCES[kind] + "\nValue(id='1', text='a')", kind, "exec")
    scope = {"Frozen": Frozen, "dataclass": dataclass, "__name__": "definitions"}
    began = time.perf_counter()
    for _ in range(COUNT):
        exec(code, dict(scope))
    sys.stdout.write(f"{(time.perf_counter() - began) / COUNT * 1e3}\n")


main()
