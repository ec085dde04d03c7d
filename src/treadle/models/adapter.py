"""The model port over pydantic-ai's direct requests: one request on the wire, and every failure a ProviderError."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from treadle.core.usage import Usage
from treadle.kernel.view import View
from treadle.ports.model import Model, ModelRequest, OnDelta, Reply

from .extra import SEPARATOR
from .failures import failure
from .mapping import ANY_ID, MappedView
from .reply import quiet_about_usage, reply_of, whole
from .service import Service
from .wire import one_request

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model as LibraryModel
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.settings import ModelSettings

Adapt = Callable[[dict[str, Any]], dict[str, Any]]
TOTAL_PER_SILENCE = 6  # a response may trickle for so many times the longest silence that is allowed


class PydanticAIModel(Model):
    """One model of one provider through the model library.

    `library_model` must send its requests through `client`, and its SDK must not retry. `timeout_s` is the longest
    silence of the provider; a whole response may take TOTAL_PER_SILENCE times as long. `settings` are the provider's
    defaults (its cache markers); a request's own come on top, and `adapt` says them in the provider's own terms.
    """

    def __init__(
        self,
        name: str,
        library_model: LibraryModel,
        *,
        client: httpx2.AsyncClient,
        service: Service,
        context_window: int,
        max_output_tokens: int,
        timeout_s: float,
        now_us: Callable[[], int],
        price: Callable[[Usage], Decimal | None],
        settings: Mapping[str, Any] | None = None,
        adapt: Adapt = dict,
        legal_id: re.Pattern[str] = ANY_ID,
        flags_errors: bool = False,
        streams: bool = True,
    ) -> None:
        self.name = name
        self.context_window = context_window
        self.max_output_tokens = max_output_tokens
        self._library_model, self._client, self._service = library_model, client, service
        self._timeout_s, self._now_us, self._price = timeout_s, now_us, price
        self._settings, self._adapt = dict(settings or {}), adapt
        self._legal_id, self._flags_errors, self._streams = legal_id, flags_errors, streams
        quiet_about_usage()
        self._views: WeakKeyDictionary[View, MappedView] = WeakKeyDictionary()

    async def request(self, request: ModelRequest, on_delta: OnDelta | None = None) -> Reply:
        """Sends the request once: streamed where `on_delta` wants the text, whole otherwise."""
        try:
            history = self._history(request.view)
            parameters, settings = self._parameters(request), self._request_settings(request)
            with one_request():
                if on_delta is not None and self._streams:
                    response = await self._stream(history, parameters, settings, on_delta)
                    return reply_of(response, model=self.name, streamed=True, price=self._price)
                response = await self._ask(history, parameters, settings)
            reply = reply_of(response, model=self.name, streamed=False, price=self._price)
            if on_delta is not None and reply.text:
                on_delta(reply.text)
            return reply
        except Exception as error:  # noqa: BLE001  # SDKs raise anything on garbage; it is classified, not swallowed
            raise failure(error, self._service, now_us=self._now_us()) from None  # causes hold keys and headers

    def price(self, usage: Usage) -> Decimal | None:
        """What this usage costs now."""
        return self._price(usage)

    async def close(self) -> None:
        """Gives connections back."""
        await self._client.aclose()

    def _history(self, view: View) -> list[ModelMessage]:
        mapped = self._views.get(view)
        if mapped is None:
            mapped = self._views[view] = MappedView(self.name, legal_id=self._legal_id, flags_errors=self._flags_errors)
        return mapped.update(view)

    def _parameters(self, request: ModelRequest) -> ModelRequestParameters:
        from pydantic_ai.messages import InstructionPart
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.tools import ToolDefinition

        texts = ((request.static, False), (request.dynamic, True))
        tools = sorted(request.tools, key=lambda tool: tool.name)
        return ModelRequestParameters(
            instruction_parts=[InstructionPart(text, dynamic=dynamic) for text, dynamic in texts if text],
            function_tools=[
                ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=tool.schema)
                for tool in tools
            ],
            allow_text_output=request.tool_choice == "auto",  # else a call is required, of models that take an order
        )

    def _request_settings(self, request: ModelRequest) -> ModelSettings:
        settings = self._adapt({**self._settings, **request.settings})
        settings["extra_headers"] = {**settings.get("extra_headers", {}), "Idempotency-Key": request.key}
        settings["max_tokens"] = request.max_output_tokens
        settings["timeout"] = self._timeout_s
        settings["request_timeout"] = self._timeout_s * TOTAL_PER_SILENCE
        settings["framing_announcement"] = "never"  # the library would put its own words before ours
        settings.pop("max_retries", None)
        return cast("ModelSettings", settings)

    async def _ask(
        self, history: list[ModelMessage], parameters: ModelRequestParameters, settings: ModelSettings
    ) -> ModelResponse:
        from pydantic_ai.direct import model_request

        return await model_request(
            self._library_model, history, model_settings=settings, model_request_parameters=parameters, instrument=False
        )

    async def _stream(
        self,
        history: list[ModelMessage],
        parameters: ModelRequestParameters,
        settings: ModelSettings,
        on_delta: OnDelta,
    ) -> ModelResponse:
        from pydantic_ai.direct import model_request_stream
        from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

        gap = ""
        async with model_request_stream(
            self._library_model, history, model_settings=settings, model_request_parameters=parameters, instrument=False
        ) as stream:
            begun = False
            async for event in stream:
                text = ""
                if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                    gap = SEPARATOR if begun else ""
                    text = event.part.content
                elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                    text = event.delta.content_delta
                if text:
                    on_delta(gap + whole(text))
                    begun, gap = True, ""
            return stream.get()
