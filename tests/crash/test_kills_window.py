"""Kills round a compaction: the accounts hold with the summary in them, and the conversation is whole on the new branch."""

from __future__ import annotations

import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from oracle import case, expect, lines
from window_victim import NOTE, PAGES, TASK

from treadle.app.stores import open_store
from treadle.core.codec import decode
from treadle.core.messages import Compacted, ModelResponded, Prompted, ToolsFinished
from treadle.kernel.loop import advance
from treadle.kernel.states import LoopState
from treadle.kernel.view import View
from treadle.ports.clock import NO_CRASH_POINTS
from treadle.ports.ledger import Ledger
from treadle.runtime.branch import fill
from treadle.runtime.journal import load_state

VICTIM = Path(__file__).with_name("window_victim.py")


def judge(folder: Path, document: dict[str, Any]) -> None:
    expect((document["status"], document["code"]) == ("done", "accepted"), f"ended {document}")
    expect(document["turns_taken"] == PAGES + 1, f"{document['turns_taken']} turns: a summary is none")
    read = [note["page"] for note in lines(folder / "notes.jsonl")]
    expect(len(set(read)) == len(read), f"done twice: {read}")
    bill = lines(folder / "window.bill")
    counted, doubt = document["usage"]["requests"], document["usage"]["in_doubt_requests"]
    expect(counted <= len(bill) <= counted + doubt, f"counted {counted}, billed {len(bill)}, in doubt {doubt}")
    money = sum((Decimal(line["cost_usd"]) for line in bill), Decimal(0))
    cost, in_doubt = Decimal(str(document["cost_usd"])), Decimal(str(document["in_doubt_usd"]))
    expect(cost <= money <= cost + in_doubt, f"counted ${cost}, billed ${money}, in doubt ${in_doubt}")
    anyio.run(_branches, folder, PAGES - len(read))


async def _branches(folder: Path, undone: int) -> None:
    ledger = await open_store(f"sqlite:///{folder / 't.db'}", NO_CRASH_POINTS)
    expect(not await ledger.verify(), "the store is damaged")
    state, summaries, unknown = LoopState(), 0, 0
    for record in await ledger.records("window"):
        event = decode(record.kind, record.version, record.body)
        if isinstance(event, Compacted):
            before = await _conversation(ledger, state.agent.leaf)
            state = advance(state, event)
            travelled = await load_state(ledger, "window", at=record.seq)
            expect(state == travelled[0], f"the state as of {record.seq} is another one")
            after = await _conversation(ledger, state.agent.leaf)
            expect(sum(after.weights) < sum(before.weights), f"the compaction {record.seq} saved nothing")
            summaries += bool(event.call)
            expect(not event.call or _texts(after).count(NOTE) == 1, "the summary does not stand in the new branch")
        else:
            state = advance(state, event)
        if isinstance(event, ToolsFinished):
            unknown += sum(result.status == "unknown" for result in event.results)
    expect(undone <= unknown, f"{undone} calls were never made, {unknown} are said to be unknown")
    expect(summaries >= 2, f"{summaries} summaries")
    expect(state == (await load_state(ledger, "window"))[0], "refolding gives another state")
    await ledger.close()


async def _conversation(ledger: Ledger, leaf: int | None) -> View:
    """As the model sees it there, checked: the task first, every call followed by its result."""
    view = View()
    await fill(view, ledger, "window", leaf)
    expect(isinstance(view.messages[0], Prompted) and TASK in view.messages[0].text, "the task is gone")
    waiting: list[str] = []
    for message in view.messages:
        if isinstance(message, ToolsFinished):
            expect([result.id for result in message.results] == waiting, "a result without its call")
            waiting = []
        else:
            expect(not waiting, f"calls without results: {waiting}")
            waiting = [call.id for call in message.calls] if isinstance(message, ModelResponded) else []
    return view


def _texts(view: View) -> str:
    return "\n".join(message.text for message in view.messages if isinstance(message, Prompted))


@pytest.mark.req("AG-12", "LG-03", "LG-04")
@pytest.mark.parametrize("crash", ["before-compaction:1", "after-compaction:1", "after-compaction:2"])
def test_a_kill_while_a_summary_is_paid_for_leaves_it_in_doubt_and_asks_anew(crash: str, tmp_path: Path) -> None:
    def judged(folder: Path, document: dict[str, Any]) -> None:
        judge(folder, document)
        expect(document["usage"]["in_doubt_requests"] >= 1, "the summary that was in flight is not in doubt")

    assert case(tmp_path / "case", (crash,), trial=(VICTIM, judged)) == (1, "")


@pytest.mark.req("AG-12", "LG-03")
@pytest.mark.parametrize("seed", range(2))
def test_kills_at_random_instants_of_a_compacted_run_lose_nothing(seed: int, tmp_path: Path) -> None:
    points = ("ledger.after-commit:60", "ledger.in-transaction:40")
    _, fault = case(tmp_path / "case", points, random_kills=2, seed=seed, trial=(VICTIM, judge))
    assert fault == ""
