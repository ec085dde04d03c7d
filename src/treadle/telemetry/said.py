"""What matters of an event, on one line for people: the words of the session log and of whatever shows single events."""

from __future__ import annotations

from typing import Any

import msgspec

from treadle.core import child_events as ce
from treadle.core import events as ev
from treadle.core import lesson_events as le
from treadle.core.lease_events import LeaseChanged
from treadle.core.messages import Compacted, ModelResponded, Prompted, ToolsFinished
from treadle.core.settings import LoopSettings
from treadle.core.spoken import count, duration, gist, map_words, money, one_line
from treadle.core.usage import Usage
from treadle.core.window_events import CompactionFailed, CompactionJudged

_SKIPPED = ("settings", "fingerprint", "definition", "input_json", "us", "at_us", "parent")


def brief(args: Any) -> str:
    """The arguments of a call in a few words: the first text among them says most."""
    if isinstance(args, str):
        return one_line(args, 60)
    texts = [str(value) for value in args.values() if isinstance(value, str | int)]
    return one_line(texts[0], 60) if texts else ""


def _cache_key(event: ev.ModelIntended) -> str:
    """A new key of what the provider may cache, with what has changed (AG-14)."""
    if event.prompt is None:
        return ""
    why = f" ({', '.join(event.prompt.changed)} changed)" if event.prompt.changed else ""
    return f", new cache key {event.prompt.key}{why}"


def describe(event: Any) -> str:
    """On one line of at most 240 characters."""
    return (
        _message(event)
        or _of_loop(event)
        or _of_work(event)
        or _of_people(event)
        or _of_guards(event)
        or _of_window(event)
        or _of_lessons(event)
        or _of_children(event)
        or _fields(event)
    )


def _message(event: Any) -> str:
    match event:
        case Prompted():
            shown = f" (map: {map_words(event.map)})" if event.map else ""
            return f"{event.origin}: {one_line(event.text, 120)}{shown}"
        case ModelResponded():
            calls = ", ".join(f"{call.name} {brief(call.args)}".rstrip() for call in event.calls)
            words = "; ".join(part for part in (one_line(event.text, 80), one_line(calls, 160)) if part)
            usage = event.usage
            spent = (
                f"{usage.input_tokens:,} in, {usage.output_tokens:,} out, {money(usage.cost_usd)}, {duration(event.us)}"
            )
            return f"{event.finish}: {words} ({spent})"
        case ToolsFinished():
            telling = next((one for one in event.results if one.status != "ok" or not one.passed), None)
            said = one_line((telling or event.results[0]).content, 120) if event.results else ""
            return f"{', '.join(result.status for result in event.results)} ({duration(event.us)}): {said}"
        case _:
            return ""


def _of_loop(event: Any) -> str:
    match event:
        case ev.LoopStarted():
            return f"{one_line(event.task, 120)} ({_limits(event.settings)})"
        case ev.Stopped():
            said = f": {gist(event.evidence, 160)}" if event.evidence else ""
            return f"{event.status}, {event.code}{said}"
        case ev.Interrupted():
            words = {
                "taken-over": "taken over from another owner",
                "cancelled": "what was in flight was cancelled",
                "signal": "told to stop",
                "deadline": "the time limit was reached",
                "step": "held after one step",
            }
            return f"{words[event.reason]} (epoch {event.epoch})"
        case ev.BaselineTaken():
            tree = f"tree {event.tree[:12]}" if event.tree else ""
            return ", ".join(part for part in (tree, one_line(event.note, 160)) if part) or "no tree"
        case ev.WorkspaceChanged():
            return f"{count(len(event.paths), 'file')} changed meanwhile: {one_line(', '.join(event.paths), 120)}"
        case ev.Judged():
            verdict = "accepted" if event.accept else f"rejected: {gist(event.feedback, 160)}"
            return f"{verdict} ({duration(event.us)})"
        case ev.ActFinished() | ev.ActFailed():
            why = f"{one_line(event.reason, 80)}; " if isinstance(event, ev.ActFailed) else ""
            return (
                f"{why}{count(len(event.changed), 'file')} changed: {one_line(', '.join(event.changed), 120)}".rstrip(
                    ": "
                )
            )
        case _:
            return ""


