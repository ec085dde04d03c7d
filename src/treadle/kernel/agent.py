"""The agent machine: one invocation of an agent, turn by turn. Decides what is next in it and folds what happened to it.

A turn is one request and its batch of calls. `step` says where in a turn the agent is:

    prompt ──► ready ──► calling ──► tools ──► ready …        (back-off ──► ready after a passing failure)
"""

from __future__ import annotations

from math import ceil
from typing import cast

from treadle.core.errors import InvalidStateTransition, ToolErrorKind
from treadle.core.events import ModelFailed, Probe, Prompted, Suspended, ToolIntended, ToolProbed
from treadle.core.messages import ModelResponded, ResultStatus, ToolCall, ToolResult, ToolsFinished
from treadle.core.settings import AgentSettings
from treadle.core.values import replace

from . import children, guards, permission, plan, texts, window
from .actions import Action, CallModel, FinishAct, IntendModel, IntendTool, ProbeTool, Record, RunTools, Wait
from .budget import turns_left
from .marks import mark_of
from .perception import perceive
from .plan_standing import gated
from .states import AGENT_TRANSITIONS, AgentState, AgentStateName, LoopState

_RUN = ("read", "idempotent", "mutating")


def transition(agent: AgentState, to: AgentStateName, **changes: object) -> AgentState:
    """The agent in another state, or InvalidStateTransition with the agent unchanged (AG-02)."""
    if to not in AGENT_TRANSITIONS[agent.state]:
        raise InvalidStateTransition(agent.state, to)
    return replace(agent, state=to, **changes)


def settings_of(state: LoopState) -> AgentSettings:
    """The settings of the agent at work."""
    return state.settings.act_agent if state.phase == "act" else state.settings.evaluate_agent


def call_key(state: LoopState, index: int) -> str:
    """What a tool call is known by: round, phase, turn and place in the batch."""
    return f"r{state.round}.{state.phase}.t{state.agent.turn}.c{index}"


# ---- what is next


def agent_action(state: LoopState) -> Action:
    """The next action of an agent that has neither completed nor failed."""
    agent = state.agent
    if state.plan.outcomes and state.phase == "act" and (event := plan.due(state)) is not None:
        return Record(event=event)
    if agent.step in ("prompt", "ready") and (action := guards.due(state)) is not None:
        return action
    match agent.step:
        case "calling":
            return CallModel(call=agent.call, phase=state.phase)
        case "tools":
            return _tool_action(state)
        case "compacting":
            return window.compact_action(state)
        case "prompt":
            text = f"{state.note}\n\n{agent.prompt}" if state.note else agent.prompt
            prompt = Prompted(parent=agent.leaf, text=text, origin=agent.origin)
            return perceive(state, prompt) or Record(event=prompt)
        case "back-off":
            return _after_failure(state)
        case _:
            return _next_turn(state)


def _next_turn(state: LoopState) -> Action:
    agent, settings = state.agent, settings_of(state)
    if state.note:
        return Record(event=Prompted(parent=agent.leaf, text=state.note, origin="directive"))
    if (event := plan.before_turn(state)) is not None:
        return Record(event=event)
    if agent.iteration >= settings.max_turns_per_act:
        return FinishAct(output_json="null", failure="max turns")  # act is evaluated as it stands (AG-03)
    left, cap = turns_left(state)
    band = _band(settings.bands, left, cap)
    if band > agent.band and agent.state != "planning":
        return Record(event=Prompted(parent=agent.leaf, text=texts.wrap_up(left, state.phase), origin="wrap-up"))
    if (action := window.boundary_action(state)) is not None:
        return action
    return IntendModel(call=f"r{state.round}.{state.phase}.t{agent.turn}.{agent.tries}", phase=state.phase)


def _band(bands: tuple[int, ...], left: int, cap: int) -> int:
    """How many wrap-up messages are due. The first is due while at least two turns are left, where the cap allows (AG-04)."""
    due = 0
    for number, per_cent in enumerate(bands):
        room = ceil(cap * (100 - per_cent) / 100)
        if left <= max(room, 2 if number == 0 else 1) and cap > 2:
            due = number + 1
    return due


def _after_failure(state: LoopState) -> Action:
    agent = state.agent
    kind = agent.failure.split(":", 1)[0]
    if kind == "quota":
        text = f"The provider's quota is used up. {agent.failure}"
        return Record(
            event=Suspended(
                id=f"{agent.call or f't{agent.turn}.{agent.tries}'}.quota",
                kind="quota",
                prompt=text,
                until_us=agent.retry_at_us,
            )
        )
    if kind == "context-too-long" and (action := guards.oversized(state)) is not None:
        return action
    return Wait(kind="back-off", until_us=agent.retry_at_us or 0)


