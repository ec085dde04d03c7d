"""A scripted OpenAI-compatible endpoint with a bill of its own: `python -m treadle.testing.endpoint SCRIPT.json`."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Self, cast

from treadle.core.errors import InputError
from treadle.core.usage import Usage
from treadle.models.prices import Price, parse_price

from .bill import Bill
from .script import Director, Fault, Order, Script, Turn, args_text, fault_usage, turn_usage
from .server import Answer, LocalServer, Received

_JSON = {"content-type": "application/json"}
_PIECE = 24  # characters of text to a chunk of a stream


class ScriptedEndpoint:
    """Answers chat completions, streamed or whole, by a script, and charges for each before it answers.

    Whoever is killed, the bill says what was charged: that is what accounting is held against. `url` is the base URL.
    """

    def __init__(
        self,
        script: Script,
        *,
        order: Order = "history",
        bill: str | os.PathLike[str] | None = None,
        price: Price | None = None,
        port: int = 0,
    ) -> None:
        self._director = Director(script, order=order)
        self.bill = Bill(bill, price=price)
        self.requests: list[dict[str, Any]] = []  # bodies of all that was asked, in the order of arrival
        self._server = LocalServer(self._answer, port=port)

    @property
    def url(self) -> str:
        """The base URL, as `--base-url` takes it."""
        return f"{self._server.url}/v1"

    def close(self) -> None:
        """Ends it. Idempotent."""
        self._server.close()
        self.bill.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self, received: Received) -> Answer:
        if received.method == "GET" and received.path.endswith("/models"):
            return _whole(200, {"object": "list", "data": [{"id": "scripted", "object": "model"}]})
        if received.method != "POST" or not received.path.endswith("/chat/completions"):
            return _whole(404, {"error": {"message": f"There is no {received.path} here.", "type": "not_found"}})
        body = _json_object(received.body)
        if body is None or not isinstance(body.get("messages"), list):
            return _whole(400, {"error": {"message": "The body is no chat completion request.", "type": "bad_request"}})
        self.requests.append(body)
        responses = sum(1 for message in body["messages"] if _role(message) == "assistant")
        step = self._director.next(responses, lambda: body)
        key = received.headers.get("idempotency-key", "")
        if isinstance(step, Fault):
            return self._fault(step, body, key, len(received.body))
        usage = self.bill.charge(key, turn_usage(step, len(received.body)))
        return _spoken(step, body, usage, responses)

    def _fault(self, fault: Fault, body: dict[str, Any], key: str, size: int) -> Answer:
        usage = fault_usage(fault, size)
        if fault.bill:
            usage = self.bill.charge(key, usage)
        habits: dict[str, Any] = {"delay_s": fault.delay_s, "hang": fault.hang, "close_early": fault.close_early}
        if fault.turn is not None:
            answer = _spoken(fault.turn, body, usage, 0)
            chunks = answer.chunks[: max(1, len(answer.chunks) // 2)] if answer.stream else answer.chunks
            return Answer(headers=answer.headers, chunks=chunks, stream=answer.stream, **habits)
        if fault.close_early or fault.hang:
            return Answer(**habits)
        error = {"error": {"message": f"Scripted fault {fault.status}.", "type": "scripted"}}
        content = error if fault.body is None else fault.body
        data = content.encode() if isinstance(content, str) else json.dumps(content).encode()
        return Answer(status=fault.status, headers={**_JSON, **fault.headers}, chunks=[data], **habits)


def _spoken(turn: Turn, body: Mapping[str, Any], usage: Usage, responses: int) -> Answer:
    calls = [
        {
            "id": f"call_{responses}_{index}",
            "type": "function",
            "function": {"name": name, "arguments": args_text(args)},
        }
        for index, (name, args) in enumerate(turn.calls)
    ]
    finish = turn.finish or ("tool_calls" if calls else "stop")
    head = {"id": f"chatcmpl-{responses}", "created": 0, "model": str(body.get("model", "scripted"))}
    if body.get("stream"):
        chunks = [_event(chunk) for chunk in _chunks(head, turn.text, calls, finish)]
        if cast("Mapping[str, Any]", body.get("stream_options") or {}).get("include_usage"):
            chunks.append(_event({**head, "object": "chat.completion.chunk", "choices": [], "usage": _counts(usage)}))
        return Answer(headers={"content-type": "text/event-stream"}, chunks=[*chunks, b"data: [DONE]\n\n"], stream=True)
    message: dict[str, Any] = {"role": "assistant", "content": turn.text or None}
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return _whole(200, {**head, "object": "chat.completion", "choices": [choice], "usage": _counts(usage)})


def _chunks(head: dict[str, Any], text: str, calls: list[dict[str, Any]], finish: str) -> Iterator[dict[str, Any]]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": text[at : at + _PIECE]} for at in range(0, len(text), _PIECE)]
    for index, call in enumerate(calls):
        function = call["function"]
        deltas.append({"tool_calls": [{"index": index, **call, "function": {**function, "arguments": ""}}]})
        deltas.append({"tool_calls": [{"index": index, "function": {"arguments": function["arguments"]}}]})
    head = {**head, "object": "chat.completion.chunk"}
    for delta in deltas:
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}


def _counts(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
    }


def _event(data: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(data, separators=(",", ":")).encode() + b"\n\n"


def _whole(status: int, content: dict[str, Any]) -> Answer:
    return Answer(status=status, headers=_JSON, chunks=[json.dumps(content).encode()])


def _json_object(data: bytes) -> dict[str, Any] | None:
    try:
        parsed: Any = json.loads(data)
    except (ValueError, RecursionError):  # whoever sent it is told so
        return None
    return cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else None


def _role(message: Any) -> str:
    return str(cast("dict[str, Any]", message).get("role", "")) if isinstance(message, dict) else ""


def main(arguments: list[str] | None = None) -> int:
    """Serves a script until it is interrupted; the base URL is the only line on stdout."""
    parser = argparse.ArgumentParser(prog="python -m treadle.testing.endpoint", description=__doc__)
    parser.add_argument("script", help="a JSON list of turns and faults")
    parser.add_argument("--port", type=int, default=0, help="0: any that is free")
    parser.add_argument("--bill", help="the file that charges are appended to")
    parser.add_argument("--price", help="IN,OUT[,CACHE_READ[,CACHE_WRITE]] in USD per million tokens")
    parser.add_argument("--order", choices=("history", "arrival"), default="history")
    given = parser.parse_args(arguments)
    try:
        price = parse_price(given.price) if given.price else None
        endpoint = ScriptedEndpoint(given.script, order=given.order, bill=given.bill, price=price, port=given.port)
    except (InputError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: ended.set())
    with endpoint:
        sys.stdout.write(f"{endpoint.url}\n")
        sys.stdout.flush()
        ended.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
