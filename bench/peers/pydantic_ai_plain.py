"""pydantic-ai without durability: one agent run with one tool. A kill loses it, so there is nothing to resume."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from meter import Meter, main
from pydantic_ai import Agent, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RequestUsage, UsageLimits
from workload import result, say

NO_LIMIT = UsageLimits(request_limit=None)
FEE = RequestUsage(input_tokens=100, output_tokens=50)  # given, or the fake model would count the whole history's words


def made(meter: Meter) -> Agent:
    def answer(messages: Any, _info: Any) -> ModelResponse:
        turn = (len(messages) - 1) // 2
        meter.asked(turn)
        if meter.ends and turn >= meter.turns:
            return ModelResponse(parts=[TextPart("done")], usage=FEE)
        return ModelResponse(parts=[TextPart(say(turn)), ToolCallPart("lookup", {"turn": turn})], usage=FEE)

    def lookup(turn: int) -> str:
        """Looks a record up."""
        return result(turn)

    return Agent(FunctionModel(answer), tools=[lookup])


def drive(meter: Meter, _folder: Path, _resuming: bool) -> None:
    ended = made(meter).run_sync("Collect every record.", usage_limits=NO_LIMIT)
    meter.settled(ended.usage().requests)


def many(meter: Meter, _folder: Path) -> Callable[[list[str]], None]:
    agent = made(meter)

    async def run(names: list[str]) -> None:
        await asyncio.gather(*(agent.run("Collect every record.", usage_limits=NO_LIMIT) for _ in names))

    return lambda names: asyncio.run(run(names))


if __name__ == "__main__":
    main(drive, many, resumes=False)
