"""How surely and how fast the demo's model gets the kit accepted, and how a chooser does that only guesses.

    demo_rounds.py model 10        ten runs of the model
    demo_rounds.py random 50       fifty of a chooser that takes any of 300 expressions of the model's
    demo_rounds.py --make-pool     has the model write those expressions anew

The demo's own tools, check and conversation in a plain loop. A line of JSON a run, then the sums.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import re
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import httpx

from treadle.core.messages import Message, ModelResponded, Prompted, ToolCall, ToolResult, ToolsFinished
from treadle.core.usage import ZERO_USD, Usage
from treadle.demo import conversation
from treadle.demo.check import KitCheck
from treadle.demo.kit_file import Function, objection
from treadle.demo.state import load
from treadle.demo.toolset import READ, KitTools
from treadle.demo.workspace import lay_out
from treadle.kernel import texts
from treadle.kernel.view import View
from treadle.models.local.process import local_server
from treadle.ports.callback import RoundContext
from treadle.ports.model import Model, ModelRequest, RawCall, Reply
from treadle.ports.toolset import ToolContext

POOL = Path(__file__).parent / "demo_pool.txt"
POOL_SIZE = 300
MAX_TURNS = 60


class Endpoint(Model):
    """The local model by plain HTTP. Each run has a seed of its own, so that it can be had again."""

    name, context_window, max_output_tokens = "local", 8192, conversation.MAX_OUTPUT_TOKENS

    def __init__(self, base_url: str, seed: int) -> None:
        self.chance = random.Random(seed)
        self.http = httpx.AsyncClient(base_url=base_url, timeout=120)

    async def request(self, request: ModelRequest, on_delta: Any = None) -> Reply:
        tools = [{"type": "function", "function": {"name": t.name, "parameters": t.schema}} for t in request.tools]
        body = request.settings | {
            "messages": [{"role": "system", "content": request.static}, *map(_chat, request.view.messages)],
            "tools": tools,
            "tool_choice": request.tool_choice,
            "max_tokens": request.max_output_tokens,
            "seed": self.chance.randrange(2**31),
        }
        response = await self.http.post("/chat/completions", json=body)
        response.raise_for_status()
        answer = response.json()
        choice, counts = answer["choices"][0], answer["usage"]
        calls = [
            RawCall(c["id"], c["function"]["name"], json.loads(c["function"]["arguments"]))
            for c in choice["message"].get("tool_calls") or ()
        ]
        usage = Usage(input_tokens=counts["prompt_tokens"], output_tokens=counts["completion_tokens"], requests=1)
        return Reply(choice["message"]["content"] or "", tuple(calls), usage, choice["finish_reason"])

    def price(self, usage: Usage) -> Decimal:
        return ZERO_USD

    async def close(self) -> None:
        await self.http.aclose()


class Guesser(Model):
    """Knows the form of an answer and nothing of the question."""

    name, context_window, max_output_tokens = "random", 8192, conversation.MAX_OUTPUT_TOKENS

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.pool = POOL.read_text().splitlines()

    async def request(self, request: ModelRequest, on_delta: Any = None) -> Reply:
        tool = request.tools[0]
        args = {key: self._value(schema) for key, schema in tool.schema["properties"].items()}
        return Reply("", (RawCall("guess", tool.name, args),), Usage(requests=1), "tool_calls")

    def _value(self, schema: dict[str, Any]) -> str:
        if "enum" in schema:
            return self.chance.choice(schema["enum"])
        head = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], schema["pattern"][1:]).removesuffix("[^\n]+$")
        names = head[head.index("(") + 1 : head.index(")")].split(", ")
        return head + self.chance.choice(self.pool).replace("$first", names[0]).replace("$last", names[-1])

    def price(self, usage: Usage) -> Decimal:
        return ZERO_USD


def _chat(message: Message) -> dict[str, Any]:
    match message:
        case Prompted():
            return {"role": "user", "content": message.text}
        case ModelResponded():
            function = {"name": message.calls[0].name, "arguments": json.dumps(message.calls[0].args)}
            calls = [{"id": message.calls[0].id, "type": "function", "function": function}]
            return {"role": "assistant", "content": None, "tool_calls": calls}
        case ToolsFinished():
            return {"role": "tool", "tool_call_id": message.results[0].id, "content": message.results[0].content}


class PlainRound(RoundContext):
    """All that the check asks for."""

    def report_usage(self, usage: Usage) -> None: ...

    def report_usage_once(self, receipt: str, usage: Usage) -> None: ...

    async def intend(self, receipt: str, reserve: Usage) -> bool:
        return True

    async def checkpoint(self) -> None: ...

    def started(self, pgid: int, birth: str) -> None: ...


class Run:
    """One run of the loop on a kit of its own."""

    def __init__(self, model: Model, workspace: Path, rounds: int) -> None:
        self.model, self.workspace, self.rounds = model, workspace, rounds
        self.tools, self.check = KitTools(workspace), KitCheck(workspace)
        self.left: list[int] = []  # functions that still fail, a round
        self.failing: list[str] = []  # their names, after the last round
        self.calls = self.refused = 0
        self.usage = Usage()

    async def to_the_end(self) -> bool:
        task = conversation.TASK
        for _ in range(self.rounds):
            await self.act(task)
            verdict = await self.check.check(PlainRound(), "")
            self.failing = re.findall(r"\w+", verdict.feedback)[1:]
            self.left.append(len(self.failing))
            if verdict.accepted:
                return True
            task = f"{conversation.TASK}\n\n{texts.feedback(verdict.feedback)}"
        return False

    async def act(self, prompt: str) -> None:
        messages = [*conversation.examples(), Prompted(parent=None, text=prompt)]
        for turn in range(MAX_TURNS):
            reply = await self.ask(messages)
            self.calls, self.usage = self.calls + 1, self.usage + reply.usage
            if not reply.calls:
                messages.append(Prompted(parent=None, text=texts.no_call(1, 3, "act")))
                continue
            raw = reply.calls[0]
            call = ToolCall(id=raw.id, name=raw.name, args=raw.args)
            if call.name == "finish":
                return
            output = await self.do(call, f"{len(self.left)}.{turn}", messages)
            self.refused += output.startswith("Refused")

    async def ask(self, messages: list[Message]) -> Reply:
        view = View()
        view.reset((i, message, b"") for i, message in enumerate(messages))
        request = ModelRequest(
            static=conversation.STATIC,
            dynamic="",
            view=view,
            tools=self.tools.tools(),
            tool_choice="required",
            max_output_tokens=conversation.MAX_OUTPUT_TOKENS,
            key="",
            settings={"temperature": conversation.TEMPERATURE},
        )
        return await self.model.request(request)

    async def do(self, call: ToolCall, key: str, messages: list[Message]) -> str:
        """Runs the call and adds it, with its result, to the messages."""
        output = await self.tools.run(call, ToolContext(key=key, started=lambda *_: None, output=None))
        said = ModelResponded(parent=0, call="", text="", calls=(call,), usage=Usage(), finish="", us=0)
        result = ToolResult(id=call.id, content=output.content)
        messages += [said, ToolsFinished(parent=0, results=(result,), us=0)]
        return output.content


async def measure(kind: str, seeds: range, rounds: int) -> list[dict[str, Any]]:
    """A row a run."""
    rows: list[dict[str, Any]] = []
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(local_server()) if kind == "model" else ""
        for seed in seeds:
            with tempfile.TemporaryDirectory() as folder:
                workspace = Path(folder) / "kit"
                lay_out(workspace)
                model = Guesser(seed) if kind == "random" else Endpoint(url, seed)
                run, start = Run(model, workspace, rounds), time.monotonic()
                accepted = await run.to_the_end()
                await model.close()
            row = {"kind": kind, "seed": seed, "accepted": accepted, "rounds": len(run.left), "left": run.left}
            row |= {"failing": run.failing} if run.failing else {}
            row |= {"calls": run.calls, "refused": run.refused, "tokens_in": run.usage.input_tokens}
            row |= {"tokens_out": run.usage.output_tokens, "seconds": round(time.monotonic() - start, 1)}
            rows.append(row | {"load": round(os.getloadavg()[0], 1)})
            print(json.dumps(rows[-1]), flush=True)
    return rows


async def make_pool() -> None:
    """What the model writes first for any function of the kit, as often as it does, with exchangeable arguments."""
    pool: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        lay_out(Path(folder))
        async with local_server() as url:
            run = Run(Endpoint(url, 1), Path(folder), 1)
            for name, function in itertools.cycle(load(Path(folder)).kit.items()):
                messages = [*conversation.examples(), Prompted(parent=None, text=conversation.TASK)]
                await run.do(ToolCall(id="read", name=READ, args={"name": name}), name, messages)
                written = [call.args["code"].removeprefix(function.head) for call in (await run.ask(messages)).calls]
                pool += [_exchangeable(function, e.strip()) for e in written if not objection(function, e.strip())]
                if len(pool) >= POOL_SIZE:
                    break
            await run.model.close()
    POOL.write_text("".join(f"{line}\n" for line in pool))


def _exchangeable(function: Function, expression: str) -> str:
    names = function.parameters.split(", ")
    return re.sub(rf"\b{names[0]}\b", "$first", re.sub(rf"\b{names[-1]}\b", "$last", expression))


def report(rows: list[dict[str, Any]]) -> None:
    def mean(values: Any) -> str:
        return f"{statistics.mean(values):.1f}"

    accepted = [row["rounds"] for row in rows if row["accepted"]]
    seconds = [row["seconds"] for row in rows]
    print(
        f"{rows[0]['kind']}: accepted {len(accepted)} of {len(rows)}"
        f" (rounds: mean {mean(accepted or [0])}, most {max(accepted or [0])});"
        f" functions left after round 1: {mean(row['left'][0] for row in rows)},"
        f" at the end: {mean(row['left'][-1] for row in rows)};"
        f" calls: {statistics.median(row['calls'] for row in rows)};"
        f" seconds: median {statistics.median(seconds)}, most {max(seconds)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", nargs="?", choices=["model", "random"])
    parser.add_argument("runs", nargs="?", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=conversation.MAX_ROUNDS)
    parser.add_argument("--make-pool", action="store_true")
    options = parser.parse_args()
    if options.make_pool:
        anyio.run(make_pool)
        return
    for kind, runs in [(options.kind, options.runs)] if options.kind else [("model", 3), ("random", 10)]:
        report(anyio.run(measure, kind, range(options.first_seed, options.first_seed + runs), options.rounds))


if __name__ == "__main__":
    sys.exit(main())
