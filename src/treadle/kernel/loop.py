"""The loop machine: rounds of act and evaluate around the agent machine. `next_actions` decides, `advance` folds.

A round goes

    baseline ──► act (agent or callback) ──► evaluate (agent, callback or person) ──► accepted | next round | exhausted

Folding never decides: a limit, a stop or a wait is an event that a decision has put there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.core import events as ev
from treadle.core.errors import AnswerRefused, InvalidStateTransition, OutsideRound, all_rejected
from treadle.core.excerpts import both_ends
from treadle.core.messages import Compacted, ModelResponded, Prompted, ToolsFinished
from treadle.core.usage import NO_USAGE
from treadle.core.values import Value, replace

from . import agent as agents
from . import carried as carry
from . import children, forking, gates, guards, lessons, permission, plan_fold, reopening, scopes, texts, window
from .accounts import settle_charges as _settle_charges
from .accounts import spend as _spend
from .accounts import unmetered_doubt as _unmetered_doubt
from .actions import Action, Finish, FinishAct, Record, RunActor, RunCheck, TakeBaseline, Wait
from .budget import remaining_us
from .escalation import after_rejections, escalated
from .guard_events import guard_tripped, workspace_measured
from .outcomes import decided
from .states import AgentState, Charge, LoopState

# ---- what is next


def next_actions(state: LoopState) -> tuple[Action, ...]:
    """All actions that are ready. A loop has one at a time; its reads side by side are one RunTools."""
    return (_next(state),)


def _next(state: LoopState) -> Action:
    if state.pending is not None:
        return Wait(kind=state.pending.kind, id=state.pending.id, until_us=state.pending.until_us)
    if state.status != "running":
        return children.left(state) or lessons.after(state) or Finish(status=state.status, code=state.code)
    if (action := scopes.due(state)) is not None:
        return action
    if (end := decided(state, boundary=at_boundary(state) or _out_of_time(state))) is not None:
        return lessons.before(state, end) or Record(event=end)
    if state.phase == "act":
        return lessons.recall(state) or _act(state)
    if state.child is not None and (action := children.left(state)) is not None:
        return action
    return gates.due(state) or _evaluate(state)


def at_boundary(state: LoopState) -> bool:
    """Nothing is in flight, no call waits for its result, and what comes next is an intent."""
    agent = state.agent
    return not state.callback and agent.step in ("prompt", "ready", "back-off") and agent.state != "completed"


def _out_of_time(state: LoopState) -> bool:
    """Whether calls that wait for their result cannot run, since no time is left: they do when it is extended."""
    return state.agent.step == "tools" and not state.agent.running and remaining_us(state) == 0


def _act(state: LoopState) -> Action:
    if state.baseline is None:
        if state.settings.baseline:
            return TakeBaseline(round=state.round, onto=scopes.to_bring_in(state))
        return Record(event=ev.BaselineTaken(tree=""))
    if state.settings.act == "callback":
        if not state.callback and (action := guards.due(state)) is not None:
            return action
        return _callback(state, RunActor)
    if state.agent.state == "completed":
        return FinishAct(output_json=state.agent.output_json, failure="")
    if state.agent.step == "prompt" and (step := after_rejections(state)) is not None:
        return Record(event=step)
    return agents.agent_action(state)


def _evaluate(state: LoopState) -> Action:
    match state.settings.evaluate:
        case "callback":
            return _callback(state, RunCheck)
        case "person":
            return _person(state)
        case _:
            agent = state.agent
            if agent.state == "completed":
                judged = ev.Judged(accept=agent.accept is True, feedback=agent.feedback, us=0)
                return lessons.attributed(state) or scopes.judged(state, judged)
            return agents.agent_action(state)


def _callback(state: LoopState, action: type[RunActor | RunCheck]) -> Action:
    if state.callback:
        return action(key=state.callback)
    return Record(event=ev.CallbackStarted(key=f"r{state.round}.{state.phase}.{state.attempt}"))


def _person(state: LoopState) -> Action:
    if (answer := state.answer) is not None:
        return scopes.judged(state, ev.Judged(accept=answer.decision == "approve", feedback=answer.text, us=0))
    prompt = texts.is_done(state.task, state.last_output_json or state.act_failure, state.last_changed)
    return Record(event=ev.Suspended(id=f"r{state.round}.evaluation", kind="evaluation", prompt=prompt))


# ---- what happened


def advance(state: LoopState, event: Value) -> LoopState:
    """The state after an event. InvalidStateTransition where the event does not fit: the state is unchanged."""
    return replace(_FOLD[type(event)](state, event), seq=state.seq + 1)


def _next_seq(state: LoopState) -> int:
    return state.seq + 1


def _on_started(state: LoopState, e: ev.LoopStarted) -> LoopState:
    if state.seq:
        raise InvalidStateTransition("started", "started")
    return LoopState(
        epoch=1,
        settings=e.settings,
        step_exec_id=e.step_exec_id,
        input_json=e.input_json,
        task=e.task,
        fingerprint=e.fingerprint,
        workspace=e.workspace,
        definition=e.definition,
        started_us=e.at_us,
        scope=scopes.opened(e),
        agent=AgentState(prompt=e.task),
        carried=carry.started(e.settings.granted),
        parent=e.forked_by,
        above=e.above,
    )


def _on_interrupted(state: LoopState, e: ev.Interrupted) -> LoopState:
    agent = state.agent
    doubt = sum((charge.reserve for charge in state.charges), NO_USAGE)
    if agent.call:
        doubt += agent.reserve
    state = _spend(state, us=e.us, in_doubt=doubt)
    changes: dict[str, Any] = {}
    if e.reason in ("signal", "step") and state.status == "running":
        changes = {"status": "paused", "code": "interrupted"}
    elif e.reason == "taken-over":
        changes = {"epoch": e.epoch}
        if state.code == "interrupted":
            changes |= {"status": "running", "code": ""}
    return replace(
        state,
        agent=agents.interrupted(agent),
        charges=(),
        processes=(),
        attempt=state.attempt + bool(state.callback),
        callback="",
        **changes,
    )


def _on_baseline(state: LoopState, e: ev.BaselineTaken) -> LoopState:
    first = state.first_baseline or e.tree
    return replace(state, baseline=e.tree, first_baseline=first, scope=scopes.brought_in(state.scope))


def _on_prompted(state: LoopState, e: Prompted) -> LoopState:
    state = _spend(state, us=e.map.us if e.map else 0)
    seq = _next_seq(state)
    carried = carry.after_prompt(state.carried, e, seq)
    return replace(state, note="", agent=agents.prompted(state.agent, e, seq), carried=carried)


def _on_model_intended(state: LoopState, e: ev.ModelIntended) -> LoopState:
    if state.agent.step != "ready":
        raise InvalidStateTransition(f"agent step {state.agent.step}", e.call)
    last_act_model = e.model if state.phase == "act" else state.last_act_model
    agent = replace(state.agent, call=e.call, reserve=e.reserve, step="calling")
    if e.prompt is not None:
        state = window.with_window(state, window.prompt_changed(window.window_of(state), e.prompt))
    return replace(state, agent=agent, last_act_model=last_act_model)


def _on_model_responded(state: LoopState, e: ModelResponded) -> LoopState:
    unmetered = not e.usage.input_tokens and not e.usage.output_tokens
    # What nobody metered may have cost as much as was reserved for it; the request itself is counted.
    doubt = replace(state.agent.reserve, requests=0) if unmetered else NO_USAGE
    agent = agents.responded(state, e, _next_seq(state))
    state = _spend(state, turns=1, usage=e.usage, us=e.us, in_doubt=doubt)
    old = window.window_of(state)
    if (new := window.responded(old, e.usage)) is not old:
        state = window.with_window(state, new)
    carried = state.carried if e.calls else carry.turn_over(state.carried)
    return replace(state, agent=agent, unmetered=state.unmetered + unmetered, carried=carried)


def _on_compacted(state: LoopState, e: Compacted) -> LoopState:
    doubt = _unmetered_doubt(state, e.usage) if e.call else NO_USAGE
    state = replace(state, unmetered=state.unmetered + (doubt is not NO_USAGE))
    return _spend(window.compacted(state, e, _next_seq(state)), usage=e.usage, us=e.us, in_doubt=doubt)


def _on_compaction_failed(state: LoopState, e: ev.CompactionFailed) -> LoopState:
    doubt = NO_USAGE
    if state.agent.call:
        doubt = state.agent.reserve if e.maybe_charged else _unmetered_doubt(state, e.usage)
    return _spend(window.failed(state, e), usage=e.usage, us=e.us, in_doubt=doubt)


def _on_model_failed(state: LoopState, e: ev.ModelFailed) -> LoopState:
    agent = agents.failed_request(state.agent, e)
    doubt = state.agent.reserve if e.maybe_charged else NO_USAGE
    return replace(_spend(state, us=e.us, in_doubt=doubt), agent=agent)


def _on_tool_intended(state: LoopState, e: ev.ToolIntended) -> LoopState:
    return replace(state, agent=agents.tool_intended(state.agent, e))


def _on_tool_probed(state: LoopState, e: ev.ToolProbed) -> LoopState:
    return replace(state, agent=agents.tool_probed(state.agent, e))


def _on_tools_finished(state: LoopState, e: ToolsFinished) -> LoopState:
    seq, act, old = _next_seq(state), state.phase == "act", state.agent
    agent = agents.tools_finished(state, e, seq)
    touched = state.touched or (act and any(map(carry.changed_something, e.results)))
    carried = carry.after_results(state.carried, old.calls[old.answered :], e.results, seq, act=act)
    carried = carried if agent.calls else carry.turn_over(carried)
    if state.child is not None:
        state = children.answered(
            state, old.calls[old.answered :][: len(e.results)], agents.call_key(state, old.answered)
        )
    state = _spend(plan_fold.fold_results(state, e), us=e.us)
    return replace(state, agent=agent, answer=None, processes=(), touched=touched, carried=carried)


def _on_process_started(state: LoopState, e: ev.ProcessStarted) -> LoopState:
    return replace(state, processes=(*state.processes, (e.pgid, e.birth)))


def _on_act_finished(state: LoopState, e: ev.ActFinished) -> LoopState:
    return _to_evaluate(state, e, "")


def _on_act_failed(state: LoopState, e: ev.ActFailed) -> LoopState:
    if state.agent.state in ("executing", "planning", "error_recovery") and state.settings.act == "agent":
        state = replace(state, agent=agents.transition(state.agent, "failed", reason=e.reason))
    return _to_evaluate(state, e, e.reason)


def _to_evaluate(state: LoopState, e: ev.ActFinished | ev.ActFailed, failure: str) -> LoopState:
    if state.phase != "act":
        raise InvalidStateTransition(state.phase, "evaluate")
    state = _settle_charges(_spend(state, us=e.us))
    prompt = texts.evaluation(state.task, e.output_json, e.changed, failure) + lessons.for_evaluator(state.memory)
    seen = state.agent.guards
    if state.settings.must_change:
        seen = guards.round_left(seen, e.scope_receipt_json)
    known = bool(state.baseline)
    return replace(
        state,
        phase="evaluate",
        last_output_json=e.output_json,
        last_receipt_json=e.scope_receipt_json,
        last_changed=e.changed,
        act_failure=failure,
        changed=(state.changed or bool(e.changed)) if known else state.changed,
        preserved_leaf=state.agent.leaf,
        carried=carry.after_act(state.carried, e.changed, e.deleted),
        agent=AgentState(state="executing", prompt=prompt),
        act_guards=seen,
        callback="",
        attempt=1,
        processes=(),
    )


def _on_callback_started(state: LoopState, e: ev.CallbackStarted) -> LoopState:
    return replace(state, callback=e.key)


def _on_callback_raised(state: LoopState, e: ev.CallbackRaised) -> LoopState:
    state = _settle_charges(_spend(state, us=e.us))
    code = "timeout" if e.timeout else "failed"
    return replace(
        state,
        callback="",
        attempt=state.attempt + 1,
        processes=(),
        status="failed",
        code=code,
        outcome=code if e.timeout else "internal",
        evidence=e.message,
        advice=texts.RAISED_ADVICE,
    )


def _on_charge(state: LoopState, e: ev.ChargeIntended) -> LoopState:
    if not state.callback:
        raise OutsideRound
    return replace(state, charges=(*state.charges, Charge(receipt=e.receipt, reserve=e.reserve)))


def _on_usage(state: LoopState, e: ev.UsageReported) -> LoopState:
    if not state.callback:
        raise OutsideRound
    charges = tuple(c for c in state.charges if c.receipt != e.receipt) if e.receipt else state.charges
    return replace(_spend(state, usage=e.usage), charges=charges)


def _on_judged(state: LoopState, e: ev.Judged) -> LoopState:
    if state.phase != "evaluate":
        raise InvalidStateTransition(state.phase, "judged")
    state = _settle_charges(_spend(state, us=e.us))
    scope = scopes.concluded(state.scope, e)
    state = replace(state, callback="", attempt=1, processes=(), answer=None, evidence=e.evidence, scope=scope)
    if e.accept:
        return replace(state, accepted=True, feedback=None)
    state = replace(state, feedback=e.feedback, last_rejected_json=lessons.rejected_json(state, e.feedback))
    if state.round >= state.settings.max_rounds:
        return replace(
            state,
            status="failed",
            code="exhausted",
            outcome="max iterations",
            evidence=f"{all_rejected(state.round)}; last feedback: {both_ends(e.feedback, 500)}",
            advice=texts.EXHAUSTED_ADVICE,
        )
    return replace(
        state,
        phase="act",
        iteration=state.iteration + 1,
        baseline=None,
        last_output_json=None,
        last_receipt_json=None,
        last_changed=(),
        act_failure="",
        rejections=state.rejections + 1,
        agent=_next_act(state, e.feedback),
    )


def _next_act(state: LoopState, feedback: str) -> AgentState:
    text = texts.feedback(feedback)
    if state.settings.act_agent.history == "fresh":
        return AgentState(
            prompt=f"{lessons.told(state.task, state.memory.recalled)}\n\n{text}",
            origin="feedback",
            guards=guards.forgotten(state.act_guards),
        )
    return AgentState(
        prompt=text, origin="feedback", leaf=state.preserved_leaf, guards=guards.elsewhere(state.act_guards)
    )


def _on_suspended(state: LoopState, e: ev.Suspended) -> LoopState:
    if e.child:
        return children.suspended(state, e)
    if e.kind == "quota":
        return replace(state, pending=e, status="paused", code="quota")
    code = "question" if e.kind == "question" else "approval"
    return replace(plan_fold.fold_asked(state, e), pending=e, status="waiting-input", code=code)


def _on_answered(state: LoopState, e: ev.Answered) -> LoopState:
    pending = state.pending
    if pending is None or pending.id != e.id or pending.kind == "quota":
        raise AnswerRefused(f"{e.id!r} is not the open question")
    if pending.kind == "plan" and not pending.child:
        return plan_fold.fold_answered(state, e)
    return replace(state, pending=None, answer=e, status="running", code="")


def _on_wait_ended(state: LoopState, _: ev.WaitEnded) -> LoopState:
    agent = state.agent
    if agent.step == "back-off":
        agent = replace(agent, step="ready", retry_at_us=None)
    if state.pending is not None and state.pending.kind == "quota":
        return replace(state, pending=None, status="running", code="", agent=agent)
    return replace(state, agent=agent)


def _on_workspace_changed(state: LoopState, e: ev.WorkspaceChanged) -> LoopState:
    agent = replace(state.agent, guards=guards.elsewhere(state.agent.guards))
    return replace(state, agent=agent, note=texts.workspace_changed(e.paths))


def _on_stopped(state: LoopState, e: ev.Stopped) -> LoopState:
    agent = state.agent
    if agent.state not in ("completed", "failed") and e.status in ("failed", "stopped"):
        agent = agents.transition(agent, "failed", reason=e.kind)
    return replace(
        state,
        status=e.status,
        code=e.code,
        outcome=e.kind,
        evidence=e.evidence,
        advice=e.advice,
        pending=None,
        agent=agent,
    )


_FOLD: dict[type[Value], Callable[[LoopState, Any], LoopState]] = {
    ev.LoopStarted: _on_started,
    ev.Interrupted: _on_interrupted,
    ev.BaselineTaken: _on_baseline,
    Prompted: _on_prompted,
    ev.ModelIntended: _on_model_intended,
    ModelResponded: _on_model_responded,
    ev.ModelFailed: _on_model_failed,
    ev.ToolIntended: _on_tool_intended,
    ev.ToolProbed: _on_tool_probed,
    ToolsFinished: _on_tools_finished,
    ev.ProcessStarted: _on_process_started,
    ev.ActFinished: _on_act_finished,
    ev.ActFailed: _on_act_failed,
    ev.CallbackStarted: _on_callback_started,
    ev.CallbackRaised: _on_callback_raised,
    ev.ChargeIntended: _on_charge,
    ev.UsageReported: _on_usage,
    ev.Judged: _on_judged,
    ev.Suspended: _on_suspended,
    ev.Answered: _on_answered,
    ev.WaitEnded: _on_wait_ended,
    ev.Extended: reopening.extended,
    ev.Pinned: reopening.pinned,
    ev.Reopened: reopening.reopened,
    ev.Adopted: reopening.adopted,
    ev.WorkspaceChanged: _on_workspace_changed,
    ev.LeaseChanged: permission.lease_changed,
    ev.WorkspaceMeasured: workspace_measured,
    ev.ScopeRestored: scopes.restored,
    ev.ScopeClosed: scopes.closed,
    ev.Forked: forking.forked,
    ev.GuardTripped: guard_tripped,
    ev.Escalated: escalated,
    ev.CompactionRequested: window.requested,
    ev.CompactionIntended: window.intended,
    Compacted: _on_compacted,
    ev.CompactionFailed: _on_compaction_failed,
    ev.CompactionJudged: window.judged,
    **plan_fold.FOLD,
    **gates.FOLD,
    **lessons.FOLD,
    **children.FOLD,
    ev.Stopped: _on_stopped,
}
