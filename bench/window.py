"""What the window costs a turn: the view of a long history made ready for the next request, and a batch of calls validated.

Processor time of the thread, so that what else the machine does is not counted.

python bench/window.py [--messages 2000] [--repeats 3] [--json FILE]
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from treadle.core.codec import encode
from treadle.core.messages import Compacted, ModelResponded, Prompted, ToolCall, ToolResult, ToolsFinished
from treadle.core.settings import LoopSettings
from treadle.core.usage import Usage
from treadle.core.values import replace
from treadle.effects.compact import CompactEffect
from treadle.effects.model import prompt_facts
from treadle.effects.parts import AgentParts
from treadle.kernel.states import AgentState, LoopState
from treadle.kernel.view import View
from treadle.models.mapping import MappedView
from treadle.ports.clock import NO_CRASH_POINTS
from treadle.ports.model import RawCall
from treadle.testing import ScriptedModel, VirtualClock
from treadle.tools.builtin import WorkspaceTools
from treadle.tools.validation import annotate

OUTPUT = "a line of some output, as tools give it\n" * 30
LIMIT_MS, BATCH_LIMIT_US = 5.0, 50.0


class Turns:
    """One agent's history, a turn at a time; each turn is timed as the engine would do it."""

    def __init__(self, window: int) -> None:
        model = ScriptedModel([], context_window=window, max_output_tokens=8_192)
        tools = WorkspaceTools(Path.cwd())
        parts = AgentParts(model=model, toolset=tools, static="You mend code.\n" * 40)
        self.effect = CompactEffect(parts, str, VirtualClock(), NO_CRASH_POINTS)
        self.facts = prompt_facts(model, parts.static, json.dumps([tool.schema for tool in tools.tools()]).encode())
        self.state = LoopState(settings=LoopSettings(loop_id="bench", role_key="act"), phase="act")
        self.view, self.mapped, self.seq, self.compacted = View(), MappedView("openai:m"), 1, 0
        self._add(Prompted(parent=None, text="Mend it."))

    def _add(self, message: Prompted | ModelResponded | ToolsFinished) -> None:
        self.seq += 1
        self.view.append(self.seq, message, encode(message)[2])
        self.state = replace(self.state, agent=replace(AgentState(step="ready"), leaf=self.seq))

    def turn(self, number: int) -> float:
        """Milliseconds from the results of a turn to the messages of the next request."""
        used = self.view.weight // 4 + 1_000
        call = ToolCall(id=f"call_{number}", name="read_file", args={"path": f"src/file{number}.py"}, kind="read")
        usage = Usage(input_tokens=used, output_tokens=40, requests=1)
        said = ModelResponded(
            parent=self.seq, call=f"t{number}", text="I look.", calls=(call,), usage=usage, finish="tool_call", us=1
        )
        result = ToolResult(id=call.id, content=f"{number}\n{OUTPUT}")
        start = time.thread_time()
        self._add(said)
        self._add(ToolsFinished(parent=self.seq, results=(result,), us=1))
        due = self.effect.due(self.view, self.state, self.facts, "", f"t{number}")
        if isinstance(due, Compacted):
            self.seq += 1
            self.view.compact(self.seq, due)
            self.compacted += 1
        self.mapped.update(self.view)
        return (time.thread_time() - start) * 1_000


def assembling(messages: int, window: int) -> dict[str, Any]:
    """Turn after turn until the history has so many messages; the figures are those of its last fifth."""
    gc.collect()
    turns = Turns(window)
    spans = [turns.turn(number) for number in range(messages // 2)]
    late = spans[-len(spans) // 5 :]
    return {
        "messages": len(turns.view.messages),
        "compactions": turns.compacted,
        "median_ms": round(statistics.median(late), 3),
        "worst_ms": round(max(late), 3),
        "worst_of_all_ms": round(max(spans), 3),
    }


def batch() -> float:
    """Microseconds for a batch of ten valid calls."""
    tools = WorkspaceTools(Path.cwd()).tools()
    one = json.dumps({"path": "src/treadle/kernel/loop.py", "start": 1, "end": 60})
    calls = tuple(RawCall(f"c{number}", "read_file", one) for number in range(10))
    annotate(calls, tools)
    spans: list[float] = []
    for _ in range(300):
        start = time.thread_time()
        annotate(calls, tools)
        spans.append((time.thread_time() - start) * 1_000_000)
    return round(statistics.median(spans), 1)


def main() -> int:
    """Prints one JSON document; 1 where a figure is over its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=2_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    args = parser.parse_args()
    runs = [assembling(args.messages, 4_000_000) for _ in range(args.repeats)]
    small = [assembling(args.messages, 250_000) for _ in range(args.repeats)]
    growing, compacted = (min(some, key=lambda run: run["worst_ms"]) for some in (runs, small))
    batch_us = min(batch() for _ in range(args.repeats))
    found = {"growing": growing, "compacted": compacted, "batch_of_10_us": batch_us}
    text = json.dumps(found, indent=2)
    print(text)
    if args.json:
        Path(args.json).write_text(text + "\n")
    return 1 if growing["worst_ms"] > LIMIT_MS or batch_us > BATCH_LIMIT_US else 0


if __name__ == "__main__":
    sys.exit(main())
