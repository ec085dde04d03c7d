"""Model calls: what one may cost at most, one request on the wire, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from hashlib import blake2b

import msgspec

from treadle.context.prompt import SystemPrompt
from treadle.core.errors import ProviderError
from treadle.core.events import ModelFailed, ModelIntended
from treadle.core.messages import ModelResponded, Prompted, ToolCall
from treadle.core.redaction import cleaned
from treadle.core.tokens import CHARACTERS, estimate
from treadle.core.usage import Usage
from treadle.core.values import replace
from treadle.core.window_events import PromptFacts
from treadle.kernel.actions import CallModel, Compact, IntendCompaction, IntendModel
from treadle.kernel.states import LoopState
from treadle.kernel.view import View
from treadle.kernel.window import window_of
from treadle.ports.clock import Clock, CrashPoints
from treadle.ports.model import Model, ModelRequest, OnDelta, Reply, ToolDef
from treadle.tools.validation import annotate

from .compact import CompactEffect, Compaction
from .host import Host
from .parts import AgentParts

BACKOFF_FIRST_S, BACKOFF_FACTOR, BACKOFF_MAX_S = 1.0, 2.0, 60.0


ModelAction = IntendModel | CallModel | IntendCompaction | Compact
ModelOutcome = Prompted | ModelIntended | ModelResponded | ModelFailed | Compaction


class ModelEffect:
    """Calls the model of one agent. Keeps nothing that a resume would miss: only a calibration of its own estimates."""

    def __init__(
        self,
        parts: AgentParts,
        redact: Callable[[str], str],
        redact_known: Callable[[str], str],
        clock: Clock,
        points: CrashPoints,
    ) -> None:
        self.parts, self.redact, self.redact_known, self.clock, self.points = parts, redact, redact_known, clock, points
        self.prompt = SystemPrompt(parts.static, parts.sections, parts.dynamic)
        self.compaction = CompactEffect(parts, redact, clock, points)
        self._tools: tuple[ToolDef, ...] = ()
        self._tools_json = b""
        self._facts: tuple[Model, str, bytes, PromptFacts] | None = None
        self._known: tuple[int, str, int, int] | None = None  # generation, model, size and tokens at the last response

    def tools(self) -> tuple[ToolDef, ...]:
        """Today's tools; their JSON is made anew only when they change."""
        tools = self.parts.toolset.tools()
        if tools is not self._tools and tools != self._tools:
            ordered = sorted(tools, key=lambda tool: tool.name)  # as they are sent
            self._tools_json = msgspec.json.encode([tuple(t) for t in ordered])
        self._tools = tools
        return tools

    def facts(self, state: LoopState) -> PromptFacts:
        """What an agent's requests have in common; made anew only when the static prompt or the tools change."""
        self.tools()
        static = self.prompt.static(state)
        known, model = self._facts, self.parts.model_of(state)
        if known is None or known[0] is not model or known[1] is not static or known[2] is not self._tools_json:
            facts = prompt_facts(model, static, self._tools_json)
            self._facts = (model, static, self._tools_json, facts)
            return facts
        return known[3]

    async def intend(self, action: IntendModel, host: Host) -> ModelIntended | Prompted | Compaction:
        """What is about to be sent: its digest, and the most that it can cost; or what must be said or done to the history first."""
        view = await host.view(action.phase, self.parts.examples)
        state = host.state
        if self.parts.mounts is not None and (first := self.parts.mounts.due(state, view)) is not None:
            return first
        facts = self.facts(state)
        dynamic = self.prompt.dynamic(state)
        if (compaction := self.compaction.due(view, state, facts, dynamic, action.call)) is not None:
            return compaction
        digest = blake2b(digest_size=12)
        model = self.parts.model_of(state)
        for part in (model.name, self.prompt.static(state), dynamic, view.digest):
            digest.update(part.encode())
        digest.update(self._tools_json)
        return ModelIntended(
            call=action.call,
            reserve=self._reserve(model, view, dynamic, state),
            request=digest.hexdigest(),
            model=model.name,
            prompt=changed_facts(window_of(state).prompt, facts),
        )

    async def perform(self, action: ModelAction, host: Host) -> ModelOutcome:
        """The outcome of any action that has to do with the model."""
        if isinstance(action, IntendModel):
            return await self.intend(action, host)
        if isinstance(action, CallModel):
            return await self.call(action, host)
        facts = self.facts(host.state)
        if isinstance(action, Compact):
            return await self.compaction.run(action, host, facts)
        view = await host.view(action.phase, self.parts.examples)
        return self.compaction.intend(action, view, host.state, facts)

    def _reserve(self, model: Model, view: View, dynamic: str, state: LoopState) -> Usage:
        """An upper bound: no tokenizer makes more tokens than there are bytes; what the provider has counted is known."""
        if self._known is not None and self._known[:2] == (view.generation, model.name):
            _, _, size, tokens = self._known
            most_input = tokens + view.size - size + len(dynamic.encode())
        else:
            prompt = self.prompt.static(state)
            most_input = view.size + len(prompt.encode()) + len(self._tools_json) + len(dynamic.encode())
        most = Usage(input_tokens=most_input, output_tokens=model.max_output_tokens, requests=1)
        cost = model.price(most)
        return most if cost is None else replace(most, cost_usd=cost)

    async def call(self, action: CallModel, host: Host) -> ModelResponded | ModelFailed:
        """Sends the intended request once."""
        view = await host.view(action.phase, self.parts.examples)
        parent = host.state.agent.leaf
        if parent is None:
            raise AssertionError("a request without a prompt")
        tools, model = self.tools(), self.parts.model_of(host.state)
        request = ModelRequest(
            static=self.prompt.static(host.state),
            dynamic=self.prompt.dynamic(host.state),
            view=view,
            tools=tools,
            tool_choice=self.parts.tool_choice,
            max_output_tokens=model.max_output_tokens,
            key=f"{host.execution_id}:{action.call}",
            settings=self.parts.settings,
        )
        self.points.reach("before-model")
        start = self.clock.monotonic_us()
        try:
            on_delta: OnDelta | None = partial(host.tell, "text.delta") if host.watched else None
            reply = await model.request(request, on_delta)
        except ProviderError as error:
            return self._failed(action, error, host.state, self.clock.monotonic_us() - start)
        self.points.reach("after-model")
        us = self.clock.monotonic_us() - start
        if reply.usage_known:
            self._known = (view.generation, model.name, view.size, reply.usage.tokens)
        return self._responded(action.call, parent, reply, us)

    def _responded(self, call: str, parent: int, reply: Reply, us: int) -> ModelResponded:
        return ModelResponded(
            parent=parent,
            call=call,
            text=self.redact(reply.text),
            calls=tuple([self._clean(one) for one in annotate(reply.calls, self._tools)]),
            usage=reply.usage if reply.usage_known else Usage(requests=1),
            finish=reply.finish,
            us=us,
            extra=reply.extra,
        )

    def _clean(self, call: ToolCall) -> ToolCall:
        """Without secrets, before it is stored or run (SE-01): what is only said is cleaned like any text."""
        run = call.kind in ("read", "idempotent", "mutating", "plan")  # the checks of a plan are run, too
        args = cleaned(call.args, self.redact_known if run else self.redact)
        if args == call.args and not call.problem:
            return call
        return replace(call, args=args, problem=self.redact(call.problem))

    def _failed(self, action: CallModel, error: ProviderError, state: LoopState, us: int) -> ModelFailed:
        """A passing failure is tried again after a back-off with jitter; a quota when it is said to be back."""
        retry_at_us = error.retry_at_us
        if error.transient or error.kind == "context-too-long":  # a guard counts these, and ends it
            seconds = min(BACKOFF_MAX_S, BACKOFF_FIRST_S * BACKOFF_FACTOR**state.agent.failures)
            seconds *= 0.5 + self.clock.random() / 2
            retry_at_us = max(retry_at_us or 0, self.clock.wall_us() + int(seconds * 1e6))
        return ModelFailed(
            call=action.call,
            kind=error.kind,
            message=self.redact(str(error))[:2000],
            us=us,
            maybe_charged=error.maybe_charged,
            retry_at_us=retry_at_us,
        )


