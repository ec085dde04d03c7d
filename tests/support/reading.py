"""What the tests of the context window share: a model that reads a book page by page in a small window."""

from __future__ import annotations

from typing import Any

from treadle import Agent, Loop, accept, tool
from treadle.app.runtime import Runtime
from treadle.core.codec import decode
from treadle.core.usage import Usage
from treadle.models.prices import parse_price
from treadle.testing import Fault, ScriptedModel, Turn

TASK = "Read all pages of the book."
NOTE = "NOTE: module a.py was read; the cause is in parse()."
SUMMARY = "hand-over note"  # said only to a model that is to summarise


@tool(kind="read")
def read_page(number: int) -> str:
    """A page of text."""
    return f"page {number}\n" + "lorem ipsum dolor sit amet\n" * 40


class Scribe(ScriptedModel):
    """Reads pages until it has read so many, then finishes; counts as a tokenizer of four bytes a token would.

    `note` answers the requests for a summary: a step, or a function of the number of the request. `counts` is what the
    provider says of a request from its length in tokens. `refuse_over`: a longer one does not fit, says the provider.
    """

    def __init__(
        self,
        pages: int,
        *,
        window: int = 8_000,
        note: Any = None,
        says: str = "",
        counts: Any = None,
        refuse_over: int = 0,
    ) -> None:
        self.pages, self.says, self.note, self.counts = pages, says, note or Turn(text=NOTE), counts
        self.refuse_over, self.read, self.summaries = refuse_over, 0, 0
        self.seen: list[dict[str, Any]] = []
        price = parse_price("10,20")
        super().__init__(
            self._decide, price=price, context_window=window, max_output_tokens=1_000, name="scripted:scribe"
        )

    def _decide(self, body: dict[str, Any]) -> Turn | Fault:
        self.seen.append(body)
        if is_summary(body):
            self.summaries += 1
            return self.note(self.summaries) if callable(self.note) else self.note
        if self.refuse_over and length(body) > self.refuse_over:
            return too_long(self.refuse_over)
        if self.read >= self.pages:
            return Turn(calls=[("finish", {"summary": "read"})])
        self.read += 1
        usage = Usage(input_tokens=self.counts(length(body)), output_tokens=20) if self.counts else None
        return Turn(text=self.says, calls=[("read_page", {"number": self.read})], usage=usage)

    @property
    def turns(self) -> list[dict[str, Any]]:
        """The requests that were no summaries."""
        return [body for body in self.seen if not is_summary(body)]


def is_summary(body: dict[str, Any]) -> bool:
    """Whether a summary is asked for."""
    return SUMMARY in body["messages"][0]["content"]


def length(body: dict[str, Any]) -> int:
    """About how many tokens its messages have."""
    return (
        sum(len(str(message.get("content"))) + len(str(message.get("tool_calls", ""))) for message in body["messages"])
        // 4
    )


def too_long(most: int) -> Fault:
    """The provider's refusal of a request that does not fit."""
    said = f"This model's maximum context length is {most} tokens. Please reduce the length of the messages."
    return Fault(status=400, body={"error": {"message": said, "code": "context_length_exceeded"}})


def loop(model: ScriptedModel, *tools: Any, **agent: Any) -> Loop:
    """The reader as a loop."""
    act = Agent(model=model, tools=tools or (read_page,), **agent)
    return Loop(name="test", act=act, evaluate=lambda context, output: accept())


async def records(runtime: Runtime, execution_id: str) -> list[Any]:
    """All events on record."""
    return [decode(r.kind, r.version, r.body) for r in await runtime.ledger.records(execution_id)]


def of(events: list[Any], *kinds: type[Any]) -> list[Any]:
    """Those of these kinds."""
    return [event for event in events if isinstance(event, kinds)]
