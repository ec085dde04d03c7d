"""What a run must have left behind: told from the store, the provider's bill and the notes of what was changed."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from treadle.core.codec import decode
from treadle.core.events import Interrupted, ModelIntended
from treadle.core.usage import NO_USAGE, Usage
from treadle.kernel.budget import possibly_charged
from treadle.ledger.postgres import open_postgres
from treadle.runtime.journal import load_state
from treadle.testing import read_bill


class Judgement(NamedTuple):
    """The figures of a run, and what is wrong."""

    faults: list[str]
    counted: int
    billed: int
    in_doubt: int
    takeovers: int
    changes: int


async def judge(url: str, ids: list[str], bill: Path, notes: Path, turns: int) -> Judgement:
    ledger = await open_postgres(url)
    faults = await ledger.verify()
    billed: dict[str, Usage] = defaultdict(lambda: NO_USAGE)
    keys = Counter[str]()
    for charge in read_bill(bill):
        billed[charge.key.partition(":")[0]] += charge.usage
        keys[charge.key] += 1
    faults += [f"{count} requests on the wire for {key}" for key, count in keys.items() if count > 1]
    begun, done, owners = _noted(notes)
    faults += [f"{key} was done {count} times" for key, count in done.items() if count > 1]
    counted = doubted = takeovers = 0
    for name in ids:
        state = (await load_state(ledger, name)).state
        own, doubt = state.total.usage, possibly_charged(state)
        counted, doubted = counted + own.requests, doubted + doubt.requests
        if (state.status, state.code) != ("done", "accepted"):
            faults.append(f"{name} ended as {state.status}, {state.code}: {state.evidence}")
        if state.total.turns != turns:
            faults.append(f"{name} took {state.total.turns} turns, not {turns}")
        for what in ("requests", "input_tokens", "output_tokens", "cost_usd"):
            least, paid = getattr(own, what), getattr(billed[name], what)
            if what == "cost_usd":
                paid = own.cost_usd if paid == Decimal(0) else paid  # the endpoint has no prices
            if not least <= paid <= least + getattr(doubt, what):
                faults.append(f"{name}: {what} counted {least}, billed {paid}, in doubt {getattr(doubt, what)}")
        found = await _takeovers(ledger, name, faults)
        takeovers += found
        if owners[name] - 1 > found:
            faults.append(f"{name} changed hands {owners[name] - 1} times in the world, {found} times on record")
    await ledger.close()
    return Judgement(faults, counted, sum(billed[name].requests for name in ids), doubted, takeovers, len(begun))


async def _takeovers(ledger: Any, name: str, faults: list[str]) -> int:
    """How often it was taken over; epochs only grow, and no request is intended twice."""
    epochs, calls = [1], set[str]()
    for seq, record in enumerate(await ledger.records(name), start=1):
        if record.seq != seq:
            faults.append(f"{name}: record {record.seq} stands where {seq} should")
        event: Any = decode(record.kind, record.version, record.body)
        if isinstance(event, Interrupted) and event.reason == "taken-over":
            if event.epoch <= epochs[-1]:
                faults.append(f"{name}: epoch {event.epoch} after {epochs[-1]}")
            epochs.append(event.epoch)
        if isinstance(event, ModelIntended):
            if event.call in calls:
                faults.append(f"{name}: {event.call} was intended twice")
            calls.add(event.call)
    return len(epochs) - 1


def _noted(notes: Path) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Calls that began, calls that took effect, and how often the process that begins them changed."""
    begun, done, owners, last = Counter[str](), Counter[str](), Counter[str](), dict[str, int]()
    for line in notes.read_text().splitlines() if notes.exists() else ():
        found = json.loads(line)
        if (key := found.get("begin")) is not None:
            begun[key] += 1
            name = key.partition(":")[0]
            if last.get(name) != found["pid"]:
                owners[name] += 1
                last[name] = found["pid"]
        else:
            done[found["done"]] += 1
    return begun, done, owners
