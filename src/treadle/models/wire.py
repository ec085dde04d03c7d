"""One intent is one request on the wire (LG-04): a ticket that the HTTP client shows, good for one request."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl

    import httpx2


class SecondRequest(Exception):
    """A client library, or a redirect, is about to send again what was paid for once."""


class _Ticket:
    __slots__ = ("used",)

    def __init__(self) -> None:
        self.used = False


_ticket: ContextVar[_Ticket | None] = ContextVar("treadle_request_ticket", default=None)


@contextmanager
def one_request() -> Generator[None]:
    """Within it, a client made by `http_client` sends at most one request."""
    token = _ticket.set(_Ticket())
    try:
        yield
    finally:
        _ticket.reset(token)


async def _punch(request: Any) -> None:
    ticket = _ticket.get()
    if ticket is None:
        return
    if ticket.used:
        raise SecondRequest(f"{request.method} {request.url.host}{request.url.path}")
    ticket.used = True


def http_client(timeout_s: float) -> httpx2.AsyncClient:
    """The client that every SDK is given: the library's own settings, and no second request for one intent."""
    import httpx2

    like = _library_client(timeout_s)
    hooks = {**like.event_hooks, "request": [*like.event_hooks["request"], _punch]}
    limits = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)  # the library's, as the SDKs' own
    return httpx2.AsyncClient(
        verify=_trusted(), timeout=like.timeout, limits=limits, headers=like.headers, event_hooks=hooks
    )


@cache
def _library_client(timeout_s: float) -> httpx2.AsyncClient:
    """A client as the library makes it, to take its settings from: it never sends anything."""
    import httpx2
    from pydantic_ai.models import create_async_httpx2_client

    timeout = httpx2.Timeout(timeout_s, connect=min(timeout_s, 10.0))
    return create_async_httpx2_client(timeout=timeout, transport=httpx2.AsyncBaseTransport())


@cache
def _trusted() -> ssl.SSLContext:
    """Whom it trusts, read once a process: it takes 50 ms, which a worker would pay for each execution that it takes over."""
    import httpx2

    return httpx2.create_ssl_context()
