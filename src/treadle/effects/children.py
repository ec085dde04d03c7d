"""Runs a child that an agent has forked, counts what it used, and turns how it rests into the outcome of the call (FR-22)."""

from __future__ import annotations

from collections.abc import Callable

import anyio
from msgspec.structs import asdict

from treadle.core.child_events import ChildEnded, ChildUsed
from treadle.core.errors import InputError
from treadle.core.events import Interrupted, Suspended
from treadle.core.messages import ToolCall, ToolResult, ToolsFinished
from treadle.core.usage import NO_USAGE, Usage
from treadle.kernel import children as rules
from treadle.kernel.actions import EndChild, RunChild
from treadle.kernel.marks import mark_of
from treadle.kernel.plan_standing import gated
from treadle.kernel.states import ChildAccount, LoopState
from treadle.ports.children import Above, Children, Decision, Rested, Waiting, Word
from treadle.ports.clock import Clock, CrashPoints
from treadle.tools.clip import clip

from .host import Host

TO_THE_AGENT = ("question", "evaluation")  # permissions and plans are a person's to give
EFFECTS = 64  # of a child that its parent's frame is told of


class ChildEffect:
    """The children of one loop."""

    def __init__(
        self,
        children: Children | None,
        redact: Callable[[str], str],
        output_limit: int,
        clock: Clock,
        points: CrashPoints,
    ) -> None:
        self.children, self.redact, self.output_limit = children, redact, output_limit
        self.clock, self.points = clock, points

    async def perform(
        self, action: RunChild | EndChild, host: Host
    ) -> ToolsFinished | Suspended | Interrupted | ChildEnded:
        """The one outcome of it."""
        return await (self.run(action, host) if isinstance(action, RunChild) else self.end(action, host))

    async def run(self, action: RunChild, host: Host) -> ToolsFinished | Suspended | Interrupted:
        """Until the child rests. What it used is queued before the outcome, so that both are one commit."""
        account = _account(host.state)
        start = self.clock.monotonic_us()
        self.points.reach("before-child")
        try:
            rested = await self._rested(action, account, host)
        except InputError as error:
            host.emit(ChildUsed(child=account.child, usage=NO_USAGE))
            text = f"{account.name} could not be run: {error}"
            return self._result(action.call, host.state, text, failed=True, us=self.clock.monotonic_us() - start)
        except BaseException:
            with anyio.CancelScope(
                shield=True
            ):  # it may have been stopped half way: what it has used is known all the same
                self._count(account, await self._children.state(account.child), host)
            raise
        self.points.reach("after-child")
        return self._outcome(action, account, rested, host, self.clock.monotonic_us() - start)

    @property
    def _children(self) -> Children:
        if self.children is None:
            raise InputError("This definition has no children: treadle resume --adopt only with the one that has.")
        return self.children

    async def _rested(self, action: RunChild, account: ChildAccount, host: Host) -> Rested:
        args = action.call.args if isinstance(action.call.args, dict) else {}
        state = host.state
        return await self._children.run(
            account.name,
            str(args.get("task", "")),
            account.child,
            allowance=action.allowance,
            above=Above(lambda: rules.held(host.state), lambda: gated(host.state)),
            guards={name.replace("_", "-"): value for name, value in asdict(state.settings.guards).items()},
            word=_word(action.call, account, state),
        )

    def _outcome(
        self, action: RunChild, account: ChildAccount, rested: Rested, host: Host, us: int
    ) -> ToolsFinished | Suspended | Interrupted:
        waiting = rested.waiting
        agent = waiting is not None and waiting.kind in TO_THE_AGENT and self._children.answers(account.name) == "agent"
        self._count(account, rested, host, asks=waiting.request_id if agent and waiting else "")
        if waiting is not None and agent:
            return self._result(action.call, host.state, _question(account.name, waiting), us=us)
        if waiting is not None:
            return Suspended(
                id=f"{account.child}.{waiting.request_id}",
                kind=waiting.kind,
                prompt=f"{account.name}: {waiting.prompt}",
                choices=waiting.choices,
                until_us=waiting.until_us,
                child=account.child,
            )
        if rested.status in ("running", "paused"):  # somebody stopped it: so is whoever waits for it
            return Interrupted(epoch=host.state.epoch, reason="signal", us=us)
        return self._result(
            action.call,
            host.state,
            _ending(account, rested),
            failed=rested.status != "done",
            us=us,
            changed=rested.changed,
            effects=rested.effects[:EFFECTS],
        )

    def _count(self, account: ChildAccount, rested: Rested | None, host: Host, asks: str = "") -> None:
        """What it has used since it was last counted: once, whatever was killed in between."""
        none = ChildUsed(child=account.child, usage=NO_USAGE, asks=asks)
        host.emit(none if rested is None else used_since(account, rested, asks))

    def _result(
        self,
        call: ToolCall,
        state: LoopState,
        text: str,
        *,
        failed: bool = False,
        us: int = 0,
        changed: tuple[str, ...] = (),
        effects: tuple[str, ...] = (),
    ) -> ToolsFinished:
        text = self.redact(text)
        shown = text if len(text) <= self.output_limit else clip(text, self.output_limit, call.id)
        result = ToolResult(
            id=call.id,
            content=shown,
            status="error" if failed else "ok",
            error="execution" if failed else "",
            changed=changed,
            effects=effects,
            mark=mark_of(call, text),
        )
        return ToolsFinished(parent=state.agent.leaf or 0, results=(result,), us=us)

    async def end(self, action: EndChild, host: Host) -> ChildEnded:
        """Nobody waits for it any more."""
        account = _account(host.state)
        if self.children is not None:
            rested = await self.children.end(action.child, "its parent goes on without it")
            self._count(account, rested, host)
        return ChildEnded(child=action.child)


