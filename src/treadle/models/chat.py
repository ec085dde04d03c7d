"""Chat completions posted as they are: the SDK's own walk over every field of every message costs more than all the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from openai import AsyncOpenAI
    from openai._types import RequestOptions
    from openai.types.chat import ChatCompletion, ChatCompletionChunk


class PlainCompletions:
    """Stands where the SDK keeps its `chat.completions`, and does what its `create` does with a body that is plain JSON.

    The SDK translates field names and dates that our bodies have none of: 0.3 s of a core at 1,000 turns, on each turn.
    """

    def __init__(self, sdk: AsyncOpenAI) -> None:
        self._sdk = sdk

    async def create(
        self,
        *,
        stream: bool,
        extra_headers: Any = None,
        extra_body: Any = None,
        timeout: Any = None,  # noqa: ASYNC109  # the SDK's name
        **body: Any,
    ) -> Any:
        """The completion, or a stream of its chunks. What is omitted in the SDK's way is left out."""
        from openai import AsyncStream, NotGiven, Omit
        from openai.types.chat import ChatCompletion, ChatCompletionChunk

        unsaid = (Omit, NotGiven)
        options: RequestOptions = {"headers": extra_headers or {}, "extra_json": extra_body or {}}
        if not isinstance(timeout, unsaid):
            options["timeout"] = timeout
        answer: Any = await self._sdk.post(
            "/chat/completions",
            cast_to=ChatCompletion,
            body={
                "model": body.pop("model"),
                "stream": stream,
                **{name: value for name, value in body.items() if not isinstance(value, unsaid)},
            },
            options=options,
            stream=stream,
            stream_cls=AsyncStream[ChatCompletionChunk],
        )
        if stream and _is_plain(answer.response):
            return WholeAnswer(ChatCompletion.model_validate_json(await answer.response.aread()))
        return answer


def _is_plain(response: Any) -> bool:
    """Some servers answer whole although a stream was asked for."""
    return str(response.headers.get("content-type", "")).startswith("application/json")


class WholeAnswer:
    """A completion as a stream of one chunk."""

    def __init__(self, completion: ChatCompletion) -> None:
        self._completion = completion

    async def __aenter__(self) -> WholeAnswer:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def close(self) -> None:
        """It has been read."""

    async def __aiter__(self) -> AsyncGenerator[ChatCompletionChunk]:
        from openai.types.chat import ChatCompletionChunk

        whole = self._completion.model_dump(exclude_none=True)
        choices = [
            {"index": one["index"], "delta": _numbered(one["message"]), "finish_reason": one["finish_reason"]}
            for one in whole["choices"]
        ]
        yield ChatCompletionChunk.model_validate({**whole, "object": "chat.completion.chunk", "choices": choices})


def _numbered(message: dict[str, Any]) -> dict[str, Any]:
    """In a stream a call is known by its index."""
    if calls := message.get("tool_calls"):
        return {**message, "tool_calls": [{**call, "index": index} for index, call in enumerate(calls)]}
    return message


def post_plainly(sdk: AsyncOpenAI) -> None:
    """Makes this client's chat completions plain."""
    vars(sdk.chat)["completions"] = PlainCompletions(sdk)
