"""Every way in which a request can fail, as one ProviderError: its class, when to try again, whether it may cost."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from treadle.core.errors import ProviderError, ProviderErrorKind

from .resets import retry_at
from .service import Service, codes, said
from .wire import SecondRequest

_DEPTH = 20

_STATUS: dict[int, tuple[ProviderErrorKind, bool]] = {  # kind, and whether it may have been charged
    401: ("auth", False),
    402: ("quota", False),
    403: ("auth", False),
    408: ("overload", True),
    409: ("overload", False),
    413: ("context-too-long", False),
    425: ("overload", False),
    429: ("quota", False),
    503: ("overload", False),
    529: ("overload", False),
}
_CATEGORY: dict[str, tuple[ProviderErrorKind, int]] = {  # the model library's classes, with the status they stand for
    "ModelQuotaExceededError": ("quota", 402),
    "ModelRateLimitError": ("quota", 429),
    "ModelAuthenticationError": ("auth", 401),
    "ModelContextWindowExceededError": ("context-too-long", 400),
    "ModelUnavailableError": ("overload", 503),
    "ModelServerError": ("overload", 500),
    "ModelRequestRejectedError": ("bad-request", 400),
}
_NEVER_SENT = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError"})
_UNSENDABLE = frozenset({"InvalidURL", "LocalProtocolError", "UnsupportedProtocol", "UserError"})
_LOST = frozenset(
    {"TransportError", "StreamError", "APIConnectionError", "ModelConnectionError", "ModelRequestTimeout"}
)

_EXHAUSTED = frozenset(  # credit that is spent, not a window that resets: waiting does not help
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "credit_balance_exhausted",
        "exceeded_current_quota_error",
        "insufficient_balance",
        "billing_error",
    }
)
_TOO_LONG_CODES = frozenset(
    {"context_length_exceeded", "exceed_context_size_error", "model_context_window_exceeded", "request_too_large"}
)
_TOO_LONG = re.compile(
    r"(?:context|prompt|input)\b[\w\s'`()/,:-]{0,50}\b(?:too long|exceed)"
    r"|exceed\w*\b[\w\s'`(),:-]{0,60}\b"
    r"(?:context|max_seq_len|max_model_len|token limit|number of (?:input )?tokens|prompt length)"
    r"|maximum (?:context|prompt|model) length"
    r"|context length is only"
    r"|greater than the context length"
    r"|reduce the length of the (?:messages|input|prompt)"
    r"|range of input length should be"
    r"|too large for model"
    r"|request (?:entity )?too large",
    re.IGNORECASE,
)


def failure(error: BaseException, service: Service, *, now_us: int) -> ProviderError:
    """What this exception means. Causes are looked through, since SDKs wrap what their HTTP library says."""
    chain = list(_chain(error))
    for link in chain:
        if isinstance(link, ProviderError):
            return link
        if isinstance(link, SecondRequest):
            text = f"{service.name}: the client library was about to send a second request for one intent ({link})"
            return ProviderError("protocol", service.clean(text), maybe_charged=True)
    for link in chain:
        status = getattr(link, "status_code", None)
        if isinstance(status, int) and status >= 300:
            return http_failure(
                status,
                _headers(link),
                getattr(link, "body", None),
                service,
                now_us=now_us,
                category=_category(link),
                in_stream=bool(getattr(link, "in_stream", False)),
            )
        if (known := _category(link)) is not None:  # an error inside a stream that had begun well
            body = getattr(link, "body", None) or str(link)
            return http_failure(_CATEGORY[known][1], {}, body, service, now_us=now_us, category=known, in_stream=True)
    return _transport_failure(chain, service) or _unreadable(error, service)


def http_failure(
    status: int,
    headers: Mapping[str, str],
    body: Any,
    service: Service,
    *,
    now_us: int,
    category: str | None = None,
    in_stream: bool = False,
) -> ProviderError:
    """What an error answer means. `in_stream`: it came after the answer had begun, so it may have been charged."""
    headers = {name.lower(): value for name, value in headers.items()}
    words, names = said(body), codes(body)
    kind, charged = _STATUS.get(status, ("overload", True) if status >= 500 else ("bad-request", False))
    if category is not None and kind in ("bad-request", "auth"):
        kind = _CATEGORY[category][0]
    if _is_too_long(status, names, words):
        kind = "context-too-long"
    moment: int | None = None
    exhausted = status == 402 or bool(names & _EXHAUSTED) or category == "ModelQuotaExceededError"
    if kind in ("quota", "overload") and ("retry-after" in headers or not exhausted):
        limits = headers if status == 429 else {name: headers[name] for name in headers if name.startswith("retry-")}
        moment = retry_at(limits, body, words, now_us=now_us)
    text = service.clean(f"{service.name} answered {status}: {words or 'no reason given'}")
    if kind == "auth" and service.key_variable:
        text += f" (the key comes from {service.key_variable})"
    if status < 400:
        text += f" (redirected to {service.clean(headers.get('location', 'nowhere'))}: give that as the base URL)"
    return ProviderError(kind, text, retry_at_us=moment, maybe_charged=charged or in_stream)


def _is_too_long(status: int, names: set[str], words: str) -> bool:
    if status == 429:  # a single request above the limit of a minute: waiting never helps, a shorter one does
        return "request too large" in words.lower()
    if names & _TOO_LONG_CODES:
        return True
    return status in (400, 413, 422, 500) and _TOO_LONG.search(words) is not None


def _transport_failure(chain: list[BaseException], service: Service) -> ProviderError | None:
    names = {cls.__name__ for link in chain for cls in type(link).__mro__}
    phases = {getattr(link, "phase", None) for link in chain}
    reason = next((text for link in reversed(chain) if (text := str(link).strip())), type(chain[-1]).__name__)
    if names & _NEVER_SENT or phases & {"connect", "pool"}:
        return ProviderError("network", service.clean(f"cannot reach {service.name} at {service.address}: {reason}"))
    if names & _UNSENDABLE:
        return ProviderError("bad-request", service.clean(f"the request to {service.name} cannot be sent: {reason}"))
    if names & _LOST or any(isinstance(link, OSError) for link in chain):
        text = f"the connection to {service.name} was lost after the request had been sent: {reason}"
        return ProviderError("network", service.clean(text), maybe_charged=True)
    return None


def _unreadable(error: BaseException, service: Service) -> ProviderError:
    text = f"{service.name} gave an answer that cannot be used: {type(error).__name__}: {error}"
    return ProviderError("protocol", service.clean(text), maybe_charged=True)


def _chain(error: BaseException) -> Iterator[BaseException]:
    waiting: list[BaseException] = [error]
    seen: set[int] = set()
    while waiting and len(seen) < _DEPTH:
        link = waiting.pop(0)
        if id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        if isinstance(link, BaseExceptionGroup):
            waiting.extend(cast("Any", link).exceptions)
        if (cause := link.__cause__ or (None if link.__suppress_context__ else link.__context__)) is not None:
            waiting.append(cause)


def _category(link: BaseException) -> str | None:
    return next((cls.__name__ for cls in type(link).__mro__ if cls.__name__ in _CATEGORY), None)


def _headers(link: BaseException) -> Mapping[str, str]:
    headers = getattr(link, "headers", None) or getattr(getattr(link, "response", None), "headers", None)
    return cast("Mapping[str, str]", headers) if headers is not None else {}
