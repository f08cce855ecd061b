"""Registration: which plugins there are, which of their functions implement a hook, and in what order these run.

pluggy does the registering; what it would reject as a whole (a misspelt hook, a wrong argument, a wrapper) costs a
plugin only the one function here, with a note.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Hashable, Iterable
from types import FunctionType, MethodType
from typing import Any

import pluggy

from crystal.hookspecs import DECLARATION_ATTRIBUTE, SPECIFICATIONS, HookDeclaration
from crystal.host.notes import Notes
from crystal.types._frozen import Frozen
from crystal.types.notes import NoteCode

BLOCKED = "--no-plugin leaves it out of this process"


class HookSpecification(Frozen):
    """A hook point: its declaration and its documented function."""

    name: str
    declaration: HookDeclaration
    arguments: tuple[str, ...]
    function: Callable[..., Any]


class Implementation(Frozen):
    """One function of one plugin that implements a hook.

    :param arguments: the subset of the hook's arguments that it takes, in its own order.
    :param by_position: whether these are its first parameters, so that they can be passed by position.
    """

    plugin: str
    function: Callable[..., Any]
    arguments: tuple[str, ...]
    by_position: bool = True


def read_specifications() -> dict[str, HookSpecification]:
    """Return every hook point in the order of the hookspec modules."""
    found: dict[str, HookSpecification] = {}
    for module in SPECIFICATIONS:
        for name, function in vars(module).items():
            declaration = getattr(function, DECLARATION_ATTRIBUTE, None)
            if isinstance(declaration, HookDeclaration) and function.__module__ == module.__name__:
                arguments = tuple(inspect.signature(function).parameters)
                found[name] = HookSpecification(
                    name=name, declaration=declaration, arguments=arguments, function=function
                )
    return found


class CheckedPluginManager(pluggy.PluginManager):
    """pluggy's manager, with each candidate function checked on its own before it registers."""

    def __init__(self, specifications: dict[str, HookSpecification], notes: Notes) -> None:
        super().__init__("crystal")
        self._specifications = specifications
        self._notes = notes
        self.registering = ""
        self._parameters: dict[Hashable, tuple[inspect.Parameter, ...]] = {}
        for module in SPECIFICATIONS:
            self.add_hookspecs(module)

    def parse_hookimpl_opts(self, plugin: object, name: str) -> Any:
        """Return pluggy's options for a function that may register, ``None`` for every other attribute."""
        options = super().parse_hookimpl_opts(plugin, name)
        if options is None:
            if name in self._specifications and self._means_a_hook(plugin, name):
                self._skip(NoteCode.HOOK_UNMARKED, name, "is not called: write @hookimpl above the function")
            return None
        hook = options.get("specname") or name
        specification = self._specifications.get(hook)
        if options.get("wrapper") or options.get("hookwrapper"):
            self._skip(
                NoteCode.HOOK_WRAPPER, hook, "is a wrapper, which could slip past the hook's contract; write it plain"
            )
            return None
        if specification is None:
            nearest = difflib.get_close_matches(hook, self._specifications, n=1)
            mend = f"; did you mean {nearest[0]!r}?" if nearest else "; 'crystal hooks' lists them"
            self._skip(NoteCode.HOOK_UNKNOWN, hook, f"is not a hook of this host{mend}")
            return None
        fault = _argument_fault(self.parameters(getattr(plugin, name)), specification)
        if fault is not None:
            self._skip(NoteCode.HOOK_ARGUMENT, hook, fault)
            return None
        return options

    def _means_a_hook(self, plugin: object, name: str) -> bool:
        """Whether an unmarked function of a hook's name takes what that hook passes, so that it is meant for it."""
        if not _is_own_function(plugin, name):
            return False
        taken = self.parameters(getattr(plugin, name))
        specification = self._specifications[name]
        return bool(taken) == bool(specification.arguments) and _argument_fault(taken, specification) is None

    def parameters(self, function: Callable[..., Any]) -> tuple[inspect.Parameter, ...]:
        """Return the parameters of a candidate function: names, kinds, and whether each has a default.

        Looking them up takes most of the time of registering, and most functions of one hook are alike.
        """
        shape = _shape(function)
        found = self._parameters.get(shape)
        if found is None:
            found = self._parameters[shape] = tuple(inspect.signature(function).parameters.values())
        return found

    def _skip(self, code: NoteCode, hook: str, fault: str) -> None:
        stop = "" if fault.endswith("?") else "."
        text = f"Plugin '{self.registering}': '{hook}' {fault}{stop} The rest of the plugin is loaded."
        self._notes.add(code, text, self.registering)


def _shape(function: Callable[..., Any]) -> Hashable:
    """Return what decides the parameters of a plain function or method; any other stands for itself."""
    plain = function.__func__ if type(function) is MethodType else function
    if type(plain) is not FunctionType or not vars(plain).keys().isdisjoint(("__wrapped__", "__signature__")):
        return function
    code = plain.__code__
    if code.co_kwonlyargcount or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return function
    names, defaults = code.co_varnames[: code.co_argcount], len(plain.__defaults__ or ())
    return names, code.co_posonlyargcount, defaults, plain is not function