def _limits(settings: LoopSettings) -> str:
    limits, policy = settings.limits, settings.act_policy
    turns, cost, us = policy.max_turns or limits.max_turns, limits.max_cost_usd, limits.max_duration_us
    parts = [
        f"at most {count(settings.max_rounds, 'round')}",
        count(turns, "turn") if turns else "",
        money(cost) if cost is not None else "",
        duration(us) if us else "",
    ]
    return ", ".join(part for part in parts if part)


def _of_work(event: Any) -> str:
    match event:
        case ev.ModelIntended():
            return f"{event.call} to {event.model}, at most {money(event.reserve.cost_usd)}{_cache_key(event)}"
        case ev.ModelFailed():
            again = ", and is tried again" if event.retry_at_us is not None else ""
            return f"{event.kind}: {one_line(event.message, 160)}{again}"
        case ev.ToolIntended():
            return f"{event.call} {one_line(', '.join(probe.path for probe in event.probes), 120)}".rstrip()
        case ev.ToolProbed():
            return f"{event.call}: {event.found}"
        case ev.PlanWritten():
            titles = "; ".join(f"{step.id}. {step.title}" for step in event.steps)
            return f"by {event.actor or event.by}: {one_line(titles, 200)}"
        case ev.StepMoved():
            why = f": {one_line(event.reason, 120)}" if event.reason else ""
            return f"{event.step} {event.status}, by {event.actor or event.by}{why}"
        case ev.ProcessStarted():
            return f"{event.call}, process group {event.pgid}"
        case ev.CallbackStarted():
            return event.key
        case ev.CallbackRaised():
            return f"{event.key}: {'timed out: ' if event.timeout else ''}{one_line(event.message, 160)}"
        case ev.UsageReported() | ev.ChargeIntended():
            usage = event.usage if isinstance(event, ev.UsageReported) else event.reserve
            most = "" if isinstance(event, ev.UsageReported) else "at most "
            receipt = f"{one_line(event.receipt, 60)}: " if event.receipt else ""
            return f"{receipt}{most}{usage.tokens:,} tokens, {money(usage.cost_usd)}"
        case _:
            return ""


def _of_people(event: Any) -> str:
    match event:
        case ev.Suspended():
            return f"{event.kind} {event.id}: {one_line(event.prompt, 160)}"
        case ev.Answered():
            said = f": {one_line(event.text, 120)}" if event.text else ""
            return f"{event.decision} by {one_line(event.actor, 40)}{said}"
        case LeaseChanged():
            lasts = "" if event.expires_at_us is None else f", for {duration(event.expires_at_us - event.at_us)}"
            why = f": {one_line(event.reason, 80)}" if event.reason else ""
            whose = one_line(event.actor or event.by, 40)
            return f"{event.op} {one_line(event.capability, 100)} for this {event.scope}{lasts}, by {whose}{why}"
        case ev.Pinned():
            return f"pinned {one_line(event.label, 60)} by {one_line(event.actor, 40)}"
        case ev.Extended():
            return f"limits changed by {one_line(event.actor, 40)}"
        case ev.WaitEnded():
            return "the wait is over"
        case ev.Reopened():
            why = f": {one_line(event.reason, 120)}" if event.reason else ""
            return f"tried again by {one_line(event.actor, 40)}{why}"
        case ev.Adopted():
            return f"a changed definition, by {one_line(event.actor, 40)}"
        case _:
            return ""


def _of_guards(event: Any) -> str:
    match event:
        case ev.GuardTripped():
            said = {"directive": "the model is told", "compact": "one hard compaction", "stop": "it goes no further so"}
            return f"{event.guard}: {one_line(event.evidence, 120)}; {said[event.response]}"
        case ev.Escalated():
            return f"to {event.model} (rung {event.rung}): {one_line(event.reason, 160)}"
        case ev.WorkspaceMeasured():
            return f"tree {event.tree[:12]}" if event.tree else one_line(event.note, 160) or "no tree"
        case _:
            return ""


