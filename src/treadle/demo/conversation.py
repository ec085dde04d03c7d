"""What the tiny model is told: a system prompt, a worked example, the task. Always the same, so it stays cached."""

from __future__ import annotations

from collections.abc import Iterator

from treadle.core.messages import Message, ModelResponded, Prompted, ToolCall, ToolResult, ToolsFinished
from treadle.core.usage import NO_USAGE

from .kit_file import Function
from .toolset import READ, WRITE, assignment

STATIC = "You write small Python functions."
TASK = "Make the tests pass."
TEMPERATURE = 0.8
MAX_OUTPUT_TOKENS = 64
MAX_ROUNDS = 24

# Other functions than the kit's: they show the form, not the answers.
_SHOWN = (
    ("double", "x", "Twice x.", "x * 2"),
    ("first_letter", "word", "First letter of the word.", "word[0]"),
    ("is_empty", "items", "True if there are no items.", "len(items) == 0"),
)


def examples() -> tuple[Message, ...]:
    """An earlier conversation in which three functions were read and written."""
    messages: list[Message] = [Prompted(parent=None, text=TASK)]
    for name, parameters, doc, expression in _SHOWN:
        function = Function(name, parameters, doc, expression, 0, 0)
        messages += _exchange(f"{READ}-{name}", READ, {"name": name}, assignment(function), len(messages))
        code = {"code": function.head + expression}
        messages += _exchange(f"{WRITE}-{name}", WRITE, code, "Written.", len(messages))
    return tuple(messages)


def _exchange(id: str, tool: str, args: dict[str, str], result: str, parent: int) -> Iterator[Message]:
    call = ToolCall(id=id, name=tool, args=dict(args))
    yield ModelResponded(
        parent=parent, call="example", text="", calls=(call,), usage=NO_USAGE, finish="tool_call", us=0
    )
    yield ToolsFinished(parent=parent + 1, results=(ToolResult(id=id, content=result),), us=0)
