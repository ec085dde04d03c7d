"""Compaction of a driven loop: by pressure, by a person, after a refusal; what it costs, what is kept, and what failure leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.driving import in_runtime
from treadle import Agent, Loop, accept, tool
from treadle.app.runtime import Runtime
from treadle.core.codec import decode
from treadle.core.messages import Compacted
from treadle.models.prices import parse_price
from treadle.testing import Fault, ScriptedModel, Turn

NOTE = "NOTE: module a.py was read; the cause is in parse()."
SUMMARY = "hand-over note"


@tool(kind="read")
def read_page(number: int) -> str:
    """A page of text."""
    return f"page {number}\n" + "lorem ipsum dolor sit amet\n" * 40


class Scribe(ScriptedModel):
    """Reads pages until it has read so many, then finishes; counts as a tokenizer of four bytes a token would."""

    def __init__(self, pages: int, *, window: int = 8_000, note: Any = None, says: str = "") -> None:
        self.pages, self.read, self.seen = pages, 0, []
        self.notes = note if note is not None else Turn(text=NOTE)
        self.says = says

        def decide(body: dict[str, Any]) -> Turn | Fault:
            self.seen.append(body)
            if SUMMARY in body["messages"][0]["content"]:
                return self.notes(body) if callable(self.notes) else self.notes
            if self.read >= self.pages:
                return Turn(calls=[("finish", {"summary": "read"})])
            self.read += 1
            return Turn(text=self.says, calls=[("read_page", {"number": self.read})])

        super().__init__(
            decide, price=parse_price("10,20"), context_window=window, max_output_tokens=1_000, name="scripted:scribe"
        )


def loop(model: ScriptedModel, **agent: Any) -> Loop:
    return Loop(name="test", act=Agent(model=model, tools=(read_page,), **agent), evaluate=lambda c, o: accept())


async def records(runtime: Runtime, execution_id: str) -> list[Any]:
    return [decode(r.kind, r.version, r.body) for r in await runtime.ledger.records(execution_id)]


def of(events: list[Any], kind: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


@pytest.mark.req("AG-12", "AG-13")
def test_a_history_that_outgrows_the_window_is_compacted_and_the_loop_ends_accepted(tmp_path: Path) -> None:
    model = Scribe(60)

    async def test(runtime: Runtime) -> None:
        session = await runtime.start(loop(model), "Read all pages of the book.")
        document = await session.run()
        assert (document["status"], document["code"]) == ("done", "accepted"), document
        events = await records(runtime, session.execution_id)
        compactions = of(events, Compacted)
        assert {c.depth for c in compactions} >= {"micro", "auto"}
        assert all(c.after < c.before for c in compactions)
        for body in model.seen:
            assert len(str(body["messages"])) // 4 < 7_000 * 1.2
            if SUMMARY not in body["messages"][0]["content"]:
                assert any("Read all pages of the book." in str(m["content"]) for m in body["messages"])
        state = session.state
        assert state.window.saved > 0
        assert state.window.spent.requests == sum(bool(c.call) for c in compactions) > 0
        assert document["usage"]["requests"] == len(model.bill.charges)
        assert document["cost_usd"] == model.bill.total_usd
        await session.close()

    in_runtime("memory:", tmp_path, test)