def used_since(account: ChildAccount, rested: Rested, asks: str = "") -> ChildUsed:
    """What a child has used beyond what its parent knows."""
    return ChildUsed(
        child=account.child,
        usage=_since(rested.usage, account.usage),
        in_doubt=_since(rested.in_doubt, account.in_doubt),
        turns=max(0, rested.turns - account.turns),
        asks=asks,
    )


def _account(state: LoopState) -> ChildAccount:
    if state.child is None:
        raise AssertionError("no child is at work")
    return state.child


def _word(call: ToolCall, account: ChildAccount, state: LoopState) -> Word | None:
    """What is to be told to the child: a person's answer to what its parent was parked with, or the agent's own."""
    if (answer := state.answer) is not None and answer.id.startswith(f"{account.child}."):
        return Word(answer.id.removeprefix(f"{account.child}."), answer.decision, answer.text, answer.actor)
    if call.name != rules.ANSWER or not account.asks or not isinstance(call.args, dict):
        return None
    decision = str(call.args.get("decision") or "answer")
    known: Decision = "approve" if decision == "approve" else "reject" if decision == "reject" else "answer"
    return Word(account.asks, known, str(call.args.get("answer", "")), f"agent {state.settings.role_key}")


def _question(name: str, waiting: Waiting) -> str:
    choices = f" Choices: {', '.join(waiting.choices)}." if waiting.choices else ""
    how = (
        "Judge it with answer_child(decision=approve or reject, answer=why)."
        if waiting.kind == "evaluation"
        else "Answer with answer_child(answer)."
    )
    return f"{name} waits for you. It asks: {waiting.prompt}{choices}\n{how}"


def _ending(account: ChildAccount, rested: Rested) -> str:
    rounds = f"{rested.rounds} round{'' if rested.rounds == 1 else 's'}"
    head = f"{account.name} ended {rested.status}, {rested.code}, after {rounds}."
    if rested.status != "done" and rested.evidence:
        head += f" Why: {rested.evidence}"
    output = "" if rested.output_json in ("", "null") else f"\nIts output: {rested.output_json}"
    changed = f"\nIt changed: {', '.join(rested.changed[:50])}" if rested.changed else ""
    return f"{head}{output}{changed}"


def _since(now: Usage, then: Usage) -> Usage:
    return Usage(
        input_tokens=max(0, now.input_tokens - then.input_tokens),
        output_tokens=max(0, now.output_tokens - then.output_tokens),
        cache_read_tokens=max(0, now.cache_read_tokens - then.cache_read_tokens),
        cache_write_tokens=max(0, now.cache_write_tokens - then.cache_write_tokens),
        requests=max(0, now.requests - then.requests),
        cost_usd=max(now.cost_usd - then.cost_usd, NO_USAGE.cost_usd),
    )
