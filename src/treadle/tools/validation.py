"""Checks the calls of a response against the tools' JSON Schemas before any of them runs (AG-15)."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, cast

import msgspec

from treadle.core.messages import ToolCall
from treadle.ports.model import RawCall, ToolDef

from .schemas import compiled

ProblemKind = Literal["unknown-tool", "malformed-json", "missing", "extra", "mistyped", "refused"]
_MOST_PROBLEMS = 5  # told at once
_MOST_NAMES = 40
_LONGEST = 300  # characters of one message: it may quote a whole argument


class Problem(NamedTuple):
    """What is wrong with a call. `path` is a JSON path into its arguments; `$` is all of them."""

    kind: ProblemKind
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def annotate(calls: Sequence[RawCall], tools: Sequence[ToolDef]) -> tuple[ToolCall, ...]:
    """The calls with their kind from the tool's definition; `invalid`, with the problem, where one must not run."""
    if not calls:
        return ()
    known = {tool.name: tool for tool in tools}
    return tuple([_annotated(call, known) for call in calls])


def _annotated(call: RawCall, known: dict[str, ToolDef]) -> ToolCall:
    tool = known.get(call.name)
    args = call.args if isinstance(call.args, dict) else _decoded(call.args)
    if tool is not None and isinstance(args, dict) and _fits(tool, args):
        return ToolCall(id=call.id, name=call.name, args=args, kind=tool.kind)
    found = problems_of(call, tuple(known.values()))
    text = "; ".join(str(problem) for problem in found[:_MOST_PROBLEMS])
    if more := len(found) - _MOST_PROBLEMS:
        text += f"; and {more} more" if more > 0 else ""
    return ToolCall(id=call.id, name=call.name, args=call.args, kind="invalid", problem=text)


def problems_of(call: RawCall, tools: Sequence[ToolDef]) -> tuple[Problem, ...]:
    """Everything that is wrong with one call; empty where it may run."""
    tool = next((tool for tool in tools if tool.name == call.name), None)
    if tool is None:
        return (_unknown(call.name, [tool.name for tool in tools]),)
    args = call.args if isinstance(call.args, dict) else _decoded(call.args)
    if isinstance(args, Problem):
        return (args,)
    try:
        return tuple(problem for error in compiled(tool.schema).iter_errors(args) for problem in _problems(error, tool))
    except ValueError as error:  # not JSON at all: a key that is no string, an unknown type, too deeply nested
        return (Problem("mistyped", "$", _short(str(error))),)


def _fits(tool: ToolDef, args: dict[str, Any]) -> bool:
    try:
        return compiled(tool.schema).is_valid(args)
    except ValueError:  # `problems_of` says what it is
        return False


def _decoded(text: str) -> dict[str, Any] | Problem:
    """Arguments that came as text; none at all are no arguments."""
    try:
        return _object(msgspec.json.decode(text))  # takes nothing that json refuses, in a tenth of its time
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        pass  # json takes more, and says what is wrong and where
    try:
        return _object(json.loads(text or "{}"))
    except json.JSONDecodeError as error:
        return Problem("malformed-json", "$", f"the arguments are not JSON: {error}")
    except RecursionError:
        return Problem("malformed-json", "$", "the arguments are nested too deeply")


def _object(args: Any) -> dict[str, Any] | Problem:
    if not isinstance(args, dict):
        return Problem("mistyped", "$", "the arguments must be an object")
    return cast("dict[str, Any]", args)


def _unknown(name: str, names: list[str]) -> Problem:
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    advice = f"Did you mean {' or '.join(close)}?" if close else f"There are: {', '.join(names[:_MOST_NAMES])}."
    return Problem("unknown-tool", "$", f"there is no tool {_short(name)!r}. {advice}")


def _problems(error: Any, tool: ToolDef) -> Iterator[Problem]:
    path = _path(error.instance_path)
    match error.kind.name:
        case "required":
            yield Problem("missing", f"{path}.{error.kind.property}", "is required, but missing")
        case "additionalProperties" | "unevaluatedProperties":
            known = list(tool.schema.get("properties", {})) if path == "$" else []
            allowed = f"; there are: {', '.join(known[:_MOST_NAMES])}" if known else ""
            for name in error.kind.unexpected:
                yield Problem("extra", f"{path}.{_short(name)}", f"is not an argument{allowed}")
        case "type":
            yield Problem("mistyped", path, _short(error.message))
        case _:
            yield Problem("refused", path, _short(error.message))


def _path(parts: list[str | int]) -> str:
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{_short(part)}" for part in parts)


def _short(text: str) -> str:
    """Both ends of a long text: what it begins with, and what is wrong with it."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"
