"""The tools that steer the conversation itself: ask_person and finish, which the engine acts on, and read_output."""

from __future__ import annotations

from treadle.core.errors import ToolError
from treadle.core.messages import ToolCall
from treadle.ports.model import ToolDef
from treadle.ports.toolset import ToolContext, ToolOutput, Toolset

from .arguments import optional_int, optional_text, text
from .definitions import CONTROL_TOOLS

_MOST_LINES = 400
_MOST_CHARACTERS = 40_000


class ControlTools(Toolset):
    """ask_person, finish, read_output."""

    def tools(self) -> tuple[ToolDef, ...]:
        return CONTROL_TOOLS

    def touches(self, call: ToolCall) -> tuple[str, ...]:
        return ()

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        if call.name != "read_output":
            raise ToolError("execution", f"{call.name} is acted on by the engine, not run as a tool")
        call_id = text(call, "call_id")
        whole = await context.output(call_id)
        start, end = optional_int(call, "start"), optional_int(call, "end")
        return ToolOutput(excerpt(whole, start=start, end=end, search=optional_text(call, "search")))


def excerpt(whole: str, *, start: int | None, end: int | None, search: str | None) -> str:
    """Numbered lines of an output, as many as fit. ToolError("argument") where there are none such."""
    lines = whole.splitlines()
    first, last = start or 1, end or len(lines)
    if first > max(len(lines), 1) or last < first:
        raise ToolError("argument", f"the output has {len(lines):,} lines", hint="Give 1 <= start <= end within it.")
    wanted = search.casefold() if search is not None else ""
    numbered = [(n, line) for n, line in enumerate(lines[first - 1 : last], first) if wanted in line.casefold()]
    if not numbered:
        return (
            f"[no line of {first:,}-{min(last, len(lines)):,} holds {search!r}]" if lines else "[the output is empty]"
        )
    shown: list[str] = []
    room = _MOST_CHARACTERS
    for number, line in numbered[:_MOST_LINES]:
        row = f"{number}: {line}"
        if len(row) > room:
            shown += [row[:room] + " [line clipped]"] if not shown else []
            break
        shown.append(row)
        room -= len(row) + 1
    if left := len(numbered) - len(shown):
        shown.append(f"[and {left:,} more of {len(lines):,} lines: read on from line {numbered[len(shown)][0]}]")
    return "\n".join(shown)
