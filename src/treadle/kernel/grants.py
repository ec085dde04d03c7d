"""Whether a lease was given: what the records before a grant must say for it to be one (FR-12).

A fold takes any grant as it stands. What comes from outside is asked here: an execution that is taken over, an export, a check.
"""

from __future__ import annotations

from treadle.core.errors import InputError, UnfoundedLease
from treadle.core.events import LoopStarted
from treadle.core.lease_events import Lease, LeaseChanged
from treadle.core.values import Value

from .agent import call_key
from .leases import REQUEST, initial
from .loop import advance
from .permission import lease_of
from .states import LoopState
from .steering import ChangeLease, to_event


def unfounded(before: LoopState, event: LeaseChanged) -> str:
    """Why nothing in the state before it leads to this change; empty: somebody who might has made it."""
    if event.by == "person":
        return _not_of_a_person(before, event)
    if event.by == "gate":
        return _not_of_a_gate(before, event)
    return "a definition grants at the start alone"


def _not_of_a_person(before: LoopState, event: LeaseChanged) -> str:
    lasts = None if event.expires_at_us is None else event.expires_at_us - event.at_us
    wish = ChangeLease(
        actor=event.actor,
        op=event.op,
        capability=event.capability,
        scope=event.scope,
        for_us=lasts,
        reason=event.reason,
    )
    try:
        made = to_event(before, wish, event.at_us)
    except InputError as error:
        return str(error)
    return "" if made == event else f"a grant at this record would be {before.seq + 1} by number"


def _not_of_a_gate(before: LoopState, event: LeaseChanged) -> str:
    """A yes of the moment, and the call that asked for just this."""
    answer, agent = before.answer, before.agent
    if answer is None or answer.decision != "approve" or (answer.actor, answer.at_us) != (event.actor, event.at_us):
        return "nobody has said yes to it"
    call = agent.calls[agent.answered] if agent.answered < len(agent.calls) else None
    args = call.args if call is not None and call.name == REQUEST and isinstance(call.args, dict) else {}
    if (
        event.op != "grant"
        or args.get("capability") != event.capability
        or call_key(before, agent.answered) != event.id
    ):
        return "it is not what was asked for"
    return ""


def advance_proven(state: LoopState, event: Value) -> LoopState:
    """Folds as `advance` does. UnfoundedLease for a change of leases that nothing before it leads to."""
    if isinstance(event, LeaseChanged) and (why := unfounded(state, event)):
        raise UnfoundedLease(f"{event.id!r}, {event.capability}: {why}", path=f"$.frame.records[{state.seq}]")
    return advance(state, event)


def check_lease(lease: Lease, before: LoopState, event: Value) -> None:
    """UnfoundedLease where the record that the lease names, with the state before it, does not make it."""
    if isinstance(event, LoopStarted) and lease in initial(event.settings.granted):
        return
    why = f"record {before.seq + 1} does not make it"
    if isinstance(event, LeaseChanged) and lease.record == before.seq + 1:
        why = unfounded(before, event) or ("" if lease_of(event, lease.record) == lease else why)
    if why:
        raise UnfoundedLease(f"{lease.id!r}, {lease.capability}: {why}", path="$.frame.grantedLoopLeases")