def _of_window(event: Any) -> str:
    match event:
        case Compacted():
            cost = f", {money(event.usage.cost_usd)}" if event.call else ""
            return f"{event.depth} ({event.by}): {event.before:,} → {event.after:,} tokens{cost}"
        case CompactionFailed():
            opens = "; the breaker is open" if event.opens else ""
            return f"{event.depth} ({event.by}): {event.reason}, {one_line(event.message, 120)}{opens}"
        case CompactionJudged():
            breaker = f"; the breaker {event.breaker}" if event.breaker else ""
            return f"{event.before:,} → {event.after:,} tokens as counted, {event.saved:,} saved{breaker}"
        case _:
            return ""


def _of_lessons(event: Any) -> str:
    match event:
        case le.LessonsRecalled():
            told = ", ".join(one.lesson_id for one in event.lessons)
            return f"{told} ({event.tokens:,} tokens)" if told else one_line(event.note, 160) or "none that fits"
        case le.LessonsAttributed():
            return "; ".join(
                f"{one} {outcome}: {one_line(event.evidence.get(one, ''), 80)}"
                for one, outcome in event.outcomes.items()
            )
        case le.GatesChecked():
            said = ", ".join(f"{one.gate} {'passed' if one.passed else 'failed'}" for one in event.results)
            return f"{said} ({duration(event.us)})"
        case le.LessonsVoted():
            votes = ", ".join(f"{one} {outcome}" for one, outcome in event.outcomes.items())
            retired = f"; retired: {', '.join(event.retired)}" if event.retired else ""
            trusted = f"; trusted from now on: {', '.join(event.confirmed)}" if event.confirmed else ""
            return f"{votes}{trusted}{retired}{f'; not written: {one_line(event.note, 120)}' if event.note else ''}"
        case le.LessonsDistilled():
            made = "; ".join(f"{one.lesson_id} ({one.state}): {one_line(one.text, 120)}" for one in event.lessons)
            lost = f"recoveries of gates discarded: {event.discarded}" if event.discarded else ""
            return ", ".join(text for text in (made, lost, one_line(event.note, 160)) if text) or "nothing"
        case _:
            return ""


def _of_children(event: Any) -> str:
    match event:
        case ce.ChildIntended():
            most = f", at most {money(event.reserve.cost_usd)} more" if event.reserve.cost_usd else ""
            return f"{one_line(event.name, 40)} {event.child}{most}"
        case ce.ChildUsed():
            asks = "; it asks this agent" if event.asks else ""
            doubt = f" (+ {money(event.in_doubt.cost_usd)} in doubt)" if event.in_doubt.cost_usd else ""
            spent = f"{count(event.turns, 'turn')}, {money(event.usage.cost_usd)}{doubt}"
            return f"{event.child}: {spent}{asks}"
        case ce.ChildWoken() | ce.ChildEnded():
            return event.child
        case ce.ParentSaid():
            return f"by {event.forked_by}"
        case _:
            return ""


def _fields(event: Any) -> str:
    """Short fields by name: the kinds that need no words of their own."""
    pairs = [
        f"{name} {_value(value)}"
        for name, value in msgspec.structs.asdict(event).items()
        if name not in _SKIPPED and value not in (None, "", (), False, {})
    ]
    return one_line(", ".join(pairs), 240) or "-"


def _value(value: Any) -> str:
    match value:
        case Usage():
            return f"{value.tokens:,} tokens, {money(value.cost_usd)}"
        case tuple() | list() if any(isinstance(one, msgspec.Struct) for one in value):  # pyright: ignore[reportUnknownVariableType]
            return f"({len(value)})"  # pyright: ignore[reportUnknownArgumentType]
        case tuple() | list():
            return one_line(", ".join(str(one) for one in value), 100)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case msgspec.Struct():
            return one_line(
                ", ".join(f"{k} {v}" for k, v in msgspec.to_builtins(value).items() if v not in (None, "")), 100
            )
        case _:
            return one_line(str(value), 100)
