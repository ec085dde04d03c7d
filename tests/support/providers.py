"""Endpoints of the large providers that speak their own wire formats, each refusing one request with its own word on when to come back."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from treadle.testing import Answer, LocalServer, Received

JSON = {"content-type": "application/json"}
EVENTS = {"content-type": "text/event-stream"}
Call = tuple[str, dict[str, Any]]


class Provider(NamedTuple):
    """What it answers: a call of a tool, whole or streamed, and a 429 that names a reset so many seconds away."""

    model: str
    path: str  # of the base URL
    calls: Callable[[Call, bool], Answer]
    refuses: Callable[[int], Answer]


def _whole(body: Any, status: int = 200, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status=status, headers={**JSON, **named}, chunks=[json.dumps(body).encode()])


def _events(*events: tuple[str, Any]) -> Answer:
    lines = [(f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n" for name, data in events]
    return Answer(headers=EVENTS, stream=True, chunks=[line.encode() for line in lines])


def _anthropic(call: Call, stream: bool) -> Answer:
    name, args = call
    block: dict[str, Any] = {"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": args}
    message: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-6"}
    usage = {"input_tokens": 10, "output_tokens": 5}
    if not stream:
        return _whole({**message, "content": [block], "stop_reason": "tool_use", "stop_sequence": None, "usage": usage})
    begun = {**message, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    text = {"type": "input_json_delta", "partial_json": json.dumps(args)}
    ended = {"stop_reason": "tool_use", "stop_sequence": None}
    bodies = (
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": {**block, "input": {}}},
        {"type": "content_block_delta", "index": 0, "delta": text},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    )
    return _events(*((str(body["type"]), body) for body in bodies))


def _anthropic_refuses(seconds: int) -> Answer:
    reset = datetime.now(UTC) + timedelta(seconds=seconds + 1)  # whole seconds, as it says them
    error = {"type": "rate_limit_error", "message": "This request would exceed your organization's rate limit."}
    return _whole(
        {"type": "error", "error": error},
        429,
        anthropic_ratelimit_requests_remaining="49",
        anthropic_ratelimit_requests_reset="2025-11-30T10:53:21Z",
        anthropic_ratelimit_input_tokens_remaining="0",
        anthropic_ratelimit_input_tokens_reset=reset.strftime("%Y-%m-%dT%H:%M:%SZ"),
    )


def _openai(call: Call, stream: bool) -> Answer:
    name, args = call
    made = {
        "index": 0,
        "id": f"call_{name}",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(args)},
    }
    head = {"id": "chatcmpl-1", "created": 0, "model": "gpt-5"}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    message = {"role": "assistant", "content": None, "tool_calls": [made]}
    if not stream:
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        return _whole({**head, "object": "chat.completion", "choices": [choice], "usage": usage})
    chunk = {**head, "object": "chat.completion.chunk"}
    return _events(
        ("", {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]}),
        ("", {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
        ("", {**chunk, "choices": [], "usage": usage}),
    )


def _openai_refuses(seconds: int) -> Answer:
    error = {"message": "Rate limit reached.", "type": "tokens", "param": None, "code": "rate_limit_exceeded"}
    return _whole(
        {"error": error},
        429,
        x_ratelimit_remaining_requests="499",
        x_ratelimit_reset_requests="120ms",
        x_ratelimit_remaining_tokens="0",
        x_ratelimit_reset_tokens=f"{seconds}s",
    )


def _google(call: Call, stream: bool) -> Answer:
    name, args = call
    parts = [{"functionCall": {"name": name, "args": args}}]
    body = {
        "candidates": [{"content": {"parts": parts, "role": "model"}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        "modelVersion": "gemini-2.5-pro",
        "responseId": "r1",
    }
    return _events(("", body)) if stream else _whole(body)


def _google_refuses(seconds: int) -> Answer:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{seconds}s"}]
    error = {"code": 429, "message": "You exceeded your quota.", "status": "RESOURCE_EXHAUSTED", "details": details}
    return _whole({"error": error}, 429)


PROVIDERS = {
    "anthropic": Provider("anthropic:claude-sonnet-4-6", "", _anthropic, _anthropic_refuses),
    "openai": Provider("openai:gpt-5", "/v1", _openai, _openai_refuses),
    "google": Provider("google:gemini-2.5-pro", "", _google, _google_refuses),
}


class ProviderEndpoint(LocalServer):
    """Answers with these calls one after another; the request with the number `refused` (from 1) is refused once."""

    def __init__(self, name: str, calls: Sequence[Call], *, refused: int, seconds: int) -> None:
        self.provider, self.asked = PROVIDERS[name], 0
        self._calls, self._refused, self._seconds = list(calls), refused, seconds
        super().__init__(self._respond)

    @property
    def base_url(self) -> str:
        """As `--base-url` takes it."""
        return self.url + self.provider.path

    def _respond(self, received: Received) -> Answer:
        if received.method != "POST":
            return _whole({}, 404)
        self.asked += 1
        if self.asked == self._refused:
            return self.provider.refuses(self._seconds)
        stream = "streamGenerateContent" in received.path or json.loads(received.body).get("stream", False)
        return self.provider.calls(self._calls.pop(0), stream)
