"""Chat completions on either side of the model: the request as llama.cpp takes it, its answer as clients expect it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

from .dialect import chat_messages, read_call
from .grammar import tool_grammar
from .request import ChatRequest, NamedChoice, UnsupportedRequest
from .schema import Function, functions

_SAMPLING = ("temperature", "seed", "top_p", "top_k", "min_p", "stop")
_MAX_TOKENS = 256  # where the request names no limit: a small model does not always find an end


def offered_functions(request: ChatRequest) -> tuple[Function, ...]:
    """The tools that this request lets the model call. UnsupportedRequest for those that have no text form."""
    choice = request.tool_choice
    if choice == "none":
        return ()
    offered = functions(request.tools or ())
    if isinstance(choice, NamedChoice):
        offered = tuple(function for function in offered if function.name == choice.function.name)
    if not offered and choice not in (None, "auto"):
        raise UnsupportedRequest("tool_choice: there is no such tool")
    return offered


def llama_query(request: ChatRequest, offered: tuple[Function, ...]) -> dict[str, Any]:
    """The request for llama.cpp. UnsupportedRequest for a pattern that has no grammar."""
    sampling = {key: getattr(request, key) for key in _SAMPLING}
    query: dict[str, Any] = {key: value for key, value in sampling.items() if value is not None} | {
        "messages": chat_messages(request.messages, offered),
        "max_tokens": request.max_completion_tokens or request.max_tokens or _MAX_TOKENS,
        "cache_prompt": True,
    }
    if offered:
        query["grammar"] = tool_grammar(offered, text=request.tool_choice in (None, "auto"))
    return query


def completion(answer: Mapping[str, Any], offered: tuple[Function, ...], model: str) -> dict[str, Any]:
    """llama.cpp's answer as a chat completion: a call that the text spells out becomes `tool_calls`.

    A text that the token limit cut off before it was a whole call stays text, with finish reason `length`.
    """
    choice = answer["choices"][0]
    text: str = choice["message"]["content"] or ""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    finish: str = choice["finish_reason"]
    if call := read_call(text, offered):
        message = {"role": "assistant", "content": None, "tool_calls": [_tool_call(*call)]}
        finish = "length" if finish == "length" else "tool_calls"
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion",
        "created": answer["created"],
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
        "usage": answer["usage"],
    }


def event_stream(whole: Mapping[str, Any], *, usage: bool) -> bytes:
    """A completion for a streaming client: a chunk with all of it, one with the finish, one with the usage if asked."""
    head = {key: whole[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    choice = whole["choices"][0]
    calls = [{"index": i, **call} for i, call in enumerate(choice["message"].get("tool_calls", ()))]
    delta = choice["message"] | ({"tool_calls": calls} if calls else {})
    chunks: list[dict[str, Any]] = [
        head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        head | {"choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]},
    ]
    if usage:
        chunks.append(head | {"choices": [], "usage": whole["usage"]})
    return b"".join(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks) + b"data: [DONE]\n\n"


def error_body(message: str, kind: str = "invalid_request_error", code: str | None = None) -> dict[str, Any]:
    """An error in the form that clients know."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _tool_call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"id": f"call_{uuid.uuid4().hex[:16]}", "type": "function", "function": function}
