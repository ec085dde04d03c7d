"""Candidates side by side: each a task of an execution of its own, so that a kill loses and pays twice for none that was done (TC-28)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, cast

import anyio
from anyio import to_thread

from treadle.core.codec import decode
from treadle.core.errors import (
    ChildFailed,
    DefinitionError,
    InvalidVerdict,
    LedgerError,
    NoneAccepted,
    ProviderError,
    UnknownExecution,
)
from treadle.core.strict_json import from_json, to_json
from treadle.effects.candidates import CandidateScopes, Kept, Seen, note_kept, remove_all
from treadle.ports.callback import Verdict
from treadle.ports.clock import CrashPoints
from treadle.ports.ledger import Ledger
from treadle.ports.speculation import MOST_CANDIDATES, Candidate, Lost, Select, Speculated, Validate
from treadle.ports.task import Nest, TaskContext
from treadle.runtime.contexts import HostedContext, child_id
from treadle.runtime.workflow_journal import load_workflow
from treadle.settings import Settings
from treadle.spec.definitions import Loop
from treadle.spec.workflows import Asks, Task, Workflow

from .stores import store_files

_MARK = "speculated"  # the key that tells an outcome from a state that a candidate has saved
_ENDED = "ended before it was judged"


def folder_of(settings: Settings, child: str) -> Path:
    """Where the candidates of a speculation have their folders."""
    return settings.state_dir / "candidates" / child


class Speculation:
    """One call. `fault` finds a provider's fault in an exception."""

    def __init__(
        self,
        nest: Nest,
        ledger: Ledger,
        settings: Settings,
        candidates: Sequence[Candidate | Any],
        validate: Validate,
        *,
        select: Select,
        workspace: str | Path | None,
        child: str,
        kept: str,
        fault: Callable[[BaseException], ProviderError | None],
        redact: Callable[[str], str],
        points: CrashPoints,
    ) -> None:
        check(candidates, validate, select, workspace)
        self._nest, self._ledger, self._child = nest, ledger, child
        self._kept = kept  # what trees and folders are kept as: the same for every replay, also where the child's name was given up
        self._candidates, self._validate, self._select = candidates, validate, select
        self._fault, self._redact, self._points = fault, redact, points
        self._folder = folder_of(settings, kept)
        self._scopes: CandidateScopes | None = None
        if workspace is not None:
            trees = settings.state_dir / "trees"
            self._scopes = CandidateScopes(workspace, state_dir=trees, exclude=store_files(ledger.url))
        self._base = ""
        self._opening = anyio.Lock()
        self._decided = False
        self._racing: dict[int, anyio.CancelScope] = {}

    def workflow(self) -> Workflow:
        """One task a candidate."""
        names = [_name(candidate) for candidate in self._candidates] + [_name(self._validate), self._select]
        version = blake2b("\0".join(names).encode(), digest_size=8).hexdigest()
        tasks = [
            Task(f"candidate-{number}", self._performing(number), interaction=Asks())
            for number in range(1, len(self._candidates) + 1)
        ]
        return Workflow("speculate", tasks, version=version, concurrency=len(tasks))

    async def run(self, ctx: TaskContext, input: Any, key: str) -> Speculated:
        """Until one is taken. What control flow leaves behind, a replay goes on with."""
        if self._scopes is not None:
            kept = Kept(execution=ctx.execution_id, workspace=str(self._scopes.root), name=self._kept)
            await to_thread.run_sync(note_kept, self._folder, kept)
            self._base = await self._scopes.pin(self._kept)
        self._decided = await self._was_decided()
        try:
            found = await ctx.run(self.workflow(), ctx.input if input is None else input, key=key)
        except ChildFailed:
            await self._clear()
            raise
        outcomes = {int(task.rpartition("-")[2]): outcome for task, outcome in found.output.items()}
        taken = self._chosen(outcomes)
        if taken is None:
            await self._clear()
            raise NoneAccepted([outcomes[number]["why"] for number in sorted(outcomes)])
        outcome = outcomes[taken]
        self._points.reach("before-take")
        if self._scopes is not None:
            await self._scopes.take(outcome["base"], Seen(outcome["tree"], tuple(outcome["paths"])))
        self._points.reach("after-take")
        await self._clear()
        self._points.reach("candidates-cleared")
        return Speculated(
            number=taken,
            output=outcome["output"],
            score=outcome["score"],
            paths=tuple(outcome["paths"]),
            lost=tuple(Lost(number, outcomes[number]["why"]) for number in sorted(outcomes) if number != taken),
            execution_id=found.execution_id,
        )

    def _chosen(self, outcomes: dict[int, dict[str, Any]]) -> int | None:
        """The first by the order in which they ended, or the best; of equals the first by number."""
        accepted = [number for number, outcome in outcomes.items() if outcome[_MARK]]
        if not accepted:
            return None
        if self._select == "first":
            return accepted[0]
        return min(accepted, key=lambda number: (-(outcomes[number]["score"] or 0.0), number))

    async def _clear(self) -> None:
        """Ends what losers have left running in executions of their own, and removes all folders and what was kept of them."""
        with anyio.CancelScope(shield=True):
            for number in range(1, len(self._candidates) + 1):
                inner = child_id(self._child, f"candidate-{number}", 1, "perform", "run")
                await self._nest.cancel(inner, "another candidate was taken")
            if self._scopes is not None:
                await self._scopes.unpin(self._kept)
            await to_thread.run_sync(remove_all, self._folder)

    async def _was_decided(self) -> bool:
        """Whether a candidate had been accepted before a kill: then no other one begins again."""
        if self._select == "best":
            return False
        try:
            state = await load_workflow(self._ledger, self._child)
        except UnknownExecution:
            return False
        places = [done.at for done in state.done.values()]
        places += [task.saved_at for task in state.active.values() if task.saved_at is not None]
        for at in places:
            (record,) = await self._ledger.records(self._child, after=at - 1, to=at)
            event: Any = decode(record.kind, record.version, record.body)
            if _accepted(from_json(getattr(event, "json", "") or "null")):
                return True
        return False

    # ---- one candidate

    def _performing(self, number: int) -> Candidate:
        async def perform(ctx: TaskContext) -> dict[str, Any]:
            assert ctx.interaction is not None
            saved = ctx.interaction.state
            if isinstance(saved, dict) and _MARK in saved:
                return cast("dict[str, Any]", saved)
            if self._decided:
                return _lost(_ENDED)
            outcome = await self._raced(cast("HostedContext", ctx), number)
            if outcome is None:
                return _lost(_ENDED)
            await ctx.interaction.save(outcome)  # durable before any other is ended for it
            if outcome[_MARK] and self._select == "first":
                self._decided = True
                for scope in self._racing.values():
                    scope.cancel()
            return outcome

        return perform

    async def _raced(self, ctx: HostedContext, number: int) -> dict[str, Any] | None:
        outcome: dict[str, Any] | None = None
        with anyio.CancelScope() as scope:
            self._racing[number] = scope
            try:
                outcome = await self._outcome(ctx, number)
            finally:
                del self._racing[number]
        return outcome

    async def _outcome(self, ctx: HostedContext, number: int) -> dict[str, Any]:
        """What came of it; a candidate that raises is lost, but a quota that is used up pauses all of them."""
        try:
            return await self._judged(ctx, number)
        except (LedgerError, InvalidVerdict):
            raise
        except Exception as error:  # a candidate is the user's code, and may raise anything: it alone is lost
            fault = self._fault(error)
            if fault is not None and fault.kind == "quota":
                raise
            return _lost(self._redact(f"{type(error).__name__}: {error}")[:2000])

    async def _judged(self, ctx: HostedContext, number: int) -> dict[str, Any]:
        folder = self._folder / str(number)
        if self._scopes is not None:
            async with self._opening:  # git locks the repository while it adds a worktree
                # What was interrupted begins anew. An execution inside it, an answer and a quota pause go on from what is there.
                anew = not (ctx.begun.children or ctx.begun.answers or ctx.quota)
                ctx.workspace = await self._scopes.open(folder, self._base, anew=anew)
        output = await self._made(ctx, number)
        to_json(output, "output")
        seen = Seen("", ())
        if self._scopes is not None:
            seen = await self._scopes.seen(folder, self._base, self._kept, number)
        verdict = await self._validate(ctx, output)
        accepted, score, why = _read(verdict)
        made: dict[str, Any] = {"output": output, "base": self._base, "tree": seen.tree, "paths": list(seen.paths)}
        return {_MARK: accepted, "score": score, "why": why, **made}

    async def _made(self, ctx: HostedContext, number: int) -> Any:
        candidate = self._candidates[number - 1]
        if isinstance(candidate, Loop):
            own = candidate if ctx.workspace is None else replace(candidate, workspace=ctx.workspace)
            return (await ctx.run(own, ctx.input, key="run")).output
        if isinstance(candidate, Workflow):
            return (await ctx.run(candidate, ctx.input, key="run")).output
        return await cast("Candidate", candidate)(ctx)


