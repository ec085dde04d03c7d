"""Secrets that enter a workflow are in no record, and what a callback is given is what is stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from support.places import Place
from treadle.app.workflows import Decision
from treadle.core.redaction import MARK, redact_json
from treadle.ports.callback import accept, reject
from treadle.ports.task import QuotaReached
from treadle.spec.workflows import Asks, LoopTask, Task, Workflow

SECRET = "hunter2-correct-horse"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("DEPLOY_PASSWORD", SECRET)
    return Place("sqlite", tmp_path)


@pytest.mark.req("SE-01")
def test_no_way_into_a_workflow_stores_a_secret(place: Place) -> None:
    seen: list[Any] = []

    async def first(ctx: Any) -> dict[str, str]:
        seen.append(ctx.input)
        return {"said": f"the key is {SECRET.upper()}", SECRET: "as a key"}

    async def attempt(ctx: Any, feedback: str | None) -> list[str]:
        seen.append(feedback)
        return [f"candidate {SECRET}"]

    async def check(ctx: Any, candidate: list[str]) -> Any:
        seen.append(candidate)
        if ctx.round == 1:
            return reject(f"not {SECRET}", evidence=f"log {SECRET}")
        return accept(evidence=f"log {SECRET}")

    async def asks(ctx: Any) -> Any:
        if ctx.interaction.answer is None:
            await ctx.interaction.save({"saved": SECRET})
            await ctx.interaction.suspend(f"Is {SECRET} right?", {"asked": SECRET})
        if ctx.quota is None:
            raise QuotaReached(f"no more for {SECRET}", conversation=[SECRET])
        seen.append((ctx.interaction.state, ctx.quota.conversation, ctx.value(one)))

    one = Task("one", first)
    tasks = [
        one,
        LoopTask("two", attempt, check, max_rounds=2, after=[one]),
        Task("three", asks, after=[one], interaction=Asks()),
    ]
    flow = Workflow("secrets", tasks)
    waiting = place.run(flow, {"url": f"https://me:{SECRET}@example.org"})
    (question,) = waiting.questions
    assert question["prompt"] == f"Is {MARK} right?"
    yes = Decision(
        execution_id=waiting.execution_id,
        task="three",
        request_id=question["request_id"],
        decision="answer",
        actor="me",
        text="yes",
    )
    assert place.resume(flow, decisions=[yes]).code == "quota"
    result = place.resume(flow)
    assert result.status == "done", result.document
    assert SECRET not in str(seen).lower()
    assert SECRET not in str(result.outputs).lower()
    assert ({"url": f"https://me:{MARK}@example.org"}, None, [f"candidate {MARK}"], f"not {MARK}") == (
        seen[0],
        *seen[1:4],
    )

    async def stored() -> str:
        ledger = await place.open()
        records = await ledger.records(waiting.execution_id)
        suspended = await ledger.suspensions(waiting.execution_id)
        await ledger.close()
        return str([record.body for record in records]) + str(suspended)

    assert SECRET not in anyio.run(stored).lower()


@pytest.mark.req("SE-01")
def test_cleaned_json_is_json_wherever_the_secret_stands() -> None:
    def break_it(text: str) -> str:
        return text.replace('x","y', MARK).replace("secret", MARK)

    assert redact_json('["x","y"]', break_it) == f'["{MARK}"]'
    cut = redact_json('{"secret":["x",true,"y"]}', lambda text: text.replace('secret"', MARK))
    assert json.loads(cut) == {"secret": ["x", True, "y"]}
    assert redact_json('{"a":["secret",1,null]}', break_it) == f'{{"a":["{MARK}",1,null]}}'
    assert redact_json('["a"]', break_it) == '["a"]'
    breaks_what_is_whole = redact_json(
        '{"secret":["x","y"]}', lambda text: text.replace('"x"', "").replace("secret", MARK)
    )
    assert json.loads(breaks_what_is_whole) == {MARK: ["x", "y"]}, "a key is cleaned as well"
