"""When a provider lets requests through again: the many forms in which answers say so, as wall time (TC-24)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, cast

_MICRO = 1_000_000
_FARTHEST_US = 366 * 86_400 * _MICRO  # a reset beyond a year is a mistake of somebody's
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_SPAN = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)(ms|s|m|h|d)")
_WHOLE_SPAN = re.compile(rf"(?:{_SPAN.pattern})+")
_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,9})?")
_IN_WORDS = re.compile(
    r"(?:try again|retry|wait)(?: in| after|:)? "
    r"(?:((?:\d{1,12}(?:\.\d{1,12})?(?:ms|s|m|h|d))+)\b|(\d{1,12}(?:\.\d{1,12})?) ?(milli|s|m|h|d)[a-z]*)",
    re.IGNORECASE,
)
_WORDS = {"milli": "ms"}


def retry_at(headers: Mapping[str, str], body: Any, text: str, *, now_us: int) -> int | None:
    """Microseconds since the epoch, never before `now_us`; None where nothing credible is said.

    In order: Retry-After (milliseconds, seconds, date), Google's RetryInfo, the reset of every limit that is used up
    (of all limits, where none says that it is), the provider's own words. Header names are lower case.
    """
    for found in (
        _retry_after(headers, now_us),
        _retry_info(body, now_us),
        _limits(headers, now_us),
        _words(text, now_us),
    ):
        if found is not None and found <= now_us + _FARTHEST_US:
            return max(found, now_us)
    return None


def span_us(text: str) -> int | None:
    """A duration such as `6m0s`, `1.5s`, `250ms` or plain seconds, in microseconds."""
    text = text.strip().lower()
    if _NUMBER.fullmatch(text):
        return round(float(text) * _MICRO)
    if not _WHOLE_SPAN.fullmatch(text):
        return None
    return round(sum(float(amount) * _SECONDS[unit] for amount, unit in _SPAN.findall(text)) * _MICRO)


def moment_us(text: str, now_us: int) -> int | None:
    """A point in time: RFC 3339, epoch seconds or milliseconds, or a duration from now."""
    text = text.strip()
    if _NUMBER.fullmatch(text):
        number = float(text)
        if number >= 1e11:  # milliseconds: as seconds it would be the year 5138
            return round(number * 1_000)
        return round(number * _MICRO) if number >= 1e9 else now_us + round(number * _MICRO)
    if (span := span_us(text)) is not None:
        return now_us + span
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return _epoch_us(moment)


def _retry_after(headers: Mapping[str, str], now_us: int) -> int | None:
    milliseconds = headers.get("retry-after-ms", "").strip()
    if _NUMBER.fullmatch(milliseconds):
        return now_us + round(float(milliseconds) * 1_000)
    value = headers.get("retry-after", "").strip()
    if (span := span_us(value)) is not None:
        return now_us + span
    try:
        return _epoch_us(parsedate_to_datetime(value))
    except (ValueError, OverflowError):  # neither a number nor a date
        return None


def _epoch_us(moment: datetime) -> int | None:
    try:
        return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * _MICRO)
    except OverflowError:  # year 1 or 9999 with an offset
        return None


def _retry_info(body: Any, now_us: int) -> int | None:
    for detail in _details(body):
        delay = detail.get("retryDelay")
        if isinstance(delay, str) and (span := span_us(delay)) is not None:
            return now_us + span
    return None


def _details(body: Any) -> Iterator[dict[str, Any]]:
    error = cast("dict[str, Any]", body).get("error") if isinstance(body, dict) else None
    details = cast("dict[str, Any]", error).get("details") if isinstance(error, dict) else None
    for detail in cast("list[Any]", details) if isinstance(details, list) else ():
        if isinstance(detail, dict):
            yield cast("dict[str, Any]", detail)


def _limits(headers: Mapping[str, str], now_us: int) -> int | None:
    every: list[int] = []
    used_up: list[int] = []
    for name, value in headers.items():
        if "ratelimit" not in name or "reset" not in name or (moment := moment_us(value, now_us)) is None:
            continue
        every.append(moment)
        if headers.get(name.replace("reset", "remaining"), "").strip() in ("0", "0.0"):
            used_up.append(moment)
    return max(used_up or every, default=None)


def _words(text: str, now_us: int) -> int | None:
    found = _IN_WORDS.search(text)
    if found is None:
        return None
    glued, amount, unit = found.groups()
    return now_us + (span_us(glued or f"{amount}{_WORDS.get(unit.lower(), unit)}") or 0)
