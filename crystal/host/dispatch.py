"""The only place that calls a hook implementation: order, isolation, limits, contracts and the record of each call.

The engine does not use this directly but the typed functions of :mod:`crystal.host.hooks`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter
from types import CoroutineType
from typing import Any

from crystal.hookspecs import ContractRefused, JunkReturned
from crystal.host.isolation import LimitReached, host_is_cancelled, name_fault, run_isolated
from crystal.host.ledger import HookRecord, Ledger
from crystal.host.manager import HookSpecification, Implementation, PluginRegistry
from crystal.host.notes import Notes
from crystal.host.watchdog import Watchdog
from crystal.types._frozen import Frozen
from crystal.types.notes import NoteCode

CANCEL_GRACE_SECONDS = 1.0
"""How long a hook that ignores its cancellation is still waited for."""


class HookFailed(Exception):
    """One call of an implementation came to nothing; carries the note to write."""

    def __init__(self, code: NoteCode, text: str) -> None:
        super().__init__(text)
        self.code = code


class Step(Frozen):
    """One compiled call: an adapter that takes all arguments of the hook, and the record of its calls."""

    plugin: str
    call: Callable[..., Any]
    record: HookRecord


class Plan(Frozen):
    """The compiled calls of one hook.

    :param position: where among the arguments the folded one stands; 0 for other kinds.
    """

    hook: str
    steps: tuple[Step, ...]
    specification: HookSpecification
    position: int = 0


class Folded(Frozen):
    """The outcome of a fold.

    :param guard_failed: plugins whose guarding implementation raised, answered junk or outlasted its limit.
    :param changed_by: plugins whose replacement was accepted and differs from what it replaced, in order.
    """

    value: Any
    guard_failed: tuple[str, ...] = ()
    changed_by: tuple[str, ...] = ()


class Collected(Frozen):
    """One entry that a plugin contributed; not admitted yet."""

    plugin: str
    entry: Any


def _adapter(implementation: Implementation, arguments: tuple[str, ...]) -> Callable[..., Any]:
    function = implementation.function
    taken = tuple((name, arguments.index(name)) for name in implementation.arguments)
    if not taken:
        return lambda *_: function()
    if not implementation.by_position:
        return lambda *values: function(**{name: values[index] for name, index in taken})
    if implementation.arguments == arguments:
        return function
    return lambda *values: function(*(values[index] for _, index in taken))


class Dispatcher:
    """Call plans of one host, compiled when every plugin is registered.

    :param timeout: seconds a coroutine may take; past it it is cancelled. A plain function cannot be ended: it gets a
        note when it returns, and the watchdog names it in the log meanwhile.
    """

    def __init__(self, registry: PluginRegistry, notes: Notes, ledger: Ledger, timeout: float) -> None:
        self._registry = registry
        self._notes = notes
        self._ledger = ledger
        self._timeout = timeout
        self._plans: dict[str, Plan] = {}
        self._watchdog = Watchdog(timeout)

    def compile(self) -> None:
        """Compile the call plans; called again when plugins were added."""
        for hook, specification in self._registry.specifications.items():
            steps = tuple(
                Step(
                    plugin=implementation.plugin,
                    call=_adapter(implementation, specification.arguments),
                    record=self._ledger.record(hook, implementation.plugin),
                )
                for implementation in self._registry.implementations(hook)
            )
            folds = specification.declaration.folds
            position = specification.arguments.index(folds) if folds else 0
            self._plans[hook] = Plan(hook=hook, steps=steps, specification=specification, position=position)

    def has(self, hook: str) -> bool:
        """Whether anything implements ``hook``; an engine that asks first pays nothing for a hook nobody uses."""
        return bool(self._plans[hook].steps)

    async def notify(self, hook: str, *arguments: Any) -> None:
        """Call every implementation; results are ignored."""
        for step in self._begin(hook):
            try:
                await self._call(step, arguments)
            except HookFailed as failure:
                self._note_failure(step, failure)

    def implementers(self, hook: str) -> tuple[str, ...]:
        """Return the plugins that implement ``hook``, in call order."""
        return tuple(dict.fromkeys(step.plugin for step in self._plans[hook].steps))

    async def notify_one(self, hook: str, plugin: str, *arguments: Any) -> bool:
        """Call the implementations of one plugin, with arguments that are its own; return whether none failed."""
        succeeded = True
        for step in self._begin(hook):
            if step.plugin != plugin:
                continue
            try:
                await self._call(step, arguments)
            except HookFailed as failure:
                self._note_failure(step, failure)
                succeeded = False
        return succeeded

    async def append(self, hook: str, *arguments: Any) -> tuple[str, ...]:
        """Return the texts of the implementations in order, blank ones dropped."""
        texts = []
        for step in self._begin(hook):
            try:
                text = await self._call(step, arguments)
                if text is None:
                    continue
                text = plain_text(text)
                if type(text) is not str:
                    raise HookFailed(NoteCode.HOOK_RESULT, f"it returned {type(text).__name__}, not a text to append")
            except HookFailed as failure:
                self._note_failure(step, failure)
                continue
            if text.strip():
                self._mark(step, "changed")
                texts.append(text)
        return tuple(texts)

    async def collect(self, hook: str) -> tuple[Collected, ...]:
        """Return every contributed entry with its plugin, in order."""
        entries: list[Collected] = []
        for step in self._begin(hook):
            try:
                result = await self._call(step, ())
                if result is None:
                    continue
                if issubclass(type(result), (str, bytes, dict)) or not _has(type(result), "__iter__"):
                    raise HookFailed(NoteCode.HOOK_RESULT, f"it returned {type(result).__name__}, not a list")
                entries += self._entries(step, result)
            except HookFailed as failure:
                self._note_failure(step, failure)
        return tuple(entries)

    def _entries(self, step: Step, result: Any) -> list[Collected]:
        try:
            return [Collected(plugin=step.plugin, entry=entry) for entry in result]
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            # The list may be a generator, whose code runs only now.
            raise HookFailed(NoteCode.HOOK_ERROR, f"its list {name_fault(error)}") from error

    async def fold(self, hook: str, arguments: tuple[Any, ...], facts: Any = None) -> Folded:
        """Pass a value through the implementations, each replacement checked against the hook's contract.

        :param arguments: the hook's arguments in order; the folded one is replaced from call to call.
        :param facts: what the contract needs besides, such as the names of the current catalog.
        """
        plan = self._plans[hook]
        position, specification = plan.position, plan.specification
        declaration, accept = specification.declaration, specification.declaration.accept
        if accept is None:
            raise ValueError(f"{hook} is not a fold")
        failed: list[str] = []
        changed: list[str] = []
        for step in self._begin(hook):
            try:
                replacement = self._start(step, arguments)
                if replacement is None:
                    continue
                replacement = await self._finish(step, replacement)
                if replacement is None:
                    continue
                value = arguments[position]
                accepted, is_new = _accepted(accept, value, replacement, facts)
            except HookFailed as failure:
                self._note_failure(step, failure, guard=declaration.guard)
                failed.append(step.plugin)
                continue
            except ContractRefused as refusal:
                self._mark(step, "refused")
                junk = declaration.guard and isinstance(refusal, JunkReturned)
                if junk:
                    failed.append(step.plugin)
                self._note_refusal(hook, step, refusal, junk)
                continue
            if is_new:
                changed.append(step.plugin)
                self._mark(step, "changed")
            views = {name: read(accepted) for name, read in declaration.derived.items()}
            arguments = tuple(
                accepted if name == declaration.folds else views.get(name, argument)
                for name, argument in zip(specification.arguments, arguments, strict=True)
            )
        return Folded(
            value=arguments[position],
            guard_failed=tuple(failed) if declaration.guard else (),
            changed_by=tuple(changed),
        )

    def _begin(self, hook: str) -> tuple[Step, ...]:
        """Return the calls of a hook, and start the clock for the first."""
        steps = self._plans[hook].steps
        if steps:
            self._watchdog.start()
            self._watchdog.began = perf_counter()
        return steps

    def _start(self, step: Step, arguments: tuple[Any, ...]) -> Any:
        """Make one plain call, which runs to its end or hands back what is still to be awaited.

        The clock is read once a call: one ends where the next begins.
        """
        watchdog, record = self._watchdog, step.record
        watchdog.running = record
        record.calls += 1
        try:
            return step.call(*arguments)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise _failure(error) from error
        finally:
            now = perf_counter()
            watchdog.running = None
            took = now - watchdog.began
            watchdog.began = now
            record.seconds += took
            if took > self._timeout:
                self._note_slow(step, took)
            if self._ledger.trace is not None:
                self._ledger.trace(record.hook, step.plugin, took, "ran")

    async def _finish(self, step: Step, result: Any) -> Any:
        """Await what a call handed back, in a task of its own and within the limit; return anything else as it is."""
        if not _is_awaitable(result):
            return result
        began = perf_counter()
        result, error = await run_isolated(result, grace=CANCEL_GRACE_SECONDS, limit=self._timeout)
        self._watchdog.began = ended = perf_counter()
        step.record.seconds += ended - began
        if isinstance(error, LimitReached):
            raise HookFailed(NoteCode.HOOK_TIMEOUT, f"it took longer than {self._timeout:g} s and was cancelled")
        if error is not None:
            raise _failure(error) from error
        return result

    async def _call(self, step: Step, arguments: tuple[Any, ...]) -> Any:
        result = self._start(step, arguments)
        return result if result is None else await self._finish(step, result)

    def _mark(self, step: Step, outcome: str) -> None:
        if outcome == "changed":
            step.record.changes += 1
        elif outcome == "refused":
            step.record.refusals += 1
        else:
            step.record.failures += 1
        if self._ledger.trace is not None:
            self._ledger.trace(step.record.hook, step.plugin, 0.0, outcome)

    def _note_failure(self, step: Step, failure: HookFailed, guard: bool = False) -> None:
        self._mark(step, "failed")
        outcome = "The call requires the operator." if guard else "It was skipped."
        self._notes.add(
            failure.code,
            f"Plugin '{step.plugin}', hook '{step.record.hook}': {failure}. {outcome}",
            step.plugin,
        )

    def _note_refusal(self, hook: str, step: Step, refusal: ContractRefused, junk: bool) -> None:
        outcome = "The call requires the operator." if junk else "It was skipped."
        self._notes.add(
            NoteCode.GUARD_FAILED if junk else NoteCode.CONTRACT_REFUSED,
            f"Plugin '{step.plugin}', hook '{hook}': its replacement was refused because it {refusal}. {outcome}",
            step.plugin,
        )

    def _note_slow(self, step: Step, took: float) -> None:
        self._notes.add(
            NoteCode.HOOK_SLOW,
            f"Plugin '{step.plugin}', hook '{step.record.hook}': took {took:.1f} s, over the limit of "
            f"{self._timeout:g} s. A slow hook should be async and await what it waits for, so that it can be ended.",
            step.plugin,
        )


def _is_awaitable(result: Any) -> bool:
    """Whether a result is still to be awaited."""
    kind = type(result)
    return kind is CoroutineType or _has(kind, "__await__")


def _has(kind: type, method: str) -> bool:
    """Whether objects of a type have a method; an object's own attributes may be code of the plugin."""
    return any(method in vars(base) for base in kind.__mro__)


def plain_text(value: Any) -> Any:
    """Return a text as an exact ``str``, for methods of a plugin's own class could raise anywhere; else the value."""
    kind = type(value)
    return str.__str__(value) if kind is not str and issubclass(kind, str) else value


def _accepted(accept: Callable[[Any, Any, Any], Any], value: Any, replacement: Any, facts: Any) -> tuple[Any, bool]:
    """Return what the contract makes of a replacement, and whether that changes anything."""
    try:
        accepted = accept(value, plain_text(replacement), facts)
        return accepted, bool(accepted != value)
    except (ContractRefused, KeyboardInterrupt):
        raise
    except BaseException as error:
        # The replacement's own code may run only now, as a generator's does, and it may raise or exit.
        raise HookFailed(NoteCode.HOOK_ERROR, f"its result {name_fault(error)}") from error


def _failure(error: BaseException) -> BaseException:
    """Return the failure that an exception of a hook is; the host's own cancellation stays what it is."""
    if isinstance(error, asyncio.CancelledError) and host_is_cancelled():
        return error
    return HookFailed(NoteCode.HOOK_ERROR, f"it {name_fault(error)}")
