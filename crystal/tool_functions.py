"""``@crystal.tool``: make a tool from a typed function. Built-in tools declare literal schemas, for start-up."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from crystal.types._readonly import thaw
from crystal.types.approval import Authority, Risk
from crystal.types.tools import Catalog, ToolCall, ToolContext, ToolContribution, ToolDefinition, ToolOutput

if TYPE_CHECKING:
    import pydantic

ToolFunction = Callable[..., "str | ToolOutput | Awaitable[str | ToolOutput]"]


class ToolFunctionError(TypeError):
    """The function cannot be a tool; the message names it and what is missing."""


class FunctionTool:
    """A tool that runs a function; made by :func:`tool`, returned from ``contribute_tools`` by :meth:`contribution`."""

    def __init__(self, function: ToolFunction, described: _Described) -> None:
        self._function = function
        self._described = described
        self.definition = described.definition

    @property
    def module(self) -> str:
        """The name of the module that defines the function."""
        return self._function.__module__

    async def invoke(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Call the function with values of the types it is annotated with; text becomes a successful output."""
        import pydantic

        described = self._described
        try:
            values = described.model.model_validate(thaw(call.arguments))
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"]) or "the arguments"
            return ToolOutput(text=f"'{call.name}' cannot use {place}: {first['msg']}.", failed=True)
        arguments: dict[str, Any] = {name: getattr(values, field) for name, field in described.fields.items()}
        if described.takes_context:
            arguments["context"] = context
        result = self._function(**arguments)
        if inspect.isawaitable(result):
            result = await result
        return result if isinstance(result, ToolOutput) else ToolOutput(text=str(result))


class _Described(NamedTuple):
    """What a function says about itself.

    :param model: the pydantic model of its arguments.
    :param fields: parameter names to fields of the model, whose own names cannot clash with anything.
    """

    definition: ToolDefinition
    model: type[pydantic.BaseModel]
    fields: dict[str, str]
    takes_context: bool


@overload
def tool(function: ToolFunction, /) -> ToolContribution: ...
@overload
def tool(
    *,
    catalogs: Catalog = ...,
    risk: Risk | None = ...,
    authority: Authority = ...,
    path_arguments: tuple[str, ...] = ...,
) -> Callable[[ToolFunction], ToolContribution]: ...


def tool(
    function: ToolFunction | None = None,
    /,
    *,
    catalogs: Catalog = Catalog.BOTH,
    risk: Risk | None = None,
    authority: Authority = Authority.WORKSPACE,
    path_arguments: tuple[str, ...] = (),
) -> ToolContribution | Callable[[ToolFunction], ToolContribution]:
    """Make a contribution from a typed function, plain or ``async``, that returns text or a ``ToolOutput``.

    The name is the function's, the description its docstring, the JSON Schema comes from its annotations. A parameter
    called ``context`` receives the :class:`~crystal.types.tools.ToolContext` and is not part of the schema.

    :param risk: the class of the tool; without one a disk or package plugin's tool is Privileged + Workspace.
    :param path_arguments: names of the parameters that are file paths, to be fenced by the host.
    :raises ToolFunctionError: for a function without a docstring or with an unannotated parameter.
    """

    def make(target: ToolFunction) -> ToolContribution:
        described = _describe(target)
        return ToolContribution(
            name=described.definition.name,
            tool=FunctionTool(target, described),
            catalogs=catalogs,
            risk=risk,
            authority=authority,
            path_arguments=path_arguments,
        )

    return make if function is None else make(function)


def _describe(function: ToolFunction) -> _Described:
    import pydantic

    name = function.__name__
    description = inspect.getdoc(function)
    if not description:
        raise ToolFunctionError(f"{name}() needs a docstring: it is the description the model reads")
    names: dict[str, str] = {}
    fields: dict[str, Any] = {}
    parameters = inspect.signature(function, eval_str=True).parameters
    for parameter in parameters.values():
        if parameter.name == "context":
            continue
        if parameter.annotation is parameter.empty or parameter.kind in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
            parameter.POSITIONAL_ONLY,
        ):
            raise ToolFunctionError(f"{name}() needs an annotated, named parameter instead of {parameter.name!r}")
        default = ... if parameter.default is parameter.empty else parameter.default
        names[parameter.name] = f"field_{len(names)}"
        fields[names[parameter.name]] = (parameter.annotation, pydantic.Field(default, alias=parameter.name))
    model = pydantic.create_model(name, __config__=pydantic.ConfigDict(extra="forbid"), **fields)
    schema = _without_titles(model.model_json_schema())
    schema.setdefault("properties", {})
    return _Described(
        definition=ToolDefinition(name=name, description=description, schema=schema),
        model=model,
        fields=names,
        takes_context="context" in parameters,
    )


def _without_titles(schema: dict[str, Any]) -> dict[str, Any]:
    """Drop the ``title`` words that pydantic adds to schemas; a property of that name stays."""

    def clean(node: Any, properties: bool = False) -> Any:
        if isinstance(node, dict):
            return {
                key: clean(value, properties=key in ("properties", "$defs") and not properties)
                for key, value in node.items()
                if properties or key != "title"
            }
        return [clean(entry) for entry in node] if isinstance(node, list) else node

    cleaned: dict[str, Any] = clean(schema)
    return cleaned
