"""Lessons and gates of one loop: looked up at its start, checked in each round, voted on and distilled at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from treadle.core.errors import CheckTimeout, LedgerError
from treadle.core.events import CallbackRaised
from treadle.core.lesson_events import (
    DistilledLesson,
    GateResult,
    GatesChecked,
    LessonEvent,
    LessonsDistilled,
    LessonsRecalled,
    LessonsVoted,
)
from treadle.core.values import replace
from treadle.kernel.actions import DistilLessons, RecallLessons, RunGates, VoteLessons
from treadle.kernel.lessons import home
from treadle.kernel.states import LoopState
from treadle.memory.lessons import (
    MATCHES,
    QUERY_CHARACTERS,
    RECALL_TOKENS,
    candidate,
    chosen,
    from_gate,
    from_loop,
    told_tokens,
)
from treadle.ports.callback import Check, Iteration
from treadle.ports.clock import Clock, CrashPoints
from treadle.ports.lessons import Candidate, Lessons, Vote

from .calling import call
from .host import Host
from .rounds import HostedContext

OnLoopRecovery = Callable[[Iteration, Iteration], Any]
LONGEST_NOTE = 500


@dataclass(frozen=True, slots=True)
class LessonParts:
    """What a loop learns by. Without a store nothing is recalled and nothing kept."""

    store: Lessons | None = None
    tokens: int = RECALL_TOKENS
    gates: Mapping[str, Check] = field(default_factory=dict[str, Check])
    on_loop_recovery: OnLoopRecovery | None = None


class LessonEffect:
    """A store that fails costs a loop its lessons, never its work: what was wrong is on record."""

    def __init__(self, parts: LessonParts, redact: Callable[[str], str], clock: Clock, points: CrashPoints) -> None:
        self.parts, self.redact, self.clock, self.points = parts, redact, clock, points

    async def perform(
        self, action: RecallLessons | RunGates | VoteLessons | DistilLessons, host: Host
    ) -> LessonEvent | CallbackRaised:
        """The outcome of any action that has to do with lessons and gates."""
        match action:
            case RecallLessons():
                return await self.recall(host)
            case RunGates():
                return await self.gates(action, host)
            case VoteLessons():
                return await self.vote(host)
            case DistilLessons():
                return await self.distil(host)

    async def recall(self, host: Host) -> LessonsRecalled:
        """The lessons that fit the task (FR-17)."""
        store, state = self.parts.store, host.state
        if store is None:
            return LessonsRecalled(lessons=(), note="there is no store of lessons")
        start = self.clock.monotonic_us()
        try:
            matches = await store.match(
                state.task[:QUERY_CHARACTERS], role=state.settings.role_key, workspace=home(state), limit=MATCHES
            )
        except LedgerError as error:
            return LessonsRecalled(lessons=(), note=self._note(error))
        found = [replace(one, text=self.redact(one.text)) for one in chosen(matches, tokens=self.parts.tokens)]
        us = self.clock.monotonic_us() - start
        return LessonsRecalled(lessons=tuple(found), tokens=told_tokens(found), us=us)

    async def gates(self, action: RunGates, host: Host) -> GatesChecked | CallbackRaised:
        """Runs every gate, in order."""
        context = HostedContext(host, action.key, await host.receipts())
        output = host.state.last_output_json or "null"
        results: list[GateResult] = []
        self.points.reach("before-gates")
        start = self.clock.monotonic_us()
        for name, gate in self.parts.gates.items():
            try:
                verdict = await gate.check(context, output)
            except LedgerError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever user code raises ends the loop as failed, in its words
                message = f"gate {name}: {type(error).__name__}: {error}"
                us = self.clock.monotonic_us() - start
                timeout = isinstance(error, CheckTimeout | TimeoutError)
                return CallbackRaised(key=action.key, message=message, us=us, timeout=timeout)
            results.append(
                GateResult(gate=name, passed=verdict.accepted, evidence=verdict.evidence or verdict.feedback)
            )
        self.points.reach("after-gates")
        return GatesChecked(results=tuple(results), us=self.clock.monotonic_us() - start)

    async def vote(self, host: Host) -> LessonsVoted:
        """The loop's one vote on each recalled lesson. Repeating it after a crash changes nothing (FR-18)."""
        state = host.state
        memory, at_us = state.memory, self.clock.wall_us()
        votes = [
            Vote(
                step_exec_id=state.step_exec_id,
                lesson_id=one,
                outcome=outcome,
                evidence=self.redact(memory.evidence.get(one, "")),
                at_us=at_us,
            )
            for one, outcome in memory.outcomes.items()
        ]
        if self.parts.store is None:
            return LessonsVoted(outcomes=memory.outcomes, note="there is no store of lessons")
        self.points.reach("before-vote")
        try:
            lessons = await self.parts.store.vote(votes)
        except LedgerError as error:
            return LessonsVoted(outcomes=memory.outcomes, note=self._note(error))
        self.points.reach("after-vote")
        told = {one.lesson_id: one for one in memory.recalled or ()}
        return LessonsVoted(
            outcomes=memory.outcomes,
            confirmed=tuple(one.id for one in lessons if one.standing == "trusted" and not told[one.id].trusted),
            retired=tuple(one.id for one in lessons if one.standing == "retired"),
        )

    async def distil(self, host: Host) -> LessonsDistilled:
        """What accepted work taught, as candidates. Repeating it after a crash changes nothing (FR-19, FR-20)."""
        state = host.state
        if self.parts.store is None:
            return LessonsDistilled(note="there is no store of lessons")
        self.points.reach("before-distil")
        candidates, note = await self._candidates(state)
        try:
            lessons = await self.parts.store.add(candidates) if candidates else []
        except LedgerError as error:
            return LessonsDistilled(note=self._note(error))
        self.points.reach("after-distil")
        distilled = tuple(
            DistilledLesson(lesson_id=one.id, source=made.source, text=made.text, state=one.standing)
            for one, made in zip(lessons, candidates, strict=True)
        )
        return LessonsDistilled(lessons=distilled, note=note)

    async def _candidates(self, state: LoopState) -> tuple[list[Candidate], str]:
        """From gates, and from the loop as a whole. What the evaluator called harmful is not learnt again."""
        found: dict[str, Candidate] = {}
        for recovery in state.memory.recoveries:
            text, about = from_gate(recovery, state)
            made = self._candidate(text, about, state, gate=recovery.gate)
            found[made.id] = made
        note = ""
        if state.last_rejected_json is not None:
            texts, note = await self._of_loop(state.last_rejected_json, state)
            for text, about in texts:
                made = self._candidate(text, about, state)
                found[made.id] = made
        outcomes = state.memory.outcomes
        return [made for made in found.values() if outcomes.get(made.id) != "harmful"], note

    def _candidate(self, text: str, about: str, state: LoopState, gate: str = "") -> Candidate:
        source = "gate" if gate else "loop"
        at_us = self.clock.wall_us()
        return candidate(text, about, state, source=source, gate=gate, at_us=at_us, redact=self.redact)

    async def _of_loop(self, rejected_json: str, state: LoopState) -> tuple[list[tuple[str, str]], str]:
        """(texts with what they are about, a note): of the person's own function, or else Treadle's words for it."""
        rejected = msgspec.json.decode(rejected_json, type=dict[str, Any])
        function = self.parts.on_loop_recovery
        if function is None:
            by_gate = state.memory.recoveries and rejected["iteration"] in {
                one.failed_iteration for one in state.memory.recoveries
            }
            return [] if by_gate else [from_loop(rejected["feedback"], state)], ""
        accepted = Iteration(
            iteration=state.iteration,
            output=msgspec.json.decode(state.last_output_json or "null"),
            feedback=None,
            changed=state.last_changed,
            evidence=state.evidence,
        )
        before = Iteration(
            iteration=rejected["iteration"],
            output=msgspec.json.decode(rejected["output_json"] or "null"),
            feedback=rejected["feedback"],
            changed=tuple(rejected["changed"]),
        )
        try:
            return [(text, text) for text in _texts(await call(function, before, accepted))], ""
        except LedgerError:
            raise
        except Exception as error:  # noqa: BLE001 - the work is accepted: a fault in wording a lesson is noted, and undoes nothing
            return [], f"on_loop_recovery: {self._note(error)}"

    def _note(self, error: Exception) -> str:
        return self.redact(f"{type(error).__name__}: {error}")[:LONGEST_NOTE]


def _texts(given: Any) -> list[str]:
    texts: Sequence[Any] = [] if given is None else [given] if isinstance(given, str) else list(given)
    if not all(isinstance(text, str) and text.strip() for text in texts):
        raise TypeError(f"it must return a text, several, or None, not {given!r:.200}")
    return list(texts)
