"""The rules of children (FR-22): when a fork may begin, what it may use, how the parent parks on it, and what is counted of it.

fork ──► intended (reserved) ──► runs, an execution of its own ──► used (settled) ──► ended: the call has its result
                ▲                                                        ├─► waits for a person or a quota: the parent is suspended
                └────────────────── answered, woken ─────────────────────┴─► asks the parent's agent: the call has the question

An agent has one child at a time. Its state here is O(1): the account of the one at work, and the names of all.
"""

from __future__ import annotations

from treadle.core.child_events import ChildEnded, ChildIntended, ChildUsed, ChildWoken, ParentSaid
from treadle.core.digests import child_id
from treadle.core.endings import is_final
from treadle.core.errors import InvalidStateTransition
from treadle.core.events import Suspended
from treadle.core.lease_events import Held
from treadle.core.messages import ToolCall, ToolResult, ToolsFinished
from treadle.core.usage import NO_USAGE, ZERO_USD, Usage
from treadle.core.values import replace

from . import texts
from .accounts import spend_in_act
from .actions import Action, Allowance, EndChild, Record, RunChild
from .marks import mark_of
from .states import ChildAccount, LoopState

FORK, ANSWER = "fork", "answer_child"
MOST_CHILDREN = 64  # of one execution


# ---- what is next


def due(state: LoopState, call: ToolCall, key: str) -> Action:
    """What comes next of a call that forks, or answers, a child."""
    account = state.child
    args = call.args if isinstance(call.args, dict) else {}
    if account is not None and account.call == key:
        if account.running:
            return RunChild(key=key, call=call, allowance=allowance(state))
        return _intended(state, key, account.child, account.name)
    if call.name == ANSWER:
        if account is None or not account.asks:
            return _refused(state, call, texts.NO_CHILD_ASKS)
        return _intended(state, key, account.child, account.name)
    if account is not None:
        return _refused(state, call, texts.child_asks_first(account.name))
    if len(state.children) >= MOST_CHILDREN:
        return _refused(state, call, texts.too_many_children(MOST_CHILDREN))
    if _used_up(allowance(state)):
        return _refused(state, call, texts.NOTHING_LEFT_TO_FORK)
    return _intended(state, key, child_id(state.step_exec_id, key), str(args.get("child", "")))


def left(state: LoopState) -> Action | None:
    """What becomes of a child that still asks when act is over, or when its parent has ended for good."""
    account = state.child
    if account is None or not (state.phase == "evaluate" or is_final(state.status, state.code)):
        return None
    return EndChild(child=account.child)


def allowance(state: LoopState) -> Allowance:
    """The most that the child may have used in all: what has been counted of it, and all that its parent has left."""
    account = state.child or ChildAccount()
    limits, policy, total, act = state.settings.limits, state.settings.act_policy, state.total, state.act
    spent = account.usage + account.in_doubt
    turns = [
        cap - used + account.turns
        for cap, used in ((limits.max_turns, total.turns), (policy.max_turns, act.turns))
        if cap is not None
    ]
    usd = [
        max(ZERO_USD, cap - (used.usage + used.in_doubt).cost_usd) + spent.cost_usd
        for cap, used in ((limits.max_cost_usd, total), (policy.max_cost_usd, act))
        if cap is not None
    ]
    us = [
        cap - used.us
        for cap, used in ((limits.max_duration_us, total), (policy.max_duration_us, act))
        if cap is not None
    ]
    tokens = None
    if limits.max_tokens is not None:
        tokens = max(0, limits.max_tokens - (total.usage + total.in_doubt).tokens) + spent.tokens
    return Allowance(
        turns=max(0, min(turns)) if turns else None,
        usd=min(usd) if usd else None,
        tokens=tokens,
        us=max(0, min(us)) if us else None,
    )


def held(state: LoopState) -> tuple[Held, ...]:
    """What a child of this loop must not exceed: what the loop may touch now, and those above it."""
    return (Held(ceiling=state.settings.ceiling, leases=state.carried.leases), *state.above)


def may_yield(state: LoopState) -> bool:
    """Whether another owner can go on from here, nothing being in doubt: a call waits for a child, and that rests."""
    account = state.child
    return account is not None and not account.running and not state.agent.running


