"""What a dispatch costs; run by the measured interpreter.

``python dispatch.py bare`` prints the microseconds of one plain call with one clock read, in a loop over 200 functions
that answer nothing; ``fold`` those of one implementation in a dispatch of the same functions as plugins; ``nobody``
those of a hook without an implementation.
"""

import asyncio
import statistics
import sys
from collections.abc import Awaitable, Callable
from time import perf_counter

PLUGINS = 200
ROUNDS = 200


def main() -> None:
    """Measure one kind and print the median."""
    kind = sys.argv[1]
    from crystal.hookspecs import hookimpl
    from crystal.host.dispatch import Dispatcher
    from crystal.host.hooks import Hooks
    from crystal.host.ledger import Ledger
    from crystal.host.manager import PluginRegistry
    from crystal.host.notes import Notes
    from crystal.types.session import UserMessage

    class Plugin:
        def __init__(self, number: int) -> None:
            self.name = f"p{number}"

        @hookimpl
        def on_user_message(self, message: UserMessage) -> None:
            return None

    plugins = [Plugin(number) for number in range(PLUGINS if kind != "nobody" else 0)]
    notes = Notes()
    registry = PluginRegistry(notes)
    for plugin in plugins:
        registry.register(f"plugin:bench/{plugin.name}", plugin)
    dispatcher = Dispatcher(registry, notes, Ledger(), 60.0)
    dispatcher.compile()
    hooks = Hooks(dispatcher)
    message = UserMessage(text="hello")
    functions = [plugin.on_user_message for plugin in plugins]

    async def bare() -> None:
        for function in functions:
            function(message)
            perf_counter()

    async def fold() -> None:
        await hooks.on_user_message(message)

    async def nobody() -> None:
        for _ in range(PLUGINS):
            await hooks.on_user_message(message)

    measured: Callable[[], Awaitable[None]] = {"bare": bare, "fold": fold, "nobody": nobody}[kind]
    sys.stdout.write(f"{asyncio.run(microseconds(measured))}\n")


async def microseconds(measured: Callable[[], Awaitable[None]]) -> float:
    times = []
    for _ in range(ROUNDS):
        began = perf_counter()
        await measured()
        times.append((perf_counter() - began) / PLUGINS * 1e6)
    return statistics.median(times)


main()
