"""A chat completions request, as far as the local model can serve it. Other fields of it are ignored."""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class UnsupportedRequest(ValueError):
    """The local model cannot be asked this; the message says what of it."""


class Part(msgspec.Struct):
    """A piece of a message's content. Only text can be read."""

    type: Literal["text", "refusal"]
    text: str = ""
    refusal: str = ""


class NamedArguments(msgspec.Struct):
    """What a call says: a function's name, and its arguments as JSON."""

    name: str
    arguments: str = ""


class PastCall(msgspec.Struct):
    """An earlier call."""

    function: NamedArguments


class ChatMessage(msgspec.Struct):
    """A message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Part] | None = None
    tool_calls: list[PastCall] | None = None

    @property
    def text(self) -> str:
        """Its content in one piece."""
        if isinstance(self.content, list):
            return "\n".join(part.text or part.refusal for part in self.content)
        return self.content or ""


class FunctionDef(msgspec.Struct):
    """A function that may be called. `parameters` is a JSON Schema."""

    name: str
    parameters: dict[str, Any] | None = None


class Tool(msgspec.Struct):
    """A tool. There are no others than functions."""

    function: FunctionDef
    type: Literal["function"] = "function"


class FunctionName(msgspec.Struct):
    """One function."""

    name: str


class NamedChoice(msgspec.Struct):
    """The one function that has to be called."""

    function: FunctionName


class StreamOptions(msgspec.Struct):
    """What a stream should hold besides."""

    include_usage: bool = False


class ChatRequest(msgspec.Struct):
    """The request."""

    messages: list[ChatMessage]
    tools: list[Tool] | None = None
    tool_choice: Literal["auto", "required", "none"] | NamedChoice | None = None
    max_completion_tokens: int | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    stop: str | list[str] | None = None
    n: int | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None


def read_request(body: bytes) -> ChatRequest:
    """The request. UnsupportedRequest, with the path, for what is malformed or cannot be served."""
    try:
        request = msgspec.json.decode(body, type=ChatRequest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnsupportedRequest(f"the request cannot be read: {error}") from error
    if not request.messages:
        raise UnsupportedRequest("messages: at least one is needed")
    if request.n not in (None, 1):
        raise UnsupportedRequest("n: one answer a request")
    return request