def _used_up(room: Allowance) -> bool:
    return room.turns == 0 or room.tokens == 0 or room.us == 0 or (room.usd is not None and room.usd <= 0)


def _intended(state: LoopState, key: str, child: str, name: str) -> Record:
    room = allowance(state)
    spent = NO_USAGE if state.child is None else state.child.usage + state.child.in_doubt
    reserve = Usage(
        cost_usd=ZERO_USD if room.usd is None else room.usd - spent.cost_usd,
        input_tokens=0 if room.tokens is None else room.tokens - spent.tokens,
    )
    return Record(event=ChildIntended(call=key, child=child, name=name, reserve=reserve))


def _refused(state: LoopState, call: ToolCall, why: str) -> Record:
    text = f"Not run: {why}"
    result = ToolResult(id=call.id, content=text, status="not-run", mark=mark_of(call, text))
    return Record(event=ToolsFinished(parent=state.agent.leaf or 0, results=(result,), us=0))


# ---- what happened


def intended(state: LoopState, e: ChildIntended) -> LoopState:
    """Its parent's room is reserved for it."""
    account = state.child
    if account is None:
        account = ChildAccount(child=e.child, name=e.name)
    elif account.child != e.child or account.running:
        raise InvalidStateTransition(f"child {account.child}", f"child {e.child}")
    known = state.children if e.child in dict(state.children) else (*state.children, (e.child, e.name))
    return replace(state, child=replace(account, call=e.call, reserve=e.reserve, running=True), children=known)


def used(state: LoopState, e: ChildUsed) -> LoopState:
    """Settled: what it really used is on its parent's accounts, in act, and the rest is free again."""
    account = state.child
    if account is None or account.child != e.child:
        raise InvalidStateTransition("no such child", f"use of {e.child}")
    state = spend_in_act(state, turns=e.turns, usage=e.usage, in_doubt=e.in_doubt)
    account = replace(
        account,
        reserve=NO_USAGE,
        running=False,
        asks=e.asks,
        turns=account.turns + e.turns,
        usage=account.usage + e.usage,
        in_doubt=account.in_doubt + e.in_doubt,
    )
    return replace(state, child=account)


def answered(state: LoopState, calls: tuple[ToolCall, ...], key: str) -> LoopState:
    """The call has its result: the child is over, unless it put a question."""
    account = state.child
    if account is None or account.asks or account.call != key or not any(call.kind == "fork" for call in calls):
        return state
    return replace(state, child=None)


def suspended(state: LoopState, e: Suspended) -> LoopState:
    """The child waits, and its parent with it. An answer that went down before is used up."""
    if e.kind == "quota":
        return replace(state, pending=e, answer=None, status="paused", code="quota")
    code = "question" if e.kind == "question" else "approval"
    return replace(state, pending=e, answer=None, status="waiting-input", code=code)


def woken(state: LoopState, e: ChildWoken) -> LoopState:
    """Look at the child again."""
    if state.pending is None or state.pending.child != e.child or state.pending.id != e.id:
        raise InvalidStateTransition("not waiting for it", f"woken by {e.child}")
    return replace(state, pending=None, status="running", code="")


def ended(state: LoopState, e: ChildEnded) -> LoopState:
    """It is no longer its parent's business."""
    if state.child is None or state.child.child != e.child:
        raise InvalidStateTransition("no such child", f"end of {e.child}")
    return replace(state, child=None)


def told_by_parent(state: LoopState, e: ParentSaid) -> LoopState:
    """A child's limits are what its parent can spare now, and its leases no more than those above it have."""
    limits = replace(
        state.settings.limits,
        max_turns=e.max_turns,
        max_cost_usd=e.max_cost_usd,
        max_tokens=e.max_tokens,
        max_duration_us=e.max_duration_us,
    )
    return replace(state, parent=e.forked_by, above=e.above, settings=replace(state.settings, limits=limits))


def forked_away(state: LoopState) -> LoopState:
    """Of a fork of the parent itself: the child belongs to the other one; the call that wanted it begins one anew."""
    pending = state.pending
    if pending is not None and pending.child:
        state = replace(state, pending=None, status="running", code="")
    return replace(state, child=None, children=(), parent="")


FOLD = {
    ChildIntended: intended,
    ChildUsed: used,
    ChildWoken: woken,
    ChildEnded: ended,
    ParentSaid: told_by_parent,
}
