"""A model that answers one request at a time. Retries are the engine's own: one request here is one request on the wire (LG-04)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Literal, NamedTuple

from treadle.core.messages import CallKind
from treadle.core.usage import Usage
from treadle.kernel.view import View


class ToolDef(NamedTuple):
    """A tool as the model sees it, and what a call of it may do to the world."""

    name: str
    description: str
    schema: dict[str, Any]  # JSON Schema of the arguments, an object
    kind: CallKind
    polling: bool = False  # the same call may well give the same result again: no guard counts it


class ModelRequest(NamedTuple):
    """One request. `static` is byte-identical over all turns of a loop; `dynamic` is rebuilt for each (AG-14)."""

    static: str
    dynamic: str
    view: View
    tools: tuple[ToolDef, ...]
    tool_choice: Literal["auto", "required"]
    max_output_tokens: int
    key: str  # idempotency key, for providers that take one
    settings: dict[str, Any]  # temperature, seed, and the like


class RawCall(NamedTuple):
    """A tool call as the provider gave it; `args` is a string where its JSON was malformed."""

    id: str
    name: str
    args: dict[str, Any] | str


class Reply(NamedTuple):
    """A whole response. `usage.requests` is 1 and `usage.cost_usd` is priced where a price is known.

    `usage_known` is false where the provider gave no usage; `extra` is JSON of provider-specific parts.
    """

    text: str
    calls: tuple[RawCall, ...]
    usage: Usage
    finish: str
    extra: str = ""
    usage_known: bool = True


OnDelta = Callable[[str], None]


class Model(ABC):
    """One model of one provider."""

    name: str  # provider:model
    context_window: int  # tokens, input and output together
    max_output_tokens: int  # what is asked for at most, and so what a lost request can have cost at most

    @abstractmethod
    async def request(self, request: ModelRequest, on_delta: OnDelta | None = None) -> Reply:
        """Sends the request once. ProviderError for every failure; `on_delta` gets text as it streams."""

    @abstractmethod
    def price(self, usage: Usage) -> Decimal | None:
        """What this usage costs in USD; None where no price is known."""

    async def close(self) -> None:
        """Gives connections back."""