def _is_own_function(plugin: object, name: str) -> bool:
    """Whether the plugin itself defines a function of that name; one that it imported may mean something else."""
    function = inspect.unwrap(getattr(plugin, name))
    module = plugin.__name__ if inspect.ismodule(plugin) else type(plugin).__module__
    return inspect.isroutine(function) and getattr(function, "__module__", None) == module


def _display_name(plugin: object) -> str:
    """Return the plugin's ``name``, or an empty text when it has none or it cannot be read."""
    try:
        display = getattr(plugin, "name", None)
        return str.__str__(display) if isinstance(display, str) and str.strip(display) else ""
    except KeyboardInterrupt:
        raise
    except BaseException:
        # It may be code of the plugin, which may raise anything, SystemExit included.
        return ""


def _argument_fault(parameters: Iterable[inspect.Parameter], specification: HookSpecification) -> str | None:
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.name in specification.arguments:
            if parameter.kind is parameter.KEYWORD_ONLY:
                return f"takes {parameter.name!r} by keyword only, but a hook's arguments are passed by position"
            continue
        if parameter.default is not parameter.empty:
            continue
        nearest = difflib.get_close_matches(parameter.name, specification.arguments, n=1)
        offered = ", ".join(specification.arguments) or "none"
        mend = f"did you mean {nearest[0]!r}?" if nearest else f"its arguments are: {offered}"
        return f"takes an argument {parameter.name!r} that the hook does not pass; {mend}"
    return None


class PluginRegistry:
    """The registered plugins of one host, by their full names such as ``builtin:files``."""

    def __init__(self, notes: Notes, blocked: Iterable[str] = ()) -> None:
        self.specifications = read_specifications()
        self._notes = notes
        self._manager = CheckedPluginManager(self.specifications, notes)
        self._display_names: dict[str, str] = {}
        self._blocked = frozenset(blocked)
        self.refusals: dict[str, str] = {}
        """Why a plugin is not registered, by full name."""

    def register(self, name: str, plugin: object) -> bool:
        """Register one plugin.

        :param name: full name, ``SOURCE:NAME``; unique.
        :param plugin: a module or an instance with hookimpls and a ``name`` attribute, or a class to instantiate.
        :return: whether it is registered; if not, a note says why, except for a blocked one.
        """
        if name in self._blocked:
            self.refusals[name] = BLOCKED
            return False
        if isinstance(plugin, type):
            try:
                plugin = plugin()
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                self._refuse(name, f"its class cannot be made without arguments: {type(error).__name__}")
                return False
        display = _display_name(plugin)
        if not display:
            self._refuse(name, "it has no 'name', a text that is not empty")
            return False
        if display in self._display_names:
            reason = f"'{self._display_names[display]}' has the name '{display}' already"
            self._refuse(name, reason, NoteCode.PLUGIN_DUPLICATE)
            return False
        if self._manager.has_plugin(name):
            self._refuse(name, "that name is taken already", NoteCode.PLUGIN_DUPLICATE)
            return False
        self._manager.registering = name
        try:
            self._manager.register(plugin, name)
        except Exception as error:
            self._refuse(name, f"its functions cannot be looked at: {type(error).__name__}")
            return False
        self._display_names[display] = name
        return True

    def _refuse(self, name: str, reason: str, code: NoteCode = NoteCode.PLUGIN_INVALID) -> None:
        self.refusals[name] = reason
        self._notes.add(code, f"Plugin '{name}' is not loaded: {reason}.", name)

    def display_name(self, name: str) -> str:
        """Return the display name of a registered plugin."""
        return next(display for display, full in self._display_names.items() if full == name)

    @property
    def names(self) -> tuple[str, ...]:
        """Full names in registration order."""
        return tuple(name for name, plugin in self._manager.list_name_plugin() if plugin is not None)

    def implementations(self, hook: str) -> tuple[Implementation, ...]:
        """Return the implementations of ``hook`` in call order: tryfirst, plain, trylast, each as registered."""
        caller = getattr(self._manager.hook, hook)
        listed = caller.get_hookimpls()
        last = [found for found in listed if found.trylast]
        first = [found for found in listed if found.tryfirst and not found.trylast]
        plain = [found for found in listed if not found.tryfirst and not found.trylast]
        # pluggy inserts each trylast implementation at the front of its list.
        ordered = (*first, *plain, *reversed(last))
        return tuple(self._implementation(found.plugin_name, found.function, hook) for found in ordered)

    def hooks_of(self, name: str) -> tuple[str, ...]:
        """Return the names of the hooks that a plugin implements."""
        return tuple(
            hook for hook in self.specifications if any(found.plugin == name for found in self.implementations(hook))
        )

    def _implementation(self, plugin: str, function: Callable[..., Any], hook: str) -> Implementation:
        positional = tuple(
            parameter.name
            for parameter in self._manager.parameters(function)
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        )
        offered = self.specifications[hook].arguments
        taken = tuple(name for name in positional if name in offered)
        return Implementation(
            plugin=plugin, function=function, arguments=taken, by_position=positional[: len(taken)] == taken
        )