def _tool_action(state: LoopState) -> Action:
    """Runs of reads side by side, each mutating call alone behind its intent (AG-22)."""
    agent = state.agent
    start = agent.answered
    if results := _unrunnable(state):
        return _answer(agent, results)
    head = agent.calls[start]
    key = call_key(state, start)
    match head.kind:
        case "read":
            end = start
            while end < len(agent.calls) and agent.calls[end].kind == "read":
                if end > start and guards.failed_before(state, agent.calls[end]) is not None:
                    break
                end += 1
            keys = tuple(call_key(state, i) for i in range(start, end))
            return RunTools(keys=keys, calls=agent.calls[start:end])
        case "ask":
            return _ask(state, head, key)
        case "plan":
            return Record(event=plan.answer_call(state, head, key))
        case "finish" | "verdict":
            return _answer(agent, _ending_results(state, start))
        case "fork" if not gated(state):
            return children.due(state, head, key)
        case _ if gated(state):  # at dispatch, whatever the prompt said (AG-07)
            return _answer(agent, (ToolResult(id=head.id, content=texts.GATED, status="error"),))
        case _:
            return _mutating_action(agent, head, key)


def _unrunnable(state: LoopState) -> tuple[ToolResult, ...]:
    """Results of a batch that must not run, or of a call in it that cannot."""
    agent = state.agent
    stop = settings_of(state).on_invalid == "stop_batch" and any(c.kind == "invalid" for c in agent.calls)
    if stop and agent.answered == 0:
        return tuple(_invalid(c) if c.kind == "invalid" else _not_run(c, texts.BATCH_STOPPED) for c in agent.calls)
    head = agent.calls[agent.answered]
    if head.kind == "invalid":
        return (_invalid(head),)
    if head.kind in _RUN and (failure := guards.failed_before(state, head)) is not None:
        return (_answered(head, texts.refused_again(failure.said), "not-run", failure.kind),)
    return ()


def _answer(agent: AgentState, results: tuple[ToolResult, ...]) -> Record:
    return Record(event=ToolsFinished(parent=agent.leaf or 0, results=results, us=0))


def _answered(call: ToolCall, content: str, status: ResultStatus, error: ToolErrorKind | str = "") -> ToolResult:
    return ToolResult(id=call.id, content=content, status=status, error=error, mark=mark_of(call, content))


def _invalid(call: ToolCall) -> ToolResult:
    return _answered(call, f"argument error: {call.problem}", "error", "argument")


def _not_run(call: ToolCall, why: str) -> ToolResult:
    return _answered(call, f"Not run: {why}", "not-run")


def _ending_results(state: LoopState, start: int) -> tuple[ToolResult, ...]:
    """The end of the batch with it, so that no call is left unanswered."""
    agent = state.agent
    call = agent.calls[start]
    if (call.kind == "finish") != (state.phase == "act"):
        return (_not_run(call, texts.OTHER_PHASE),)
    if agent.errors:
        return (_not_run(call, texts.EARLIER_FAILED),)
    if call.kind == "finish" and (why := plan.refused_finish(state)):
        return (_not_run(call, why),)
    ended = ToolResult(id=call.id, content="Finished." if call.kind == "finish" else "Judged.")
    return (ended, *(_not_run(later, texts.ENDED) for later in agent.calls[start + 1 :]))


def _ask(state: LoopState, call: ToolCall, key: str) -> Action:
    if (action := permission.ask_for_leave(state, call, key)) is not None:
        return action
    args = call.args if isinstance(call.args, dict) else {}
    if state.answer is not None:
        return _answer(state.agent, (ToolResult(id=call.id, content=texts.answered(state.answer)),))
    choices = tuple(str(choice) for choice in args.get("choices") or ())
    return Record(
        event=Suspended(id=f"{key}.question", kind="question", prompt=str(args.get("question", "")), choices=choices)
    )


def _mutating_action(agent: AgentState, call: ToolCall, key: str) -> Action:
    if agent.doubt == key:
        match agent.found:
            case "":
                return ProbeTool(key=key, call=call, probes=agent.probes)
            case "done":
                changed = tuple(probe.path for probe in agent.probes)
                done = ToolResult(id=call.id, content=texts.CONFIRMED, changed=changed, effects=agent.touched)
                return _answer(agent, (done,))
            case _:
                unknown = _answered(call, texts.UNKNOWN_OUTCOME, "unknown")
                return _answer(agent, (replace(unknown, effects=agent.touched),))
    if agent.running != key:
        return IntendTool(key=key, call=call)
    return RunTools(keys=(key,), calls=(call,))


# ---- what happened


