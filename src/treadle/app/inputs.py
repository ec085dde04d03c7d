"""A loop's input: validated at the start and again on resume against today's type (FR-03)."""

from __future__ import annotations

from typing import Any

import msgspec

from treadle.core.errors import InputError, InputMismatch
from treadle.core.tokens import estimate
from treadle.effects.parts import AgentParts, LoopParts
from treadle.spec.definitions import Loop


def _adapter(loop: Loop) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter[Any](loop.input_type or str)


def input_schema(loop: Loop) -> dict[str, Any]:
    """The JSON Schema of the input."""
    if loop.input_type is None or loop.input_type is str:
        return {"type": "string"}
    return _adapter(loop).json_schema()


def dump_input(loop: Loop, value: Any) -> tuple[str, str]:
    """(the validated input as JSON, the task text). InputError names the field."""
    if loop.input_type is None or loop.input_type is str:
        if not isinstance(value, str) or not value.strip():
            raise InputError("The task is empty. Say what is to be done.")
        check_text("task", value)
        return msgspec.json.encode(value).decode(), value
    from pydantic import ValidationError

    adapter = _adapter(loop)
    try:
        validated = adapter.validate_python(value)
    except ValidationError as error:
        raise InputError(f"The input is not what {loop.name} takes: {_first(error)}") from error
    text = adapter.dump_json(validated).decode()
    return text, loop.prompt(validated) if loop.prompt else text


def check_text(what: str, text: str) -> None:
    """InputError where it holds bytes that are no UTF-8, as a terminal, a file or a name of a folder can."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        shown = text[max(0, error.start - 20) : error.end + 20].encode(errors="backslashreplace").decode()
        raise InputError(f"The {what} is not UTF-8 text, at character {error.start + 1}: …{shown}…") from error


def check_room(task: str, parts: LoopParts) -> None:
    """InputError where the task alone is more than a model's window: it is in every request, and nothing of it is ever folded."""
    tokens = estimate(task)
    for agent in (parts.act, parts.evaluate):
        for model in agent.models() if isinstance(agent, AgentParts) else ():
            if tokens > model.context_window:
                raise InputError(
                    f"The task has about {tokens:,} tokens, and the window of {model.name} {model.context_window:,}."
                    " Put it into a file of the workspace and name that in the task, or say how large the window is (--window)."
                )


def check_input(loop: Loop, input_json: str) -> None:
    """InputMismatch, naming the field, where a stored input does not fit today's type."""
    if loop.input_type is None or loop.input_type is str:
        if not isinstance(msgspec.json.decode(input_json), str):
            raise InputMismatch("$: the stored input is no text, and today's definition takes text")
        return
    from pydantic import ValidationError

    try:
        _adapter(loop).validate_json(input_json)
    except ValidationError as error:
        raise InputMismatch(f"The stored input does not fit today's type: {_first(error)}") from error


def _first(error: Any) -> str:
    first = error.errors()[0]
    return f"$.{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
