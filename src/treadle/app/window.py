"""An agent's context window as it stands, projected from the records: what fills it, and what compactions saved and cost (AG-13)."""

from __future__ import annotations

from decimal import Decimal
from math import ceil
from typing import Any, NamedTuple

from treadle.core import events as ev
from treadle.core.codec import decode
from treadle.core.messages import Compacted, Message, ModelResponded, Prompted
from treadle.core.tokens import CHARACTERS
from treadle.core.usage import NO_USAGE, Usage
from treadle.kernel import window
from treadle.kernel.states import LoopState
from treadle.kernel.view import View
from treadle.kernel.window_state import WindowState
from treadle.ports.ledger import Ledger, Record
from treadle.runtime.branch import Piece, pieces
from treadle.runtime.document import iso

MOST_TURNS = 240  # of a long session that are told of: more than a chart has pixels
KINDS: tuple[str, ...] = ("system", "tools", "task", "feedback", "directives", "model", "tool results", "summaries")


class Done(NamedTuple):
    """One compaction, or one that failed."""

    at: str
    depth: str
    by: str
    before: int
    after: int
    cost_usd: Decimal
    failure: str


class Filled(NamedTuple):
    """What filled the window of the request that the response `seq` answers, in tokens as the provider counted them."""

    seq: int
    kinds: dict[str, int]


class Window(NamedTuple):
    """The window of the agent that works, or worked last. Counts are tokens; `by` says where `used` comes from."""

    phase: str
    size: int
    reserved: int
    budget: int
    used: int
    by: str
    kinds: dict[str, int]
    key: str
    compactions: list[Done]
    state: WindowState
    cached: Usage  # of act and evaluate together: what was read from a provider's cache is part of its input
    turns: list[Filled]  # of its conversation, oldest first; of a long one every second, or fourth, …

    @property
    def free(self) -> int:
        """What is left of the budget."""
        return max(0, self.budget - self.used)


async def window_now(
    ledger: Ledger, execution_id: str, state: LoopState, *, most_turns: int = MOST_TURNS
) -> Window | None:
    """None where no request has been intended yet. Of a conversation that is longer, at most `most_turns` turns are told."""
    phase = state.phase if state.phase == "act" or state.judge_window.prompt else "act"
    known = state.window if phase == "act" else state.judge_window
    facts = known.prompt
    if facts is None:
        return None
    leaf = state.agent.leaf if phase == state.phase else state.preserved_leaf
    view = View()
    turns = _fill(view, await pieces(ledger, execution_id, leaf), facts, most_turns)
    overhead = (facts.static_tokens + facts.tools_tokens) * CHARACTERS
    measured = window.measured(view, overhead, known.calibration)
    records = await ledger.records(execution_id)
    return Window(
        phase=phase,
        size=facts.window,
        reserved=facts.reserved,
        budget=window.budget_of(facts, known.ceiling),
        used=measured.used,
        by=measured.by,
        kinds=_scaled(_heavy(view, facts), measured.used),
        key=facts.key,
        compactions=_done(records),
        state=known,
        cached=state.total.usage,
        turns=turns,
    )


def _fill(view: View, found: list[Piece], facts: ev.PromptFacts, most_turns: int) -> list[Filled]:
    """Makes the view of this conversation. What it held at each turn, static parts as they are now."""
    turns: list[Filled] = []
    answered = sum(isinstance(message, ModelResponded) for _, rows in found for _, message, _ in rows)
    every = max(1, ceil(answered / most_turns))
    heavy = _heavy(view, facts)
    for head, rows in found:
        if head is not None:
            view.compact(*head)
            heavy = _heavy(view, facts)
        start = len(view.messages)
        view.extend(rows)
        for (seq, message, _), weight in zip(rows, view.weights[start:], strict=True):
            if isinstance(message, ModelResponded):
                answered -= 1  # the last one is always among them
                if answered % every == 0:
                    turns.append(Filled(seq, _scaled(heavy, message.usage.input_tokens)))
            heavy[_kind(message)] += weight
    return turns


def _heavy(view: View, facts: ev.PromptFacts) -> dict[str, int]:
    """Quarter tokens of each kind, estimated."""
    heavy = dict.fromkeys(KINDS, 0)
    heavy["system"], heavy["tools"] = facts.static_tokens * CHARACTERS, facts.tools_tokens * CHARACTERS
    for message, weight in zip(view.messages, view.weights, strict=True):
        heavy[_kind(message)] += weight
    return heavy


def _scaled(heavy: dict[str, int], used: int) -> dict[str, int]:
    """The same in tokens that add up to what was measured."""
    whole = sum(heavy.values()) or 1
    found = {kind: weight * used // whole for kind, weight in heavy.items()}
    largest = max(found, key=lambda kind: found[kind])
    found[largest] += used - sum(found.values())
    return found


def _kind(message: Message) -> str:
    if isinstance(message, Prompted):
        names = {"summary": "summaries", "task": "task", "person": "task", "feedback": "feedback"}
        return names.get(message.origin, "directives")
    return "model" if isinstance(message, ModelResponded) else "tool results"


def _done(records: list[Record]) -> list[Done]:
    found: list[Done] = []
    for record in records:
        if record.kind not in ("compacted", "compaction.failed"):
            continue
        event = decode(record.kind, record.version, record.body)
        cost = event.usage.cost_usd if isinstance(event, Compacted | ev.CompactionFailed) else NO_USAGE.cost_usd
        if isinstance(event, Compacted):
            found.append(Done(iso(record.at_us), event.depth, event.by, event.before, event.after, cost, ""))
        elif isinstance(event, ev.CompactionFailed):
            failure = event.message or event.reason
            found.append(Done(iso(record.at_us), event.depth, event.by, 0, 0, cost, failure))
    return found


def window_document(execution_id: str, found: Window) -> dict[str, Any]:
    """As JSON; money as Decimal."""
    state = found.state
    return {
        "execution_id": execution_id,
        "phase": found.phase,
        "window": found.size,
        "reserved": found.reserved,
        "budget": found.budget,
        "used": found.used,
        "counted_by": found.by,
        "free": found.free,
        "kinds": found.kinds,
        "turns": [one._asdict() for one in found.turns],
        "cache_key": found.key,
        "cache_read_tokens": found.cached.cache_read_tokens,
        "cache_write_tokens": found.cached.cache_write_tokens,
        "compactions": [one._asdict() for one in found.compactions],
        "breaker": "open" if state.open else "closed",
        "failures": state.failures,
        "without_shrinking": state.futile,
        "tokens_saved": state.saved,
        "summaries": {
            "requests": state.spent.requests,
            "input_tokens": state.spent.input_tokens,
            "output_tokens": state.spent.output_tokens,
            "cost_usd": state.spent.cost_usd,
        },
        "requested": state.wanted.depth if state.wanted else None,
    }