def prompted(agent: AgentState, event: Prompted, seq: int) -> AgentState:
    """A message of ours is the new leaf."""
    return replace(
        agent, leaf=seq, step="ready", prompt="", band=agent.band + (event.origin == "wrap-up"), origin=event.origin
    )


def responded(state: LoopState, event: ModelResponded, seq: int) -> AgentState:
    """A turn has its response: it counts now, once, however many requests it took."""
    agent = state.agent
    if agent.step != "calling" or event.call != agent.call:
        raise InvalidStateTransition(f"agent step {agent.step}", f"response to {event.call}")
    free = agent.state == "planning" and agent.turn == 0
    held = gated(state)
    agent = replace(
        agent,
        leaf=seq,
        call="",
        tries=0,
        failures=0,
        failure="",
        iteration=agent.iteration + (not free),
        calls=event.calls,
        answered=0,
        errors=0,
        guards=guards.quiet_turn(agent, called=bool(event.calls)),
        step="tools",
    )
    agent = transition(agent, "planning" if held else "executing")
    if event.calls:
        return agent
    text = texts.PLAN_GO_ON if held else texts.GO_ON if free else texts.no_call(state.phase)
    return replace(agent, turn=agent.turn + 1, step="prompt", prompt=text, origin="directive")


def failed_request(agent: AgentState, event: ModelFailed) -> AgentState:
    """The request had no response; the next one has a call id of its own."""
    return replace(
        agent,
        call="",
        step="back-off",
        tries=agent.tries + 1,
        failures=agent.failures + 1,
        guards=guards.too_long(agent.guards) if event.kind == "context-too-long" else agent.guards,
        failure=f"{event.kind}: {event.message}",
        retry_at_us=event.retry_at_us,
    )


def tool_intended(agent: AgentState, event: ToolIntended) -> AgentState:
    """A mutating call is in flight."""
    return replace(agent, running=event.call, probes=event.probes, doubt="", found="")


def tool_probed(agent: AgentState, event: ToolProbed) -> AgentState:
    """A call in doubt that never started is intended anew; of any other the answer follows."""
    if event.found == "not-started":
        return replace(agent, doubt="", found="", probes=())
    return replace(agent, found=event.found, touched=event.touches)


def interrupted(agent: AgentState) -> AgentState:
    """Whatever was in flight is so no longer; a mutating call is in doubt, an idempotent one is intended anew."""
    if agent.call:
        agent = replace(agent, call="", step="ready", tries=agent.tries + 1)
    if agent.running:
        again = agent.calls[agent.answered].kind == "idempotent"
        agent = replace(agent, doubt="" if again else agent.running, running="", found="")
    return agent


def tools_finished(state: LoopState, event: ToolsFinished, seq: int) -> AgentState:
    """Results in call order; when the batch is answered, the turn is over."""
    agent = state.agent
    calls = agent.calls[agent.answered : agent.answered + len(event.results)]
    if agent.step != "tools" or tuple(c.id for c in calls) != tuple(r.id for r in event.results):
        raise InvalidStateTransition(f"agent step {agent.step}", "results of other calls")
    answered = agent.answered + len(calls)
    errors = agent.errors + sum(r.status in ("error", "not-run") for r in event.results)
    none: tuple[Probe, ...] = ()
    whole = answered >= len(agent.calls)
    seen = guards.results_in(state, calls, event.results, last=whole, every_failed=errors == len(agent.calls))
    agent = replace(
        agent, leaf=seq, answered=answered, errors=errors, running="", probes=none, doubt="", found="", guards=seen
    )
    if agent.touched:
        agent = replace(agent, touched=())
    for call, result in zip(calls, event.results, strict=True):
        if call.kind in ("finish", "verdict") and result.status == "ok":
            return _ended(agent, call)
    if not whole:
        return agent
    every_failed = errors == len(agent.calls)
    agent = replace(
        agent,
        calls=(),
        answered=0,
        errors=0,
        turn=agent.turn + 1,
        step="ready",
    )
    return transition(agent, "error_recovery") if every_failed and not gated(state) else agent


def _ended(agent: AgentState, call: ToolCall) -> AgentState:
    """`finish` or `verdict` ends the agent at once (case 12)."""
    args = call.args if isinstance(call.args, dict) else {}
    agent = transition(agent, "completed", step="done", calls=(), answered=0, turn=agent.turn + 1)
    if call.kind == "verdict":
        said: object = args.get("lessons")
        lessons = cast("dict[str, object]", said) if isinstance(said, dict) else {}
        return replace(
            agent,
            accept=bool(args.get("accept")),
            feedback=str(args.get("feedback", "")),
            lessons={one: str(text) for one, text in lessons.items()},
        )
    return replace(agent, output_json=texts.output_json(args))
