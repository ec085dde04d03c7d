"""A session of 300 turns by the installed command: compactions, an escalation, guards, and a kill in each of them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest

from support.commandline import CommandLine, Ran, finish
from treadle.app.stores import open_store
from treadle.core.codec import decode
from treadle.core.events import Escalated, GuardTripped
from treadle.core.messages import Compacted, ModelResponded, ToolsFinished
from treadle.core.usage import Usage
from treadle.models.prices import parse_price
from treadle.ports.clock import NO_CRASH_POINTS
from treadle.testing import Fault, ScriptedEndpoint, Turn

TURNS, FIRST_ROUND = 300, 200
STUCK, SILENT = range(60, 64), range(120, 123)  # turns that a guard has something to say of
LOOP = """\
treadle: 1
task: Write the log of the voyage.
control: {max_turns_per_act: 400}
foundation: {window: 24000, compact_at: 0.7, escalate_after: 1, escalate_to: ["openai:large"]}
verify: {check: "test -f log/299.txt"}
"""
DIRECTIVES = {"repeat": "the same call gave the same result", "no-call": "turns in a row without a tool call"}


class Voyage:
    """The model. It goes on from the last step that it is shown, and kills whoever asks in the middle of what is told of here.

    What it kills in has been billed by then, and is never answered.
    """

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None
        self.summaries, self.killed = 0, Counter[str]()

    def __call__(self, body: dict[str, Any]) -> Turn | Fault:
        texts = [str(message["content"]) for message in body["messages"]]
        if "hand-over note" in texts[0]:
            self.summaries += 1
            return self._kill("summary") if self.summaries == 1 else Turn(text="NOTE: the log is being written.")
        for guard, said in DIRECTIVES.items():
            if said in texts[-1].lower() and not self.killed[guard]:
                return self._kill(guard)
        if body["model"] == "large" and not self.killed["escalation"]:
            return self._kill("escalation")
        steps = [int(found) for text in texts for found in re.findall(r"Step (\d+)\.", text)]
        return self._step(max(steps, default=0) + 1)

    def _kill(self, where: str) -> Fault:
        assert self.process is not None
        self.killed[where] += 1
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        return Fault(close_early=True, bill=True)

    def _step(self, number: int) -> Turn:
        said = f"Step {number}. " + "The sea is calm and the wind is fair. " * 10
        if number in (FIRST_ROUND, TURNS):
            return Turn(text=said, calls=[("finish", {"summary": f"{number} steps"})])
        if number in SILENT:
            return Turn(text=said)
        if number in STUCK:
            return Turn(text=said, calls=[("read_file", {"path": "chart.txt"})])
        if number % 5 == 0 or number == TURNS - 1:
            return Turn(text=said, calls=[("write_file", {"path": f"log/{number}.txt", "text": said})])
        return Turn(text=said, calls=[("read_file", {"path": "book.txt", "start": number, "end": number + 12})])


class Session:
    """One execution, driven until it ends by as many processes as it takes."""

    def __init__(self, home: Path, voyage: Voyage, endpoint: ScriptedEndpoint) -> None:
        self.cli, self.voyage, self.kills = CommandLine(home).git(), voyage, 0
        self.cli.write("chart.txt", "here be dragons\n")
        self.cli.write("book.txt", "".join(f"{line}: lorem ipsum dolor sit amet consectetur\n" for line in range(400)))
        self.cli.write("voyage.yaml", LOOP)
        model = ("--model", "openai:small", "--base-url", endpoint.url, "--price", "10,20")
        self._first = ("run", "--loop", "voyage.yaml", *model, "--map-budget", "0", "--json", "-q")

    def drive(self, points: tuple[str, ...]) -> Ran:
        """To its end; each process but the last dies, at the next of these points or where the model kills it."""
        arguments, left = self._first, list(points)
        while True:
            point = left[0] if left and self.voyage.killed["summary"] else ""
            killed = self.voyage.killed.total()
            self.voyage.process = self.cli.start(*arguments, environ={"TREADLE_CRASH_AT": point} if point else {})
            ran = finish(self.voyage.process)
            if ran.code != -signal.SIGKILL:
                assert not left, f"never reached: {left}"
                return ran
            self.kills += 1
            if self.voyage.killed.total() == killed:
                left.pop(0)
            arguments = ("resume", "last", "--json", "-q")


@pytest.mark.slow
@pytest.mark.req("AG-12", "AG-11", "FR-21", "FR-05", "LG-04")
def test_300_turns_with_compactions_escalation_guards_and_kills_end_accepted_with_the_right_accounts(
    tmp_path: Path,
) -> None:
    voyage = Voyage()
    with ScriptedEndpoint(voyage, price=parse_price("10,20")) as endpoint:
        session = Session(tmp_path, voyage, endpoint)
        ran = session.drive(("before-compaction:2", "after-compaction:2"))
        bill = endpoint.bill.charges
    assert ran.code == 0, ran
    document = ran.document
    assert (document["status"], document["code"]) == ("done", "accepted")
    assert (document["rounds"], document["turns_taken"]) == (2, TURNS)
    assert voyage.killed == {"summary": 1, "repeat": 1, "no-call": 1, "escalation": 1}
    assert session.kills == 6
    _accounts(document, [charge.usage for charge in bill], voyage)
    events = _records(session.cli.store_file)
    trips = [event for event in events if isinstance(event, GuardTripped)]
    assert [(trip.guard, trip.response) for trip in trips] == [("repeat", "directive"), ("no-call", "directive")]
    assert [event.model for event in events if isinstance(event, Escalated)] == ["openai:large"]
    assert sum(bool(event.call) for event in events if isinstance(event, Compacted)) == voyage.summaries - 2 >= 3
    asked = [call.id for event in events if isinstance(event, ModelResponded) for call in event.calls]
    assert asked == [result.id for event in events if isinstance(event, ToolsFinished) for result in event.results]


def _accounts(document: Any, bill: list[Usage], voyage: Voyage) -> None:
    """What was counted is what was billed, but for what died unanswered: that is in doubt."""
    usage = document["usage"]
    unanswered = voyage.killed.total() + 1  # killed by the model, and once a summary had come
    assert usage["requests"] == len(bill) - unanswered == TURNS + voyage.summaries - 2
    assert usage["in_doubt_requests"] == unanswered + 1  # and before one was sent: nobody can know
    billed = sum((charge.cost_usd for charge in bill), Decimal(0))
    assert document["cost_usd"] < billed <= document["cost_usd"] + document["in_doubt_usd"]


def _records(store: Path) -> list[Any]:
    """All events of the one execution; the store is sound."""

    async def read() -> list[Any]:
        ledger = await open_store(f"sqlite:///{store}", NO_CRASH_POINTS)
        assert await ledger.verify() == []
        (row,) = await ledger.rows()
        found = [decode(r.kind, r.version, r.body) for r in await ledger.records(row.execution_id)]
        await ledger.close()
        return found

    return anyio.run(read)
