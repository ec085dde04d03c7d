"""Compacting the history of one agent: measures its window, decides by the kernel's rules, and pays for a summary where one is needed."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Literal, NamedTuple

from treadle.context.summary import ASK, STATIC, completed
from treadle.core.errors import ProviderError
from treadle.core.messages import Cause, Compacted, Depth, Prompted
from treadle.core.tokens import CHARACTERS, weight
from treadle.core.usage import NO_USAGE, Usage
from treadle.core.values import replace
from treadle.core.window_events import CompactionFailed, CompactionIntended, PromptFacts
from treadle.kernel import compress, window
from treadle.kernel.actions import Compact, IntendCompaction
from treadle.kernel.agent import settings_of
from treadle.kernel.compress import Row
from treadle.kernel.states import LoopState
from treadle.kernel.view import View, weight_of
from treadle.kernel.window_state import WindowState
from treadle.ports.clock import Clock, CrashPoints
from treadle.ports.model import Model, ModelRequest, Reply

from .host import Host
from .parts import AgentParts

SUMMARY_TOKENS = (256, 2_048)  # what a summary may have at most, by the size of the window
SUMMARY_SHARE = 8  # ... an eighth of it
TRANSCRIPT_PERCENT = 60  # of the window that the summarised turns may fill
LEFT_OUT = "Earlier turns were left out without a summary, since the conversation had grown too long."

Compaction = CompactionIntended | Compacted | CompactionFailed


class Size(NamedTuple):
    """What a window holds and may hold, in tokens; `overhead` is the prompt and the tools, in quarter tokens."""

    used: int
    budget: int
    overhead: int


class Wish(NamedTuple):
    """A compaction that is to be made."""

    depth: Depth
    by: Cause
    call: str


class CompactEffect:
    """Compactions of one agent."""

    def __init__(self, parts: AgentParts, redact: Callable[[str], str], clock: Clock, points: CrashPoints) -> None:
        self.parts, self.redact, self.clock, self.points = parts, redact, clock, points

    def due(self, view: View, state: LoopState, facts: PromptFacts, dynamic: str, call: str) -> Compaction | None:
        """What must happen to the history before the next request; None nearly always."""
        known, settings = window.window_of(state), settings_of(state)
        size = _size(view, known, facts, dynamic)
        if size.used * 100 < settings.compact_at * size.budget:
            return None
        calibration = window.calibrated(view, size.overhead, known.calibration)

        def micro_saves() -> int:
            return window.tokens(compress.saved_by_micro(_rows(view)), calibration)

        depth = window.due(known, settings, size.used, size.budget, micro_saves)
        if depth is None:
            return None
        found = self._intended(view, state, size, Wish(depth, "pressure", f"{call}.compact"))
        if isinstance(found, CompactionFailed) and depth in ("clamp", "micro"):
            return None  # nothing can be taken away: the provider may take the request all the same
        return found

    def intend(self, action: IntendCompaction, view: View, state: LoopState, facts: PromptFacts) -> Compaction:
        """The compaction that somebody asked for."""
        size = _size(view, window.window_of(state), facts, "")
        if action.by == "overflow":  # the provider's window is smaller than ours: half of what it refused
            size = size._replace(budget=min(size.budget, size.used))
        return self._intended(view, state, size, Wish(action.depth, action.by, action.call))

    def _intended(self, view: View, state: LoopState, size: Size, wish: Wish) -> Compaction:
        known, leaf = window.window_of(state), state.agent.leaf
        calibration = window.calibrated(view, size.overhead, known.calibration)
        room = size.budget * CHARACTERS * 1_000 // calibration - size.overhead
        plan = compress.plan(_rows(view), view.weights, wish.depth, max(room, 0))
        if plan is None or leaf is None:
            return CompactionFailed(
                call=wish.call,
                depth=wish.depth,
                by=wish.by,
                reason="nothing",
                message="there is too little to take away",
                opens=window.opens_after_failure(known, wish.by),
            )
        if wish.depth in ("auto", "full"):
            return self._summary_intended(view, state, plan, size, wish, calibration)
        event = Compacted(
            parent=plan.parent,
            base=leaf,
            depth=wish.depth,
            by=wish.by,
            cut=plan.cut,
            keep=plan.keep,
            trim_before=plan.trim_before,
            trim_over=compress.TRIM_OVER if plan.trim_before else 0,
            trim_to=compress.TRIM_TO if plan.trim_before else 0,
            clip_to=plan.clip_to,
            before=size.used,
            after=0,
            calibration=calibration,
            summary=LEFT_OUT if plan.cut else "",
        )
        return _with_size(view, event)

    def _summary_intended(
        self, view: View, state: LoopState, plan: compress.Plan, size: Size, wish: Wish, calibration: int
    ) -> CompactionIntended:
        model = self.parts.model_of(state)
        request = self._request(model, view, plan.folded, size.budget, "")
        input_tokens = request.view.size + len(STATIC)  # no tokenizer makes more tokens than there are bytes
        most = Usage(input_tokens=input_tokens, output_tokens=request.max_output_tokens, requests=1)
        cost = model.price(most)
        return CompactionIntended(
            call=wish.call,
            depth=wish.depth,
            by=wish.by,
            reserve=most if cost is None else replace(most, cost_usd=cost),
            request=blake2b(f"{model.name}{STATIC}{request.view.digest}".encode(), digest_size=12).hexdigest(),
            model=model.name,
            base=view.leaf or 0,
            cut=plan.cut,
            keep=plan.keep,
            before=size.used,
            calibration=calibration,
        )

    def _request(self, model: Model, view: View, folded: tuple[int, ...], budget: int, key: str) -> ModelRequest:
        """A short conversation of its own: no tools, no reasoning of earlier turns, and never longer than the window."""
        limit = budget * CHARACTERS * TRANSCRIPT_PERCENT // 100
        text = compress.transcript([view.messages[position] for position in folded], limit)
        asked = View()
        asked.append(1, Prompted(parent=None, text=ASK.format(transcript=text)))
        least, most = SUMMARY_TOKENS
        return ModelRequest(
            static=STATIC,
            dynamic="",
            view=asked,
            tools=(),
            tool_choice="auto",
            max_output_tokens=min(max(budget // SUMMARY_SHARE, least), most, model.max_output_tokens),
            key=key,
            settings=self.parts.settings,
        )

    async def run(self, action: Compact, host: Host, facts: PromptFacts) -> Compacted | CompactionFailed:
        """Asks for the intended summary, once."""
        view = await host.view(action.phase, self.parts.examples)
        known = window.window_of(host.state)
        intended = known.intended
        if intended is None:
            raise AssertionError("compacting without an intent")
        folded = _folded(view, intended)
        budget = window.budget_of(facts, known.ceiling)
        model = self.parts.model_of(host.state)
        request = self._request(model, view, folded, budget, f"{host.execution_id}:{action.call}")
        self.points.reach("before-compaction")
        start = self.clock.monotonic_us()
        try:
            reply = await model.request(request, None)
        except ProviderError as error:
            failed = _failed(intended, known, self.clock.monotonic_us() - start, "provider", self.redact(str(error)))
            return replace(failed, kind=error.kind, maybe_charged=error.maybe_charged)
        self.points.reach("after-compaction")
        return self._summarised(host.state, view, intended, folded, reply, self.clock.monotonic_us() - start)

    def _summarised(
        self,
        state: LoopState,
        view: View,
        intended: CompactionIntended,
        folded: tuple[int, ...],
        reply: Reply,
        us: int,
    ) -> Compacted | CompactionFailed:
        known = window.window_of(state)
        usage = reply.usage if reply.usage_known else Usage(requests=1)
        text = self.redact(reply.text).strip()
        if not text:
            return replace(_failed(intended, known, us, "empty", "the summary is empty"), usage=usage)
        if intended.depth == "full":
            text = completed(text, compress.recent_files(view.messages))
        if weight(text) >= sum(view.weights[position] for position in folded):
            said = "the summary is longer than what it stands for"
            return replace(_failed(intended, known, us, "grew", said), usage=usage)
        event = Compacted(
            parent=_fork(view, folded),
            base=intended.base,
            depth=intended.depth,
            by=intended.by,
            cut=intended.cut,
            keep=intended.keep,
            summary=text,
            before=intended.before,
            after=0,
            calibration=intended.calibration,
            call=intended.call,
            usage=usage,
            us=us,
        )
        return _with_size(view, event)


def _failed(
    intended: CompactionIntended,
    known: WindowState,
    us: int,
    reason: Literal["provider", "empty", "grew"],
    message: str,
) -> CompactionFailed:
    return CompactionFailed(
        call=intended.call,
        depth=intended.depth,
        by=intended.by,
        reason=reason,
        message=message[:2000],
        usage=NO_USAGE,
        us=us,
        opens=window.opens_after_failure(known, intended.by),
    )


def _fork(view: View, folded: tuple[int, ...]) -> int | None:
    """The last message that both branches begin with."""
    return (view.seqs[folded[0] - 1] or None) if folded and folded[0] else None


def _folded(view: View, intended: CompactionIntended) -> tuple[int, ...]:
    keep = set(intended.keep)
    at = view.seqs.index(intended.cut)
    return tuple(position for position in range(at) if view.seqs[position] and view.seqs[position] not in keep)


def _with_size(view: View, event: Compacted) -> Compacted:
    """With what the new branch comes to: what was measured, less what has been taken away."""
    old = {id(message): weight for message, weight in zip(view.messages, view.weights, strict=True)}
    rows = compress.compacted(_rows(view), 0, event)
    made = sum(old.get(id(row.message)) or weight_of(row.message, 0) for row in rows)
    change = window.tokens(abs(view.weight - made), event.calibration)
    return replace(event, after=max(1, event.before - change if made < view.weight else event.before + change))


def _size(view: View, known: WindowState, facts: PromptFacts, dynamic: str) -> Size:
    overhead = (facts.static_tokens + facts.tools_tokens) * CHARACTERS + weight(dynamic)
    used = window.measured(view, overhead, known.calibration).used
    return Size(used, window.budget_of(facts, known.ceiling), overhead)


def _rows(view: View) -> list[Row]:
    return [Row(seq, message) for seq, message in zip(view.seqs, view.messages, strict=True)]