def prompt_facts(model: Model, static: str, tools_json: bytes) -> PromptFacts:
    """The cache key of a prompt, and the window that it goes into."""
    prompt = blake2b(static.encode(), digest_size=6).hexdigest()
    tools = blake2b(tools_json, digest_size=6).hexdigest()
    return PromptFacts(
        key=blake2b(f"{model.name}\0{prompt}\0{tools}".encode(), digest_size=6).hexdigest(),
        static=prompt,
        tools=tools,
        window=model.context_window,
        reserved=model.max_output_tokens,
        static_tokens=estimate(static),
        tools_tokens=-(-len(tools_json) // CHARACTERS),
    )


def changed_facts(known: PromptFacts | None, facts: PromptFacts) -> PromptFacts | None:
    """The facts where they are to be recorded, with what is new in them; None where they are as they were."""
    if known is None:
        return facts
    if known.key == facts.key and known.window == facts.window and known.reserved == facts.reserved:
        return None
    changed = [
        name
        for name, differs in (
            ("static prompt", known.static != facts.static),
            ("tools", known.tools != facts.tools),
            ("window", (known.window, known.reserved) != (facts.window, facts.reserved)),
        )
        if differs
    ]
    same = known.static == facts.static and known.tools == facts.tools
    return replace(facts, changed=("model", *changed) if same and known.key != facts.key else tuple(changed))


def unpriced(parts: tuple[AgentParts, ...]) -> str:
    """The name of a model without a known price; empty where all have one."""
    for model in (model for part in parts for model in part.models()):
        if model.price(Usage(input_tokens=1, output_tokens=1, requests=1)) is None:
            return model.name
    return ""