def check(candidates: object, validate: object, select: object, workspace: object) -> None:
    """DefinitionError says what is wrong."""
    if isinstance(candidates, str) or not isinstance(candidates, Sequence):
        raise DefinitionError(
            f"candidates is a sequence of async functions, Loops or Workflows, not {candidates!r:.100}."
        )
    listed = cast("Sequence[object]", candidates)
    if not 1 <= len(listed) <= MOST_CANDIDATES:
        raise DefinitionError(f"There are 1 to {MOST_CANDIDATES} candidates, not {len(listed)}.")
    for number, candidate in enumerate(listed, start=1):
        if not isinstance(candidate, Loop | Workflow) and not callable(candidate):
            raise DefinitionError(
                f"Candidate {number} is an async function, a Loop or a Workflow, not {candidate!r:.100}."
            )
        if workspace is None and isinstance(candidate, Loop) and candidate.workspace is not None:
            raise DefinitionError(
                f"Candidate {number} has a workspace: give it to speculate(), which makes one for each."
            )
    if not callable(validate):
        raise DefinitionError(f"validate must be an async function, not {validate!r:.100}.")
    if select not in ("first", "best"):
        raise DefinitionError(f"select is first or best, not {select!r}.")
    if workspace is not None and not (isinstance(workspace, str | Path) and Path(workspace).is_dir()):
        raise DefinitionError(f"The workspace {workspace!r:.200} is no folder.")


def _read(verdict: object) -> tuple[bool, float | None, str]:
    """(accepted, score, why not). InvalidVerdict."""
    if isinstance(verdict, Verdict):
        return verdict.accepted, None, "" if not verdict.accepted and not verdict.feedback else verdict.feedback
    if isinstance(verdict, int | float) and not isinstance(verdict, bool) and math.isfinite(verdict):
        return True, float(verdict), ""
    raise InvalidVerdict(f"validate must return accept(), reject(feedback) or a finite score, not {verdict!r:.80}")


def _accepted(saved: object) -> bool:
    return isinstance(saved, dict) and cast("dict[str, Any]", saved).get(_MARK) is True


def _lost(why: str) -> dict[str, Any]:
    return {_MARK: False, "score": None, "why": why, "output": None, "tree": "", "paths": []}


def _name(candidate: object) -> str:
    if isinstance(candidate, Loop | Workflow):
        return f"{type(candidate).__name__} {candidate.name} {candidate.version}"
    return getattr(candidate, "__qualname__", type(candidate).__qualname__)
