"""A plain function as a tool: its type hints become the schema, its docstring the description."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NotRequired, Required, cast, get_type_hints, overload

from anyio import to_thread

from treadle.core.errors import DefinitionError, ToolError
from treadle.core.messages import CallKind, ToolCall
from treadle.ports.model import ToolDef
from treadle.ports.toolset import ToolContext, ToolOutput, Toolset

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class FunctionTool:
    """A function with its definition as a tool. Made by `tool`."""

    def __init__(
        self, function: Callable[..., Any], kind: CallKind, name: str | None, *, polling: bool = False
    ) -> None:
        from pydantic import ConfigDict, TypeAdapter
        from pydantic.errors import PydanticUserError
        from typing_extensions import TypedDict  # pydantic insists on this one below Python 3.12

        self.function = function
        self._name = name or getattr(function, "__name__", type(function).__name__)
        fields, self._context_argument = self._fields()
        arguments = cast("Any", TypedDict)("Arguments", fields)
        arguments.__pydantic_config__ = ConfigDict(extra="forbid")
        try:
            self._adapter: Any = TypeAdapter(arguments)
            schema = self._adapter.json_schema()
        except PydanticUserError as error:
            raise DefinitionError(f"The tool {self._name} has an argument that JSON cannot express: {error}") from error
        schema.pop("title", None)
        self.definition = ToolDef(self._name, inspect.getdoc(function) or self._name, schema, kind, polling)

    def _fields(self) -> tuple[dict[str, Any], str]:
        """Argument -> type; and the name of the argument that takes the ToolContext, if any."""
        try:
            hints = get_type_hints(self.function, include_extras=True)
        except (NameError, TypeError) as error:
            raise DefinitionError(f"The type hints of the tool {self._name} cannot be read: {error}") from error
        fields: dict[str, Any] = {}
        context = ""
        for parameter in inspect.signature(self.function).parameters.values():
            if parameter.kind in _POSITIONAL:
                raise DefinitionError(f"The tool {self._name} must take its arguments by name, not as {parameter}.")
            hint = hints.get(parameter.name)
            if hint is None:
                raise DefinitionError(f"The argument {parameter.name} of the tool {self._name} has no type hint.")
            if hint is ToolContext:
                context = parameter.name
            elif parameter.default is inspect.Parameter.empty:
                fields[parameter.name] = cast("Any", Required)[hint]
            else:
                fields[parameter.name] = cast("Any", NotRequired)[hint]
        return fields, context

    async def call(self, args: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Runs the function, in a thread unless it is async. ToolError("argument") for what the schema cannot say."""
        from pydantic import ValidationError

        try:
            values: dict[str, Any] = dict(self._adapter.validate_python(args))
        except ValidationError as error:
            raise ToolError("argument", f"{self._name}: {error}", hint="Correct the arguments.") from error
        if self._context_argument:
            values[self._context_argument] = context
        if inspect.iscoroutinefunction(self.function):
            return _output(await self.function(**values))
        return _output(await to_thread.run_sync(lambda: self.function(**values)))


@overload
def tool(
    function: Callable[..., Any], /, *, kind: CallKind = "mutating", name: str | None = None, polling: bool = False
) -> FunctionTool: ...
@overload
def tool(
    *, kind: CallKind = "mutating", name: str | None = None, polling: bool = False
) -> Callable[[Callable[..., Any]], FunctionTool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    kind: CallKind = "mutating",
    name: str | None = None,
    polling: bool = False,
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Says what a call of the function may do to the world (`kind`) and what it is called: a call or a decorator.

    `mutating` is the cautious default: such a call runs alone and is never repeated by itself after a crash. An
    argument annotated ToolContext is given the call's context and is not shown to the model. `polling`: it is made for
    asking again until something has happened, so no guard counts its calls. DefinitionError.
    """
    if function is None:
        return lambda later: FunctionTool(later, kind, name, polling=polling)
    return FunctionTool(function, kind, name, polling=polling)


class FunctionTools(Toolset):
    """Functions, or what `tool` made of them, as a toolset.

    What a function returns is told to the model: text as it is, None as "done", a ToolOutput as such, all else as JSON.
    It raises ToolError for what the model should know; any other exception is a fault of its own and ends the loop.
    """

    def __init__(self, *functions: Callable[..., Any] | FunctionTool) -> None:
        made = [function if isinstance(function, FunctionTool) else tool(function) for function in functions]
        self._by_name = {one.definition.name: one for one in made}
        if len(self._by_name) < len(made):
            raise DefinitionError("Two functions have the same name: give one another, tool(function, name=...).")
        self._tools = tuple(sorted((one.definition for one in made), key=lambda definition: definition.name))

    def tools(self) -> tuple[ToolDef, ...]:
        return self._tools

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        found = self._by_name.get(call.name)
        if found is None or not isinstance(call.args, dict):
            raise ToolError("not-found", f"there is no tool {call.name}")
        return await found.call(call.args, context)


def _output(value: Any) -> ToolOutput:
    match value:
        case ToolOutput():
            return value
        case str():
            return ToolOutput(value)
        case None:
            return ToolOutput("done")
        case _:
            from pydantic_core import to_json

            return ToolOutput(to_json(value, indent=2, serialize_unknown=True).decode())
