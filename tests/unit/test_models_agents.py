"""Agents of pydantic-ai that act and judge as they are: usage counted, requests announced, failures in our words."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ModelResponse, RunContext, TextPart, ToolCallPart
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RequestUsage

from support.driving import in_runtime
from treadle import Loop, RoundContext, accept, reject
from treadle.app.runtime import Reopening, Runtime
from treadle.core.errors import DefinitionError

FEE = RequestUsage(input_tokens=100, output_tokens=10)


def run(tmp_path: Path, loop: Loop, *, store: str = "memory:") -> dict[str, Any]:
    documents: list[dict[str, Any]] = []

    async def test(made: Runtime) -> None:
        session = await made.start(loop, "Name a colour.")
        documents.append(await session.run())
        await session.close()

    in_runtime(store, tmp_path, test)
    return documents[0]


def speaking(*steps: Any, asked: list[Any] | None = None) -> FunctionModel:
    """Says these, one a request: a text, a call as (tool, arguments), or an error to raise."""
    left = list(steps)

    def answer(messages: Any, info: Any) -> ModelResponse:
        if asked is not None:
            asked.append(messages)
        step = left.pop(0)
        if isinstance(step, Exception):
            raise step
        if step == "judge: yes" or step == "judge: no":
            step = (info.output_tools[0].name, {"accept": step.endswith("yes"), "feedback": "not blue"})
        part = TextPart(step) if isinstance(step, str) else ToolCallPart(*step)
        return ModelResponse(parts=[part], usage=FEE)

    return FunctionModel(answer)


def test_it_acts_with_its_tools_and_every_request_is_counted(tmp_path: Path) -> None:
    agent = Agent(speaking(("colours", {}), "red", ("colours", {}), "blue"))

    @agent.tool_plain
    def colours() -> str:
        return "red, blue"

    loop = Loop(name="l", act=agent, evaluate=lambda c, out: accept() if out == "blue" else reject("not red"))
    document = run(tmp_path, loop)
    assert (document["code"], document["rounds"], document["output"]) == ("accepted", 2, "blue")
    usage = document["usage"]
    assert (usage["requests"], usage["input_tokens"], usage["output_tokens"]) == (4, 400, 40)
    assert usage["in_doubt_requests"] == 0


def test_the_feedback_of_a_rejection_reaches_the_next_run(tmp_path: Path) -> None:
    asked: list[Any] = []
    agent = Agent(speaking("red", "blue", asked=asked))
    run(tmp_path, Loop(name="l", act=agent, evaluate=lambda c, out: accept() if out == "blue" else reject("too warm")))
    assert "too warm" not in str(asked[0])
    assert asked[1][0].parts[0].content == "Name a colour.\n\nThe last attempt was rejected:\ntoo warm"


class Colour(BaseModel):
    name: str
    warm: bool


def test_an_output_with_a_type_arrives_as_json(tmp_path: Path) -> None:
    seen: list[Any] = []
    model = TestModel(custom_output_args={"name": "red", "warm": True})

    def check(ctx: RoundContext, out: Any) -> Any:
        seen.append(out)
        return accept()

    assert run(tmp_path, Loop(name="l", act=Agent(model, output_type=Colour), evaluate=check))["code"] == "accepted"
    assert seen == [{"name": "red", "warm": True}]


def test_it_judges_and_its_usage_is_evaluates(tmp_path: Path) -> None:
    asked: list[Any] = []
    judge = Agent(speaking("judge: no", "judge: yes", asked=asked))
    loop = Loop(name="l", act=lambda ctx, feedback: feedback or "red", evaluate=judge)
    document = run(tmp_path, loop)
    assert (document["code"], document["rounds"], document["output"]) == ("accepted", 2, "not blue")
    assert document["usage"]["requests"] == 2
    assert "Name a colour." in str(asked[0])


def test_deps_may_be_the_context_of_the_round(tmp_path: Path) -> None:
    agent = Agent(speaking(("number", {}), "done"), deps_type=RoundContext)
    rounds: list[int] = []

    @agent.tool
    def number(ctx: RunContext[RoundContext]) -> str:
        rounds.append(ctx.deps.round)
        return "noted"

    assert run(tmp_path, Loop(name="l", act=agent, evaluate=lambda c, o: accept()))["code"] == "accepted"
    assert rounds == [1]


@pytest.mark.parametrize(
    ("error", "word", "doubt"),
    [
        (ModelHTTPError(401, "m", {"error": {"message": "bad key"}}), "ProviderError", 0),
        (ModelHTTPError(502, "m", None), "ProviderError", 1),
    ],
)
def test_a_failure_of_its_provider_is_typed_and_in_doubt_where_it_may_have_been_charged(
    error: Exception, word: str, doubt: int, tmp_path: Path
) -> None:
    document = run(tmp_path, Loop(name="l", act=Agent(speaking(error)), evaluate=lambda c, o: accept()))
    assert document["status"] == "failed"
    assert document["outcome"]["evidence"].startswith(word)
    assert document["usage"]["in_doubt_requests"] == doubt
    assert document["usage"]["requests"] == 0


def test_a_limit_stops_it_before_its_next_request(tmp_path: Path) -> None:
    asked: list[Any] = []
    agent = Agent(speaking(*[("again", {})] * 50, asked=asked), retries=100)

    @agent.tool_plain
    def again() -> str:
        return "once more"

    document = run(tmp_path, Loop(name="l", act=agent, evaluate=lambda c, o: accept(), max_tokens=330))
    assert (document["status"], document["code"], len(asked)) == ("stopped", "limit", 3)


def test_a_model_without_a_price_is_not_asked_under_a_cap(tmp_path: Path) -> None:
    asked: list[Any] = []
    agent = Agent(speaking("red", asked=asked))
    document = run(tmp_path, Loop(name="l", act=agent, evaluate=lambda c, o: accept(), max_cost_usd=Decimal(1)))
    assert (document["status"], asked) == ("stopped", [])


def test_a_request_that_was_under_way_is_in_doubt_and_the_phase_is_run_again(tmp_path: Path) -> None:
    begun = anyio.Event()
    hangs = [True]

    async def answer(messages: Any, info: Any) -> ModelResponse:
        if hangs[0] and len(messages) > 1:
            begun.set()
            await anyio.sleep_forever()
        part = TextPart("blue") if len(messages) > 1 else ToolCallPart("look", {})
        return ModelResponse(parts=[part], usage=FEE)

    agent = Agent(FunctionModel(answer))

    @agent.tool_plain
    def look() -> str:
        return "blue"

    loop = Loop(name="l", act=agent, evaluate=lambda c, o: accept())
    documents: list[Any] = []

    async def test(made: Runtime) -> None:
        session = await made.start(loop, "Name a colour.")
        async with anyio.create_task_group() as group:
            group.start_soon(session.run)
            await begun.wait()
            group.cancel_scope.cancel()
        await session.close()
        hangs[0] = False
        session = await made.resume(session.execution_id, loop, Reopening())
        documents.append(await session.run())
        await session.close()

    in_runtime(f"sqlite:///{tmp_path / 't.db'}", tmp_path, test)
    assert documents[0]["code"] == "accepted"
    assert (documents[0]["usage"]["requests"], documents[0]["usage"]["in_doubt_requests"]) == (3, 1)


@pytest.mark.parametrize(
    ("agent", "said"),
    [(Agent(), "has no model"), (Agent(TestModel(), deps_type=int), "deps of type int")],
)
def test_what_cannot_run_as_it_is_starts_nothing(agent: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=said):
        run(tmp_path, Loop(name="l", act=agent, evaluate=lambda c, o: accept()))
