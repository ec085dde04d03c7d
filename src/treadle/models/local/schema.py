"""Tools as the local model can be offered them: flat objects of strings, numbers, booleans and choices."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .request import Tool, UnsupportedRequest

Schema = Mapping[str, Any]
SIMPLE_TYPES = ("string", "integer", "number", "boolean")


class Slot(NamedTuple):
    """One argument in the text form of a call: what stands before its value, and what the value may be."""

    key: str
    prefix: str
    choices: tuple[Schema, ...]  # any of these simple schemas
    required: bool


class Function(NamedTuple):
    """A tool. A single string argument is written bare, under the tool's name; others as `key: value` lines."""

    name: str
    slots: tuple[Slot, ...]


def functions(tools: Sequence[Tool]) -> tuple[Function, ...]:
    """The tools in their text form. UnsupportedRequest for what has none."""
    return tuple(_function(tool.function.name, tool.function.parameters or {}) for tool in tools)


def as_text(value: object) -> str:
    """An argument as it stands in a call: strings as they are, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def listed(choice: Schema) -> list[Any] | None:
    """The values that a simple schema lists; None where it describes them instead."""
    if "const" in choice:
        return [choice["const"]]
    return choice.get("enum")


def _function(name: str, parameters: Schema) -> Function:
    try:
        choices = {k: tuple(_simple(schema, f"{name}.{k}")) for k, schema in parameters.get("properties", {}).items()}
        required = frozenset(parameters.get("required", ()))
        bare = len(choices) == 1 and all(_is_text(choice) for group in choices.values() for choice in group)
    except (AttributeError, TypeError) as error:
        raise UnsupportedRequest(f"{name}: its parameters are no JSON Schema of an object") from error
    return Function(
        name, tuple(Slot(key, "\n" if bare else f"\n{key}: ", group, key in required) for key, group in choices.items())
    )


def _simple(schema: Schema, path: str) -> Iterator[Schema]:
    """The alternatives of an argument. Null is no alternative: it is what leaving an argument out is for."""
    if options := schema.get("anyOf") or schema.get("oneOf"):
        for option in options:
            yield from _simple(option, path)
        return
    if listed(schema) is not None:
        yield schema
        return
    types = schema.get("type", "string")
    for name in [types] if isinstance(types, str) else types:
        if name in SIMPLE_TYPES:
            yield {**schema, "type": name}
        elif name != "null":
            raise UnsupportedRequest(f"{path}: the local model takes no arguments of type {name}")


def _is_text(choice: Schema) -> bool:
    """Whether the values are strings, which are written as they are."""
    values = listed(choice)
    return choice["type"] == "string" if values is None else all(isinstance(value, str) for value in values)
