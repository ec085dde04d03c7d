"""An execution as the canvas shows it: budgets, guards, calls in hand, plan, turns. All of it folded from the records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from treadle.app.ending import artifact_path, rest_of
from treadle.app.listing import AnyState, Listed, document_of
from treadle.app.waits import documents_inside, with_waits
from treadle.core.codec import decode
from treadle.core.endings import RETRY, ending, is_final
from treadle.core.events import Answered, Suspended
from treadle.core.messages import ModelResponded, ToolCall, ToolsFinished
from treadle.core.plans import check_words
from treadle.core.settings import guard_names
from treadle.kernel.budget import turns_left
from treadle.kernel.loop import advance
from treadle.kernel.plan_standing import completed_count, verified_count
from treadle.kernel.states import LoopState
from treadle.ports.ledger import ExecutionRow, Record

from . import schemas as out
from .studio import Studio
from .wire import LiveState, clipped, live

GUARD_LABELS = {
    "no-call": "no tool call",
    "repeat": "same call again",
    "oscillation": "going round",
    "read-only": "reading only",
    "stagnation": "no effect",
    "same-tree": "same result",
    "oversized": "prompt too long",
    "recovery": "every call failed",
}


def execution(found: dict[str, Any], row: ExecutionRow | None = None, **more: Any) -> out.ExecutionOut:
    """From the document of SV-03."""
    status, code = found["status"], found["code"]
    colour = "blue" if status == "running" else ending(status, code).colour
    if row is not None:
        more = {"kind": row.kind, "created_us": row.created_us, "owner_alive": row.owner_alive, **more}
    return out.ExecutionOut.model_validate({**found, "colour": colour, **more})


def listed(one: Listed) -> out.ExecutionOut:
    """One line of the fleet; its task and output are cut, since there may be hundreds."""
    found = {**one.document, "output": None, "task": one.document.get("task", "")[:200]}
    return execution(found, created_us=one.created_us, owner_alive=one.owner_alive, parent=one.parent)


async def detail(studio: Studio, row: ExecutionRow, state: AnyState) -> out.DetailOut:
    """Everything about one execution but its history."""
    rest = rest_of(row.execution_id, state)
    page = artifact_path(studio.runtime.settings.state_dir, row.execution_id)
    loop = state if isinstance(state, LoopState) else None
    found = document_of(row.execution_id, state)
    found = with_waits(found, (await documents_inside(studio.ledger, found)).get)
    return out.DetailOut(
        execution=execution(found, row),
        head=row.head,
        owner=row.owner,
        here=studio.runs_here(row.execution_id),
        live=live(state) or LiveState(),
        rest=out.RestOut(
            label=rest.label,
            colour=rest.colour,
            why=rest.why,
            next=rest.next,
            artifact=page.read_text(encoding="utf-8") if page.is_file() else None,
        ),
        budgets=budgets(loop) if loop else [],
        guards=guards(loop) if loop else [],
        calls=calls(loop) if loop else [],
        plan=plan(loop) if loop else None,
        suspensions=await _suspensions(studio, row.execution_id),
        settings=msgspec.to_builtins(state.settings),
        definition=_definition(state.definition),
        can=can(state, owned=row.owner_alive),
    )


def can(state: AnyState, *, owned: bool) -> list[str]:
    """What may be asked of it now."""
    if not isinstance(state, LoopState) or is_final(state.status, state.code):
        return []
    found: list[str] = []
    if state.status == "running":
        found += ["pause", "step"] if owned else ["resume", "step"]
    elif state.status == "paused":
        found += ["resume", "step"]
    elif state.pending is not None and state.pending.kind != "quota":
        found += ["answer"] if state.pending.kind == "question" else ["approve", "reject"]
    elif state.status == "failed" and RETRY in ending(state.status, state.code).goes_on_by:
        found.append("retry")
    return [*found, "extend", "cancel"]


def budgets(state: LoopState) -> list[out.BudgetOut]:
    """Every limit with what is used of it; those without a limit as well, since their use is worth knowing."""
    settings, total = state.settings, state.total
    left, cap = turns_left(state) if state.phase == "act" else (0, 0)
    limits, policy = settings.limits, settings.act_policy
    cost = float(total.usage.cost_usd + total.in_doubt.cost_usd)

    def one(name: str, scope: Any, unit: Any, used: float, limit: Any) -> out.BudgetOut:
        return out.BudgetOut(
            name=name, scope=scope, unit=unit, used=used, limit=None if limit is None else float(limit)
        )

    return [
        *([one("turns of this act", "run", "count", cap - left, cap)] if cap else []),
        one("rounds", "rounds", "count", state.round, settings.max_rounds),
        one("turns of act", "act", "count", state.act.turns, policy.max_turns),
        one("turns", "loop", "count", total.turns, limits.max_turns),
        one("cost", "loop", "usd", cost, limits.max_cost_usd),
        one("active time", "loop", "ms", total.us / 1000, _ms(limits.max_duration_us)),
        one("tokens", "loop", "tokens", total.usage.tokens, limits.max_tokens),
    ]


def _ms(us: int | None) -> float | None:
    return None if us is None else us / 1000


def guards(state: LoopState) -> list[out.GuardOut]:
    """Counters against their thresholds, the nearest to tripping first (AG-11). One that is off is not among them."""
    limits, counters = state.settings.guards, state.agent.guards
    found = [
        out.GuardOut(
            name=name,
            label=GUARD_LABELS.get(name, name),
            count=getattr(counters, name.replace("-", "_")),
            threshold=most,
            warned=name in counters.warned,
        )
        for name in guard_names()
        if (most := getattr(limits, name.replace("-", "_")))
    ]
    return sorted(found, key=lambda one: -one.count / one.threshold)


def plan(state: LoopState) -> out.PlanOut | None:
    """The plan as it stands; None where there is none and none is asked for."""
    known, wanted = state.plan, state.settings.plan_mode
    if not known.steps and not wanted:
        return None
    pending = state.pending
    return out.PlanOut(
        digest=known.digest,
        approved=bool(known.digest) and known.approved == known.digest,
        approved_by=known.approved_by,
        needs_approval=wanted,
        request_id=pending.id if pending is not None and pending.kind == "plan" else "",
        done=completed_count(known),
        verified=verified_count(known),
        steps=[
            out.StepOut(
                id=one.step.id,
                text=one.step.title,
                status=one.status,
                check=check_words(one.step.check) if one.step.check else "",
                reason=one.reason,
                by_person=one.by == "person",
                by=one.by,
                actor=one.actor,
                after=list(one.step.after),
                call=msgspec.to_builtins(one.step.check) if one.step.check else None,
            )
            for one in known.steps
        ],
    )


def calls(state: LoopState) -> list[out.CallOut]:
    """The batch in hand."""
    agent = state.agent

    def status(index: int, call: ToolCall) -> str:
        if call.kind == "invalid":
            return "invalid"
        if index < agent.answered:
            return "done"
        return "running" if agent.step == "tools" and (agent.running or index == agent.answered) else "pending"

    return [
        out.CallOut(
            index=index,
            id=call.id,
            name=call.name,
            args=clipped(call.args),
            kind=call.kind,
            problem=call.problem,
            status=status(index, call),
        )
        for index, call in enumerate(agent.calls)
    ]


async def _suspensions(studio: Studio, execution_id: str) -> list[out.SuspensionOut]:
    found: list[out.SuspensionOut] = []
    for name, kind, body, answer in await studio.ledger.suspensions(execution_id):
        asked: Any = _event(body, Suspended)
        said: Any = _event(answer, Answered) if answer else None
        found.append(
            out.SuspensionOut(
                id=name,
                kind=kind,
                prompt=getattr(asked, "prompt", ""),
                decision=getattr(said, "decision", ""),
                text=getattr(said, "text", ""),
                actor=getattr(said, "actor", ""),
            )
        )
    return found


def _event(body: bytes, kind: type[Any]) -> Any:
    """Of a loop; a workflow's questions have another form and are shown by name alone."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError:
        return None


def _definition(text: str) -> dict[str, Any] | None:
    if not text.startswith("{"):
        return {"name": text} if text else None
    found: Any = msgspec.json.decode(text)
    return found if isinstance(found, dict) else None  # pyright: ignore[reportUnknownVariableType]


def turns(records: Iterable[Record]) -> list[out.TurnOut]:
    """All turns, oldest first, each as a row."""
    found: list[out.TurnOut] = []
    state = LoopState()
    for record in records:
        event: Any = decode(record.kind, record.version, record.body)
        before, state = state, advance(state, event)
        if isinstance(event, ModelResponded):
            usage = event.usage
            found.append(
                out.TurnOut(
                    turn=len(found) + 1,
                    seq=record.seq,
                    round=before.round,
                    phase=before.phase,
                    at_us=record.at_us,
                    finish=event.finish,
                    calls=[call.name for call in event.calls],
                    input_tokens=usage.input_tokens,
                    output_tokens=usage.output_tokens,
                    cache_read_tokens=usage.cache_read_tokens,
                    cost_usd=float(usage.cost_usd),
                    elapsed_ms=event.us // 1000,
                )
            )
        elif isinstance(event, ToolsFinished) and found:
            found[-1].failed += sum(result.status != "ok" for result in event.results)
    return found
