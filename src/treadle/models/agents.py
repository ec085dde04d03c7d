"""Agents of the model library as actors and checks: each of their requests is announced before it is sent, and counted after.

Such an agent keeps its own model, tools and retries. For Treadle it is a callback: killed in the middle it is run again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from treadle.core.errors import ConfigurationError, DefinitionError, InvalidOutput, ProviderError
from treadle.core.usage import NO_USAGE, ZERO_USD, Usage
from treadle.core.values import replace
from treadle.ports.callback import Actor, ActorResult, Check, RoundContext, Verdict, accept, reject

from .failures import failure
from .prices import known_cost
from .reply import usage_of
from .service import Service

if TYPE_CHECKING:
    from pydantic_ai.agent import AbstractAgent
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
    from pydantic_ai.settings import ModelSettings

OUTPUT_TOKENS = 4_096  # of a request that does not say: what is reserved for its answer
_BYTES_A_TOKEN = 4
_SHOWN = 8_000  # characters of an output that a judging agent is shown


class LimitReached(Exception):
    """A limit of the loop is reached: the agent sends nothing more."""


class LibraryAgent:
    """What actor and check share: the agent, its model, and how it is run within one phase."""

    def __init__(self, agent: AbstractAgent[Any, Any], *, now_us: Callable[[], int]) -> None:
        """DefinitionError where it cannot run as it is; ConfigurationError where its model lacks a key."""
        self.agent, self._now_us = agent, now_us
        self._model = _model_of(agent)
        self.name = f"{self._model.system}:{self._model.model_name}"
        if agent.deps_type not in (object, type(None), RoundContext):
            raise DefinitionError(
                f"The pydantic-ai agent needs deps of type {agent.deps_type.__name__}: run it in a function of yours, "
                "async def act(ctx, feedback), or let deps_type be treadle.RoundContext."
            )

    def price(self, usage: Usage) -> Decimal | None:
        """What the library's price data says; None for a model that it does not know."""
        model = self._model
        return known_cost(usage, model=model.model_name, provider=model.system, at_us=self._now_us())

    async def run(self, context: RoundContext, prompt: str, **options: Any) -> Any:
        """The output of one run. ProviderError, InvalidOutput, DefinitionError; LimitReached once a limit is."""
        from pydantic_ai.exceptions import AgentRunError, ModelAPIError, UserError
        from pydantic_ai.usage import UsageLimits

        deps = context if self.agent.deps_type is RoundContext else None
        model = _counted(self._model, context, self)
        try:
            result: Any = await self.agent.run(
                prompt, model=model, deps=deps, usage_limits=UsageLimits(request_limit=None), **options
            )
        except ModelAPIError as error:
            raise self.failure(error) from None
        except AgentRunError as error:
            raise InvalidOutput(f"{type(error).__name__}: {error}") from error
        except UserError as error:
            raise DefinitionError(str(error)) from error
        return result.output

    def actor(self) -> LibraryActor:
        """It acts."""
        return LibraryActor(self)

    def check(self) -> LibraryCheck:
        """It judges."""
        return LibraryCheck(self)

    def failure(self, error: Exception) -> ProviderError:
        """What this exception of its model means."""
        return failure(error, Service(name=self.name), now_us=self._now_us())


class LibraryActor(Actor):
    """Acts by running the agent on the task, and on the feedback of the last rejection below it.

    The output is its result as JSON. Every round is a run of its own, without the messages of the last.
    """

    def __init__(self, agent: LibraryAgent) -> None:
        self.library = agent

    async def act(self, context: RoundContext) -> ActorResult:
        prompt = context.task
        if context.feedback is not None:
            prompt += f"\n\nThe last attempt was rejected:\n{context.feedback}"
        try:
            output = await self.library.run(context, prompt)
        except LimitReached as reached:
            return ActorResult("null", str(reached))
        return ActorResult(_json_of(output))


