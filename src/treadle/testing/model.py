"""A model that answers from a script inside the process: no HTTP, no key, no cost but what the script says."""

from __future__ import annotations

import json
import os
from decimal import Decimal
from typing import Any
from weakref import WeakKeyDictionary

import anyio

from treadle.core.errors import ProviderError
from treadle.core.messages import ModelResponded, Prompted, ToolsFinished
from treadle.core.usage import Usage
from treadle.kernel.view import View
from treadle.models.failures import http_failure
from treadle.models.prices import Price
from treadle.models.reply import arguments
from treadle.models.service import Service
from treadle.ports.model import Model, ModelRequest, OnDelta, RawCall, Reply

from .bill import Bill
from .script import Director, Fault, Order, Script, Turn, args_text, fault_usage, turn_usage

_SERVICE = Service(name="scripted")
_FINISH = {"tool_calls": "tool_call"}


class ScriptedModel(Model):
    """Answers as `Director` says; a callable script is given the request as a chat completion body.

    It fails as a provider would: a Fault with a status is classified like an answer over HTTP, one that breaks off is
    lost after sending, one that hangs hangs. `now_us` is the wall time that resets count from.
    """

    def __init__(
        self,
        script: Script,
        *,
        order: Order = "history",
        name: str = "scripted:model",
        price: Price | None = None,
        bill: str | os.PathLike[str] | None = None,
        context_window: int = 200_000,
        max_output_tokens: int = 8_192,
        now_us: int = 0,
    ) -> None:
        self.name, self.context_window, self.max_output_tokens = name, context_window, max_output_tokens
        self.bill = Bill(bill, price=price)
        self.requests = 0
        self._director = Director(script, order=order)
        self._price, self._now_us = price, now_us
        self._counted: WeakKeyDictionary[View, tuple[int, int, int]] = WeakKeyDictionary()

    async def request(self, request: ModelRequest, on_delta: OnDelta | None = None) -> Reply:
        """The next step of the script."""
        self.requests += 1
        responses = self._responses(request.view)
        step = self._director.next(responses, lambda: chat_body(request))
        size = request.view.size + len(request.static) + len(request.dynamic)
        if isinstance(step, Fault):
            return await self._fault(step, request.key, size)
        usage = self.bill.charge(request.key, turn_usage(step, size))
        if on_delta is not None and step.text:
            on_delta(step.text)
        return _reply(step, usage, responses)

    def price(self, usage: Usage) -> Decimal | None:
        """What the price given says; nothing is known without one."""
        return self._price.cost(usage) if self._price else None

    async def close(self) -> None:
        """Closes the bill."""
        self.bill.close()

    async def _fault(self, fault: Fault, key: str, size: int) -> Reply:
        if fault.bill:
            self.bill.charge(key, fault_usage(fault, size))
        if fault.delay_s:
            await anyio.sleep(fault.delay_s)
        if fault.hang:
            await anyio.sleep_forever()
        if fault.close_early:
            text = "the connection to scripted was lost after the request had been sent"
            raise ProviderError("network", text, maybe_charged=True)
        raise http_failure(fault.status, fault.headers, fault.body, _SERVICE, now_us=self._now_us)

    def _responses(self, view: View) -> int:
        generation, done, responses = self._counted.get(view, (view.generation, 0, 0))
        if generation != view.generation or done > len(view.messages):
            done = responses = 0
        responses += sum(1 for message in view.messages[done:] if isinstance(message, ModelResponded))
        self._counted[view] = (view.generation, len(view.messages), responses)
        return responses


def _reply(turn: Turn, usage: Usage, responses: int) -> Reply:
    calls = tuple(
        RawCall(f"call_{responses}_{index}", name, arguments(args)) for index, (name, args) in enumerate(turn.calls)
    )
    finish = turn.finish or ("tool_calls" if calls else "stop")
    return Reply(text=turn.text, calls=calls, usage=usage, finish=_FINISH.get(finish, finish))


def chat_body(request: ModelRequest) -> dict[str, Any]:
    """The request as the body of a chat completion, whole: for scripts that decide by what they are asked."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": text} for text in (request.static, request.dynamic) if text
    ]
    for message in request.view.messages:
        messages.extend(_chat_messages(message))
    functions = [
        {"name": tool.name, "description": tool.description, "parameters": tool.schema} for tool in request.tools
    ]
    return {
        "messages": messages,
        "tools": [{"type": "function", "function": function} for function in functions],
        "tool_choice": request.tool_choice,
        "max_tokens": request.max_output_tokens,
    }


def _chat_messages(message: Prompted | ModelResponded | ToolsFinished) -> list[dict[str, Any]]:
    if isinstance(message, Prompted):
        return [{"role": "user", "content": message.text}]
    if isinstance(message, ToolsFinished):
        return [{"role": "tool", "tool_call_id": result.id, "content": result.content} for result in message.results]
    spoken: dict[str, Any] = {"role": "assistant", "content": message.text or None}
    if message.calls:
        spoken["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _text(call.args)}}
            for call in message.calls
        ]
    return [spoken]


def _text(args: dict[str, Any] | str) -> str:
    return args_text(args) if isinstance(args, str) else json.dumps(args, separators=(",", ":"))
