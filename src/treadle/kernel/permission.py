"""An agent asks for leave: a durable gate, and the lease that a person's yes makes of it (FR-12)."""

from __future__ import annotations

from treadle.core.errors import InputError
from treadle.core.events import Suspended, ToolsFinished
from treadle.core.lease_events import LeaseChanged
from treadle.core.messages import ToolCall, ToolResult
from treadle.core.values import replace

from . import texts
from .actions import Action, Record
from .leases import REQUEST, Lease, lacking_above, parse, with_lease, within
from .states import LoopState


def ask_for_leave(state: LoopState, call: ToolCall, key: str) -> Action | None:
    """What comes next of a `request_permission`; None: it is another call."""
    if call.name != REQUEST or state.phase != "act":
        return None
    args = call.args if isinstance(call.args, dict) else {}
    capability, reason = str(args.get("capability", "")), str(args.get("reason", ""))
    if (answer := state.answer) is not None:
        if answer.decision == "approve" and all(lease.id != key for lease in state.carried.leases):
            return Record(event=_granted(capability, str(args.get("scope") or "loop"), key, answer.actor, answer.at_us))
        return _told(state, call, texts.answered(answer))
    try:
        parse(capability)
    except InputError as error:
        return _told(state, call, f"argument error: {error}", failed=True)
    ceiling = state.settings.ceiling
    if (ceiling is not None and not within(ceiling, capability)) or lacking_above(state.above, capability):
        text = f"permission error: {capability} is beyond what anybody may grant here. Find another way, or finish and say so."
        return _told(state, call, text, failed=True)
    prompt = f"May it have {capability}? It says why: {reason}"
    return Record(event=Suspended(id=f"{key}.lease", kind="approval", prompt=prompt))


def _granted(capability: str, scope: str, key: str, actor: str, at_us: int) -> LeaseChanged:
    scope = scope if scope in ("turn", "step", "loop") else "loop"
    return LeaseChanged(
        id=key,
        op="grant",
        capability=capability,
        scope=scope,
        by="gate",
        actor=actor,
        at_us=at_us,  # type: ignore[arg-type]
    )


def _told(state: LoopState, call: ToolCall, text: str, *, failed: bool = False) -> Record:
    result = ToolResult(id=call.id, content=text, status="error" if failed else "ok")
    return Record(event=ToolsFinished(parent=state.agent.leaf or 0, results=(result,), us=0))


def lease_of(event: LeaseChanged, record: int) -> Lease:
    """The lease that is made by the record with this number."""
    return Lease(
        id=event.id,
        op=event.op,
        capability=event.capability,
        scope=event.scope,
        expires_at_us=event.expires_at_us,
        by=event.actor or event.by,
        record=record,
    )


def lease_changed(state: LoopState, event: LeaseChanged) -> LoopState:
    """The state with one more lease. What was refused before may be tried again."""
    lease = lease_of(event, state.seq + 1)
    agent = state.agent
    if agent.guards.failures:
        agent = replace(agent, guards=replace(agent.guards, failures=()))
    return replace(state, agent=agent, carried=replace(state.carried, leases=with_lease(state.carried.leases, lease)))
