"""Usage as coding agents print it: the last JSON object of an output that has the shape of one."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any, NoReturn, cast

from treadle.core.errors import InvalidUsage
from treadle.core.usage import ZERO_USD, Usage

_MOST_TRIED = 500
_LINE_START = re.compile(r"^\{", re.MULTILINE)
_Object = dict[str, Any]


def printed_usage(output: str) -> Usage | None:
    """The usage, or None where none is printed. Shapes known, alone or under `usage`, with the cost beside or inside:

    - `input_tokens`, `output_tokens`, with `cache_read_input_tokens` and `cache_creation_input_tokens` on top of the input;
    - `input_tokens`, `output_tokens`, with `cached_input_tokens` or `input_tokens_details.cached_tokens` as part of it;
    - `prompt_tokens`, `completion_tokens`, with `prompt_tokens_details.cached_tokens` as part of the prompt;
    - `total_cost_usd` or `cost_usd`; `num_turns` or `requests`, otherwise one request.
    """
    for printed in _objects_from_the_end(output):
        try:
            usage = _usage(printed)
        except InvalidUsage:
            continue
        if usage is not None:
            return usage
    return None


def _objects_from_the_end(output: str) -> list[_Object]:
    """Objects that begin a line and end one, the last first."""
    decoder = json.JSONDecoder(parse_float=Decimal, parse_constant=_no_number)
    starts = [match.start() for match in _LINE_START.finditer(output)]
    found: list[_Object] = []
    for at in reversed(starts[-_MOST_TRIED:]):
        try:
            value, end = decoder.raw_decode(output, at)
        except (ValueError, RecursionError):
            continue
        if not output[end:].partition("\n")[0].strip():
            found.append(value)
    return found


def _no_number(text: str) -> NoReturn:
    raise ValueError(text)


def _usage(printed: _Object) -> Usage | None:
    inner = printed.get("usage")
    counts = cast("_Object", inner) if isinstance(inner, dict) else printed
    tokens = _tokens(counts)
    cost = next((of[name] for of in (printed, counts) for name in ("total_cost_usd", "cost_usd") if name in of), None)
    if tokens is None and cost is None:
        return None
    requests = printed.get("num_turns", counts.get("requests", 1))
    money = ZERO_USD if cost is None else Decimal(cost) if type(cost) is int else cost
    return Usage(**(tokens or {}), requests=requests, cost_usd=money).checked()


def _tokens(counts: _Object) -> dict[str, int] | None:
    if "prompt_tokens" in counts and "completion_tokens" in counts:
        cached = _detail(counts, "prompt_tokens_details")
        return _counted(counts["prompt_tokens"], counts["completion_tokens"], cached, 0)
    if "input_tokens" not in counts or "output_tokens" not in counts:
        return None
    beside = "cache_read_input_tokens" in counts or "cache_creation_input_tokens" in counts
    if beside:
        read, written = counts.get("cache_read_input_tokens") or 0, counts.get("cache_creation_input_tokens") or 0
        return _counted(_sum(counts["input_tokens"], read, written), counts["output_tokens"], read, written)
    cached = counts.get("cached_input_tokens", counts.get("cache_read_tokens", _detail(counts, "input_tokens_details")))
    return _counted(counts["input_tokens"], counts["output_tokens"], cached, counts.get("cache_write_tokens", 0))


def _detail(counts: _Object, name: str) -> int:
    details = counts.get(name)
    return cast("_Object", details).get("cached_tokens", 0) if isinstance(details, dict) else 0


def _counted(given: Any, made: Any, read: Any, written: Any) -> dict[str, int]:
    return {
        "input_tokens": given,
        "output_tokens": made,
        "cache_read_tokens": read,
        "cache_write_tokens": written,
    }


def _sum(*counts: object) -> int:
    for count in counts:
        if type(count) is not int or count < 0:
            raise InvalidUsage(f"{count!r} is no count")
    return sum(cast("tuple[int, ...]", counts))