class LibraryCheck(Check):
    """Judges by running the agent on the task, the output and the changed paths; it must answer with a judgement."""

    def __init__(self, agent: LibraryAgent) -> None:
        self.library = agent

    async def check(self, context: RoundContext, output_json: str) -> Verdict:
        from pydantic import BaseModel, Field, model_validator

        class Judgement(BaseModel):
            """Whether the work is good."""

            accept: bool
            feedback: str = Field("", description="Where it is not accepted: what is wrong, and what would be right.")

            @model_validator(mode="after")
            def _says_why(self) -> Judgement:
                if not self.accept and not self.feedback.strip():
                    raise ValueError("a rejection needs feedback")
                return self

        prompt = f"Judge this work.\n\nThe task:\n{context.task}\n\nIts result, as JSON:\n{output_json[:_SHOWN]}"
        if context.changed:
            prompt += "\n\nChanged files:\n" + "\n".join(context.changed)
        try:
            said: Judgement = await self.library.run(context, prompt, output_type=Judgement)
        except LimitReached as reached:
            return reject(str(reached))
        return accept(evidence=said.feedback) if said.accept else reject(said.feedback)


def _model_of(agent: AbstractAgent[Any, Any]) -> Model:
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model

    if agent.model is None:
        raise DefinitionError("The pydantic-ai agent has no model: Agent('provider:model', ...).")
    try:
        return infer_model(agent.model)
    except UserError as error:
        raise ConfigurationError(str(error)) from error


def _json_of(output: Any) -> str:
    from pydantic_core import PydanticSerializationError, to_json

    try:
        return to_json(output, inf_nan_mode="constants").decode()
    except (PydanticSerializationError, ValueError) as error:
        raise InvalidOutput(f"The agent's output is no JSON value ({error}), but {output!r:.200}.") from error


class _Account:
    """The requests of one run: an intent before each, its usage after."""

    def __init__(self, context: RoundContext, library: LibraryAgent) -> None:
        self._context, self._library, self._asked = context, library, 0

    async def before(self, messages: list[ModelMessage], settings: ModelSettings | None) -> str:
        """Announces the next request, durably; its receipt. LimitReached."""
        if reached := self._context.limit_reached():
            raise LimitReached(reached)
        self._asked += 1
        receipt = f"{self._context.idempotency_key}:{self._context.attempt}:{self._asked}"
        await self._context.intend(receipt, self._reserve(messages, settings))
        return receipt

    def after(self, receipt: str, counted: Any) -> None:
        """Counts it. What gave no usage that makes sense stays in doubt."""
        usage, known = usage_of(counted)
        if known:
            self._context.report_usage_once(receipt, self._priced(usage))

    def failed(self, receipt: str, error: Exception) -> None:
        """Nothing was charged where the provider refused it; everything else stays in doubt."""
        if not self._library.failure(error).maybe_charged:
            self._context.report_usage_once(receipt, NO_USAGE)

    def _reserve(self, messages: list[ModelMessage], settings: ModelSettings | None) -> Usage:
        from pydantic_ai.messages import ModelMessagesTypeAdapter

        size = len(ModelMessagesTypeAdapter.dump_json(messages))
        limit = (settings or {}).get("max_tokens") or OUTPUT_TOKENS
        return self._priced(Usage(input_tokens=size // _BYTES_A_TOKEN, output_tokens=limit, requests=1))

    def _priced(self, usage: Usage) -> Usage:
        return replace(usage, cost_usd=self._library.price(usage) or ZERO_USD)


def _counted(model: Model, context: RoundContext, library: LibraryAgent) -> Model:
    """The model, with an account of what it is asked."""
    from pydantic_ai.models.wrapper import WrapperModel

    account = _Account(context, library)

    class Counted(WrapperModel):
        async def request(
            self,
            messages: list[ModelMessage],
            model_settings: ModelSettings | None,
            model_request_parameters: ModelRequestParameters,
        ) -> ModelResponse:
            receipt = await account.before(messages, model_settings)
            try:
                response = await super().request(messages, model_settings, model_request_parameters)
            except Exception as error:  # whatever it was, the request may have been charged: noted, and passed on
                account.failed(receipt, error)
                raise
            account.after(receipt, response.usage)
            return response

        @asynccontextmanager
        async def request_stream(
            self,
            messages: list[ModelMessage],
            model_settings: ModelSettings | None,
            model_request_parameters: ModelRequestParameters,
            run_context: Any = None,
        ) -> AsyncGenerator[StreamedResponse]:
            receipt = await account.before(messages, model_settings)
            async with super().request_stream(
                messages, model_settings, model_request_parameters, run_context
            ) as response:
                yield response
                account.after(receipt, response.usage)

    return Counted(model)
