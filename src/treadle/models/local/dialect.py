"""Calls as text and back, since a tiny model writes usable code as bare lines and next to none inside JSON strings.

    write_function
    def squares(n):
        return [x * x for x in range(1, n + 1)]

Earlier calls of a conversation are shown to the model in the form that it is made to write.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, cast

from .request import ChatMessage
from .schema import Function, Schema, as_text, listed

_ROLES = {"developer": "system", "tool": "user", "function": "user"}
_KINDS: dict[str, type | tuple[type, ...]] = {"integer": int, "number": (int, float), "boolean": bool}


def chat_messages(messages: Sequence[ChatMessage], offered: Sequence[Function]) -> list[dict[str, str]]:
    """The conversation in roles that the model knows: calls are what the assistant said, results what the user said."""
    return [
        {"role": _ROLES.get(message.role, message.role), "content": _content(message, offered)} for message in messages
    ]


def call_text(name: str, arguments: str, offered: Sequence[Function] = ()) -> str:
    """A call as text. `arguments` is JSON; what is no JSON object is shown as it is."""
    try:
        parsed: object = json.loads(arguments or "{}")
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        return f"{name}\n{arguments}"
    args = cast("dict[str, Any]", parsed)
    prefixes = {slot.key: slot.prefix for function in offered if function.name == name for slot in function.slots}
    if not prefixes and len(args) == 1 and isinstance(next(iter(args.values())), str):
        prefixes = dict.fromkeys(args, "\n")
    return name + "".join(prefixes.get(key, f"\n{key}: ") + as_text(value) for key, value in args.items())


def read_call(text: str, offered: Sequence[Function]) -> tuple[str, dict[str, Any]] | None:
    """(name, arguments) of the call that this text is; None where it is none, or was cut short."""
    for function in offered:
        if text == function.name or text.startswith(function.name + "\n"):
            arguments = _read_arguments(text[len(function.name) :], function)
            return None if arguments is None else (function.name, arguments)
    return None


def _content(message: ChatMessage, offered: Sequence[Function]) -> str:
    calls = [call_text(call.function.name, call.function.arguments, offered) for call in message.tool_calls or ()]
    return "\n\n".join([message.text, *calls] if message.text or not calls else calls)


def _read_arguments(rest: str, function: Function) -> dict[str, Any] | None:
    written = _written_values(rest, function)
    if written is None or any(slot.required and slot.key not in written for slot in function.slots):
        return None
    arguments: dict[str, Any] = {}
    for slot in function.slots:
        if slot.key in written:
            values = [value for choice in slot.choices for value in _read_value(written[slot.key], choice)]
            if not values:
                return None
            arguments[slot.key] = values[0]
    return arguments


def _written_values(rest: str, function: Function) -> dict[str, str] | None:
    """What stands under the tool's name, by argument."""
    if not rest:
        return {}
    if len(function.slots) == 1 and function.slots[0].prefix == "\n":
        return {function.slots[0].key: rest[1:]}
    keys = "|".join(re.escape(slot.key) for slot in function.slots)
    before, *pieces = re.split(rf"\n({keys}): ", rest) if keys else [rest]
    return None if before else dict(zip(pieces[::2], pieces[1::2], strict=True))


def _read_value(written: str, choice: Schema) -> list[Any]:
    """The value that this text is under a simple schema; empty where it is none."""
    values = listed(choice)
    if values is not None:
        return [value for value in values if as_text(value) == written]
    if choice["type"] == "string":
        return [written]
    try:
        value = json.loads(written)
    except ValueError:
        return []
    wrong_bool = isinstance(value, bool) and choice["type"] != "boolean"
    return [value] if isinstance(value, _KINDS[choice["type"]]) and not wrong_bool else []
