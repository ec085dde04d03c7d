"""The OpenAI Agents SDK: one Runner.run with a file-backed SQLiteSession. A resume is another run over the same session."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from agents import Agent, Model, ModelResponse, Runner, SQLiteSession, Usage, function_tool, set_tracing_disabled
from meter import Meter, main
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from workload import result, say

TEXT = {"type": "output_text", "annotations": []}
FEE = Usage(requests=1, input_tokens=100, output_tokens=50, total_tokens=150)


class Fake(Model):
    def __init__(self, meter: Meter) -> None:
        self.meter = meter

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:
        turn = (len(input) - 1) // 3  # the user's item, then message, call and output
        self.meter.asked(turn)
        done = self.meter.ends and turn >= self.meter.turns
        text: Any = ResponseOutputText(text="done" if done else say(turn), **TEXT)
        message: Any = ResponseOutputMessage(
            id=f"msg_{turn}", type="message", role="assistant", status="completed", content=[text]
        )
        call = ResponseFunctionToolCall(
            type="function_call", call_id=f"call_{turn}", name="lookup", arguments=json.dumps({"turn": turn})
        )
        return ModelResponse(output=[message] if done else [message, call], usage=FEE, response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


@function_tool
def lookup(turn: int) -> str:
    """Looks a record up."""
    return result(turn)


async def one(meter: Meter, folder: Path, name: str, *, resuming: bool = False) -> None:
    agent = Agent(name="bench", instructions="Look each record up.", model=Fake(meter), tools=[lookup])
    session = SQLiteSession(name, folder / "session.db")
    first: Any = [] if resuming else "Collect every record."
    ended = await Runner.run(agent, first, session=session, max_turns=meter.turns + 10)
    meter.settled(ended.context_wrapper.usage.requests)


def drive(meter: Meter, folder: Path, resuming: bool) -> None:
    set_tracing_disabled(True)
    asyncio.run(one(meter, folder, "bench", resuming=resuming))


def many(meter: Meter, folder: Path) -> Callable[[list[str]], None]:
    set_tracing_disabled(True)

    async def run(names: list[str]) -> None:
        await asyncio.gather(*(one(meter, folder, name) for name in names))

    return lambda names: asyncio.run(run(names))


if __name__ == "__main__":
    main(drive, many)
