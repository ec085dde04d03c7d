"""A response of the model library as the port's Reply: whole text, parsed arguments, normal finish, checked usage."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

import msgspec

from treadle.core.errors import ProviderError
from treadle.core.usage import ZERO_USD, Usage
from treadle.core.values import replace
from treadle.ports.model import RawCall, Reply

from .extra import SEPARATOR, extra_of

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.usage import RequestUsage

_MAY_BE_EMPTY = ("length", "content_filter")  # what it cost is known, and asking again would cost it again
_decode = msgspec.json.Decoder().decode


def reply_of(response: ModelResponse, *, model: str, streamed: bool, price: Callable[[Usage], Decimal | None]) -> Reply:
    """The reply. ProviderError (protocol, maybe charged) where the response is empty or was cut off on the way."""
    text = whole(SEPARATOR.join(part.content for part in response.parts if part.part_kind == "text" and part.content))
    calls = tuple(
        RawCall(whole(part.tool_call_id), whole(part.tool_name), arguments(part.args))
        for part in response.parts
        if part.part_kind == "tool-call"
    )
    finish = response.finish_reason or ("" if streamed else "stop")
    if response.state != "complete" or not finish:
        raise ProviderError("protocol", f"{model}: the response was cut off before its end", maybe_charged=True)
    if calls and finish == "stop":
        finish = "tool_call"
    if not calls and not text.strip() and finish not in _MAY_BE_EMPTY:
        raise ProviderError("protocol", f"{model}: the response is empty (finish reason {finish})", maybe_charged=True)
    usage, known = usage_of(response.usage)
    return Reply(
        text=text,
        calls=calls,
        usage=replace(usage, cost_usd=price(usage) or ZERO_USD),
        finish=finish,
        extra=extra_of(response, model),
        usage_known=known,
    )


def usage_of(counted: RequestUsage) -> tuple[Usage, bool]:
    """The usage of one request, and whether the provider gave one that makes sense."""
    counts: list[Any] = [
        counted.input_tokens,
        counted.output_tokens,
        counted.cache_read_tokens,
        counted.cache_write_tokens,
    ]
    if counted.unmeasured_requests or not any(counts) or any(type(count) is not int or count < 0 for count in counts):
        return Usage(requests=1), False
    return (
        Usage(
            input_tokens=counts[0],
            output_tokens=counts[1],
            cache_read_tokens=counts[2],
            cache_write_tokens=counts[3],
            requests=1,
        ),
        True,
    )


def quiet_about_usage() -> None:
    """Usage that makes no sense is said by us, as usage that was not reported; the library's own warning names its files."""
    from pydantic_ai import UsageExtractionFailedWarning

    warnings.filterwarnings("ignore", category=UsageExtractionFailedWarning)


def arguments(args: str | Mapping[str, Any] | None) -> dict[str, Any] | str:
    """A call's arguments as an object, or as the text that they came in where that is no JSON object."""
    if not args:
        return {}
    try:
        text = args if isinstance(args, str) else msgspec.json.encode(args).decode()
        parsed = _decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError, TypeError):  # said by the toolset, with the path
        return whole(args if isinstance(args, str) else repr(args))
    return cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else whole(text)


def whole(text: str) -> str:
    """The text with lone surrogates replaced, since no store takes them; pairs become the character they stand for."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
