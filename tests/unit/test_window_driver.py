"""Compaction of a driven loop: by pressure, by the hard clamp, after a refusal; what it costs and what is kept."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from support.driving import in_runtime
from support.reading import NOTE, TASK, Scribe, is_summary, length, loop, of, records
from treadle import tool
from treadle.app.runtime import Reopening, Runtime
from treadle.app.window import window_now
from treadle.core import events as ev
from treadle.core.codec import decode
from treadle.core.messages import Compacted, ToolsFinished
from treadle.kernel.steering import Compact, Extend
from treadle.kernel.view import View
from treadle.runtime.branch import fill
from treadle.runtime.journal import load_state
from treadle.testing import Fault, Turn, VirtualClock


@pytest.mark.req("AG-12", "AG-13")
def test_a_history_that_outgrows_the_window_is_compacted_and_the_loop_ends_accepted(tmp_path: Path) -> None:
    model = Scribe(60)

    async def test(runtime: Runtime) -> None:
        session = await runtime.start(loop(model), TASK)
        document = await session.run()
        assert (document["status"], document["code"]) == ("done", "accepted"), document
        events = await records(runtime, session.execution_id)
        compactions = of(events, Compacted)
        assert {c.depth for c in compactions} >= {"micro", "auto"}
        assert all(c.after < c.before for c in compactions)
        assert max(length(body) for body in model.seen) < 7_000
        assert all(TASK in str(body["messages"][1:]) for body in model.turns)
        state = session.state
        assert state.window.saved == sum(judged.saved for judged in of(events, ev.CompactionJudged)) > 0
        assert state.window.spent.requests == sum(bool(c.call) for c in compactions) == model.summaries > 0
        assert document["usage"]["requests"] == len(model.bill.charges)
        assert document["cost_usd"] == model.bill.total_usd
        await session.close()

    in_runtime("memory:", tmp_path, test)


@pytest.mark.req("AG-13", "CV-12")
@pytest.mark.parametrize("most", [240, 7])
def test_what_filled_the_window_is_told_turn_by_turn(tmp_path: Path, most: int) -> None:
    async def test(runtime: Runtime) -> None:
        session = await runtime.start(loop(Scribe(40, says="I read on. " * 20)), TASK)
        await session.run()
        found = await window_now(runtime.ledger, session.execution_id, session.state, most_turns=most)
        assert found is not None
        stored = await runtime.ledger.records(session.execution_id)
        sent = {
            r.seq: decode(r.kind, r.version, r.body).usage.input_tokens for r in stored if r.kind == "model.responded"
        }
        assert {one.seq: sum(one.kinds.values()) for one in found.turns}.items() <= sent.items(), "as it was counted"
        assert found.turns[-1].seq == max(sent)
        assert min(most, len(sent)) / 2 < len(found.turns) <= min(most, len(sent))
        folded = next(r.seq for r in stored if r.kind == "compacted" and NOTE.encode() in r.body)
        for one in found.turns:
            assert (one.kinds["summaries"] > 0) == (one.seq > folded)
            assert (one.kinds["tool results"] > 0) == (one.seq > min(sent))
        await session.close()

    in_runtime("memory:", tmp_path, test)


@pytest.mark.req("AG-12", "LG-01")
def test_the_state_and_the_conversation_before_a_compaction_can_be_had_again(tmp_path: Path) -> None:
    model = Scribe(40, says="I read on. " * 20)

    async def test(runtime: Runtime) -> None:
        session = await runtime.start(loop(model), TASK)
        await session.run()
        stored = await runtime.ledger.records(session.execution_id)
        at = next(r.seq for r in stored if r.kind == "compacted" and NOTE.encode() in r.body)
        before = (await load_state(runtime.ledger, session.execution_id, at=at - 1)).state
        after = (await load_state(runtime.ledger, session.execution_id, at=at)).state
        old, new = View(), View()
        await fill(old, runtime.ledger, session.execution_id, before.agent.leaf)
        await fill(new, runtime.ledger, session.execution_id, after.agent.leaf)
        first = next(index for index, body in enumerate(model.seen) if is_summary(body))
        texts = [str(message) for message in old.messages]
        assert len(new.messages) < len(old.messages)
        assert sum("I read on" in text for text in texts) == str(model.seen[first - 1]).count("'role': 'assistant'") + 1
        assert NOTE in str(new.messages)
        assert NOTE not in str(old.messages)
        await session.close()

    in_runtime("memory:", tmp_path, test)


class Rereader(Scribe):
    """Once an old page has become a stub it does what the stub says."""

    def _decide(self, body: dict[str, Any]) -> Turn | Fault:
        if not is_summary(body) and not self.asked and (stub := STUB.search(str(body["messages"]))):
            self.asked = stub.group(1)
            return Turn(calls=[("read_output", {"call_id": self.asked})])
        return super()._decide(body)

    asked = ""


STUB = re.compile(r"read_output\(call_id='([^']+@\d+)'\)")


@pytest.mark.req("AG-16")
@pytest.mark.parametrize("compact", ["micro", "full"])
def test_what_a_compaction_took_away_is_read_back_whole(compact: str, tmp_path: Path) -> None:
    model = Rereader(40, says="I read on. " * 25)

    async def test(runtime: Runtime) -> None:
        session = await runtime.start(loop(model, compact=compact), TASK)
        assert (await session.run())["code"] == "accepted"
        assert model.asked
        after = next(body for body in model.seen if model.asked in str(body["messages"][-2].get("tool_calls", "")))
        assert "page 1\n" in after["messages"][-1]["content"]
        assert after["messages"][-1]["content"].count("lorem ipsum dolor sit amet") == 40
        await session.close()

    in_runtime("memory:", tmp_path, test)


@tool(kind="read")
def read_volume(number: int) -> str:
    """A volume: as much as a prompt may hold of one output."""
    return f"volume {number}\n" + "dolor sit amet\n" * 790


VOLUMES = 12


class Librarian(Scribe):
    """Asks for so many volumes at once that they alone are too long."""

    def _decide(self, body: dict[str, Any]) -> Turn | Fault:
        turn = super()._decide(body)
        if isinstance(turn, Turn) and turn.calls and turn.calls[0][0] == "read_page":
            return Turn(calls=[("read_volume", {"number": n}) for n in range(VOLUMES)])
        return turn


@pytest.mark.req("AG-13")
@pytest.mark.parametrize("compact", ["micro", "full"])
def test_a_batch_of_outputs_that_would_overflow_is_cut_before_the_next_request(compact: str, tmp_path: Path) -> None:
    model = Librarian(4)

    async def test(runtime: Runtime) -> None:
        session = await runtime.start(loop(model, read_volume, compact=compact), TASK)
        document = await session.run()
        assert document["code"] == "accepted", document
        events = await records(runtime, session.execution_id)
        made = of(events, Compacted)
        assert made
        if compact == "micro":
            assert {c.depth for c in made} == {"clamp"}
            assert document["usage"]["requests"] == document["turns_taken"]
        assert max(length(body) for body in model.seen) < 7_000
        assert all(len(of(events, ToolsFinished)[n].results) == VOLUMES for n in range(4))
        await session.close()

    in_runtime("memory:", tmp_path, test)


@pytest.mark.req("AG-12", "AG-13")
def test_a_provider_whose_window_is_smaller_than_said_is_believed(tmp_path: Path) -> None:
    """Refused three times, cut once, taken; from then on the window is what the provider took."""
    model = Scribe(60, window=50_000, refuse_over=5_000)

    async def test(runtime: Runtime) -> None:
        session = await runtime.start(loop(model), TASK)
        document = await session.run()
        assert document["code"] == "accepted", document
        events = await records(runtime, session.execution_id)
        assert [c.by for c in of(events, Compacted)].count("overflow") == 1
        assert len(of(events, ev.ModelFailed)) == 3
        assert document["cost_usd"] == model.bill.total_usd
        await session.close()

    in_runtime("memory:", tmp_path, test, clock=VirtualClock())


class Unwilling(Scribe):
    """Once it has refused a request nothing is short enough."""

    def _decide(self, body: dict[str, Any]) -> Turn | Fault:
        found = super()._decide(body)
        if isinstance(found, Fault):
            self.refuse_over = 1
        return found


@pytest.mark.req("AG-12")
def test_what_is_refused_even_after_the_clamp_ends_with_its_own_label(tmp_path: Path) -> None:
    model = Unwilling(60, window=50_000, refuse_over=5_000)

    async def test(runtime: Runtime) -> None:
        session = await runtime.start(loop(model), TASK)
        document = await session.run()
        assert (document["status"], document["code"]) == ("failed", "thrash"), document
        events = await records(runtime, session.execution_id)
        assert [(c.depth, c.by) for c in of(events, Compacted)] == [("clamp", "overflow")]
        assert len(of(events, ev.ModelFailed)) == 4
        await session.close()

    in_runtime("memory:", tmp_path, test, clock=VirtualClock())


@tool(kind="read")
def read_chapter(path: str) -> str:
    """A chapter."""
    return f"{path}\n" + "consectetur adipiscing\n" * 40


class Planner(Scribe):
    """Plans first, then reads chapters."""

    def _decide(self, body: dict[str, Any]) -> Turn | Fault:
        turn = super()._decide(body)
        if not isinstance(turn, Turn) or not turn.calls:
            return turn
        if turn.calls[0][0] == "finish":
            return Turn(calls=[("update_step", {"step": "1", "status": "done"}), *turn.calls])
        if self.read == 1:
            return Turn(calls=[("write_plan", {"steps": [{"title": "Read every chapter"}]})])
        return Turn(calls=[("read_chapter", {"path": f"book/{self.read}.txt"})])


@pytest.mark.req("AG-12")
def test_after_a_full_compaction_task_plan_summary_and_recent_files_are_all_there(tmp_path: Path) -> None:
    model = Planner(12)

    async def test(runtime: Runtime) -> None:
        session = await runtime.start(loop(model, read_chapter, max_turns=11), TASK)
        assert (await session.run())["code"] == "limit"
        await session.close()
        name, before = session.execution_id, len(model.turns)
        await runtime.steer(name, Extend(actor="kim", max_turns=60))
        await runtime.steer(name, Compact(actor="kim", depth="full"))
        again = await runtime.resume(name, loop(model, read_chapter), Reopening())
        document = await again.run()
        assert document["code"] == "accepted", document
        text = str(model.turns[before]["messages"])
        assert TASK in text
        assert NOTE in text
        assert "Read every chapter" in text
        assert "newest first: book/11.txt, book/10.txt, book/9.txt" in text
        assert "'path': 'book/2.txt'" not in text
        assert len(text) < len(str(model.turns[before - 1]["messages"]))
        await again.close()

    in_runtime("memory:", tmp_path, test)
