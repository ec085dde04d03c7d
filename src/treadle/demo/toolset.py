"""Tools that write a kit, function by function. What is on offer follows from how the work stands, for a tiny model."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from treadle.core.errors import ToolError
from treadle.core.events import Probe
from treadle.core.messages import CallKind, ToolCall
from treadle.ports.model import ToolDef
from treadle.ports.toolset import Found, ToolContext, ToolOutput, Toolset

from .kit_file import Function, objection, with_body
from .state import KIT, Standing, load, note, replace_file

READ, WRITE, FINISH = "read_function", "write_function", "finish"


class KitTools(Toolset):
    """read_function while functions are left, write_function for the one that was read, finish when none is left.

    It keeps nothing in memory: two files in the workspace say how the work stands.
    """

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace

    def tools(self) -> tuple[ToolDef, ...]:
        """The one tool that fits the moment."""
        standing = load(self.workspace)
        if function := standing.reading:
            schema = {"type": "string", "pattern": f"^{_escaped(function.head)}[^\\n]+$"}
            return (_tool(WRITE, "Writes the function into kit.py.", "mutating", {"code": schema}),)
        if todo := standing.todo:
            schema = {"type": "string", "enum": todo}
            return (_tool(READ, "Reads what a function should do.", "idempotent", {"name": schema}),)
        return (_tool(FINISH, "Ends the work: the tests come next.", "finish", {}),)

    def identity(self) -> list[Any]:
        """This class, not today's schemas: those follow the world."""
        return [type(self).__qualname__]

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Runs a call. A refusal is an answer like any other: the model may try again."""
        standing = load(self.workspace)
        match call.name:
            case "read_function":
                return self._read(standing, _argument(call, "name"))
            case "write_function":
                return self._write(standing, _argument(call, "code"), context.key)
            case "finish":
                return ToolOutput("Finished.")
            case _:
                raise ToolError("not-found", f"there is no tool {call.name}")

    async def prepare(self, call: ToolCall) -> tuple[Probe, ...]:
        """The digests of kit.py around a write; none for a write that will be refused."""
        standing = load(self.workspace)
        if call.name != WRITE:
            return ()
        function, expression = _written(standing, _argument(call, "code"))
        if _refusal(standing, function, expression):
            return ()
        after = with_body(standing.source, function, expression)
        return (Probe(path=KIT, before=_digest(standing.source), after=_digest(after)),)

    async def probe(self, call: ToolCall, probes: tuple[Probe, ...]) -> Found:
        """Whether kit.py holds what was to be written."""
        if not probes:
            return "not-started"
        now = _digest(load(self.workspace).source)
        return "done" if now == probes[0].after else "not-started" if now == probes[0].before else "unknown"

    def _read(self, standing: Standing, name: str) -> ToolOutput:
        if name not in standing.todo:
            raise ToolError(
                "not-found", f"{name} is not to be written", hint=f"Read one of: {', '.join(standing.todo)}."
            )
        note(self.workspace, msgspec.structs.replace(standing.notes, reading=name))
        return ToolOutput(assignment(standing.kit[name]))

    def _write(self, standing: Standing, code: str, key: str) -> ToolOutput:
        function, expression = _written(standing, code)
        if why := _refusal(standing, function, expression):
            self._count(standing, function, key)
            return ToolOutput(f"Refused: {why}")
        replace_file(self.workspace / KIT, with_body(standing.source, function, expression).encode())
        return ToolOutput("Written.", (KIT,))

    def _count(self, standing: Standing, function: Function, key: str) -> None:
        refused = dict(standing.notes.refused)
        if key not in (calls := refused.get(function.name, ())):
            refused[function.name] = (*calls, key)
            note(self.workspace, msgspec.structs.replace(standing.notes, refused=refused))


def assignment(function: Function) -> str:
    """What the model is told of a function: the words in which it knows such tasks."""
    return f"Write a Python function {function.name}({function.parameters}). {function.doc}"


def _refusal(standing: Standing, function: Function, expression: str) -> str:
    if expression in standing.notes.tried.get(function.name, ()):
        return "you wrote this before and the test failed."
    return objection(function, expression)


def _written(standing: Standing, code: str) -> tuple[Function, str]:
    """The function that is being written, and what it is to return. ToolError where this is not its code."""
    function = standing.reading
    if function is None:
        raise ToolError("argument", "no function has been read", hint="Read one first.")
    if not code.startswith(function.head) or "\n" in code[len(function.head) :]:
        raise ToolError(
            "argument", "this is not the function that was read last", hint=f"Begin with {function.head!r}."
        )
    return function, code[len(function.head) :].strip()


def _argument(call: ToolCall, key: str) -> str:
    value = call.args.get(key) if isinstance(call.args, dict) else None
    if not isinstance(value, str):
        raise ToolError("argument", f"{call.name} needs {key}, a string")
    return value


def _tool(name: str, description: str, kind: CallKind, properties: dict[str, Any]) -> ToolDef:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return ToolDef(name, description, schema, kind)


def _escaped(literal: str) -> str:
    """The literal as a pattern; `re.escape` also escapes what JSON Schema's dialect does not let it escape."""
    escaped = "".join("\\" + character if character in r"\.^$*+?()[]{}|" else character for character in literal)
    return escaped.replace("\n", "\\n")


def _digest(source: str) -> str:
    return sha256(source.encode()).hexdigest()
