"""What loading a disk plugin costs; run by the measured interpreter.

``python loading.py disk`` prints the milliseconds per plugin that a session takes to find, read, digest, load, register
and ask for contributions 200 plugin folders of a home, each with an implementation of every hook; ``plain`` those that
it takes to import the same modules from one folder of ``sys.path`` and to register them with pluggy. What both need is
imported beforehand, and both find their bytecode where they keep it. The folders are made in ``HOME`` when they are
not there.
"""

import asyncio
import gc
import importlib
import json
import os
import sys
from pathlib import Path
from time import perf_counter

PLUGINS = 200


def main() -> None:
    """Measure one kind and print the figure."""
    # As the command sets it.
    gc.set_threshold(100_000, 20, 50)
    folder = Path(os.environ["HOME"]) / "loading"
    if not folder.exists():
        write(folder)
    seconds = disk(folder) if sys.argv[1] == "disk" else plain(folder)
    sys.stdout.write(f"{seconds / PLUGINS * 1e3}\n")


def write(folder: Path) -> None:
    """Write every plugin twice, as a folder of a home and as a module among the others, and a home with one."""
    from crystal.host.manager import read_specifications

    hooks = [
        f"@hookimpl\ndef {name}({', '.join(specification.arguments)}):\n    return None\n"
        for name, specification in read_specifications().items()
    ]
    (folder / "modules").mkdir(parents=True)
    for number in range(PLUGINS + 1):
        name = f"plugin_{number:03}"
        source = "\n\n".join(["from crystal import hookimpl\n", f'name = "{name}"\n', *hooks])
        place = folder / ("home" if number else "warm") / "plugins" / name
        place.mkdir(parents=True)
        (place / "plugin.json").write_text(json.dumps({"module": f"{name}.py"}))
        (place / f"{name}.py").write_text(source)
        (folder / "modules" / f"{name}.py").write_text(source)
    for home in ("home", "warm"):
        (folder / home).chmod(0o700)


def disk(folder: Path) -> float:
    """Load them as a session does and return the seconds."""
    load(folder, "warm")
    began = perf_counter()
    count = load(folder, "home")
    seconds = perf_counter() - began
    if count != PLUGINS:
        sys.exit(f"{count} plugins were loaded instead of {PLUGINS}")
    return seconds


def load(folder: Path, home: str) -> int:
    """Load the plugins of a home and return how many there are."""
    from crystal.engine.extensions import ExtensionOptions, load_extensions
    from crystal.store.config import Config
    from crystal.store.home import Home

    extensions = asyncio.run(
        load_extensions(ExtensionOptions(plugins=True), Config(), Home(root=folder / home), folder / "modules")
    )
    return sum(name.startswith("plugin:home/") for name in extensions.host.plugins.names)


def plain(folder: Path) -> float:
    """Import and register them plainly and return the seconds."""
    import pluggy

    from crystal.hookspecs import SPECIFICATIONS

    manager = pluggy.PluginManager("crystal")
    for module in SPECIFICATIONS:
        manager.add_hookspecs(module)
    sys.path.insert(0, str(folder / "modules"))
    names = [f"plugin_{number:03}" for number in range(PLUGINS + 1)]
    manager.register(importlib.import_module(names[0]))
    began = perf_counter()
    for name in names[1:]:
        manager.register(importlib.import_module(name))
    return perf_counter() - began


main()
