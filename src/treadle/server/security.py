"""Who may speak to the service: the right host, the right origin, and the token's cookie (SV-05).

The token stands in one link, which is printed once. Opening it sets a cookie and leads to an address without it. The cookie
is not the token, so neither leaks the other, and a request from another site carries neither.
"""

from __future__ import annotations

import hmac
import ipaddress
from dataclasses import dataclass
from hashlib import blake2b
from http.cookies import CookieError, SimpleCookie
from secrets import token_urlsafe
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from .problems import problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "::1")
OPEN = "/open"  # takes the token
PUBLIC = ("/api/health",)
MAX_BODY_BYTES = 4_194_304
CONTENT_POLICY = (
    "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_ALWAYS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    return host in LOOPBACK or host.startswith("127.")


@dataclass(frozen=True, slots=True)
class Access:
    """Where the service listens, and its token."""

    host: str
    port: int
    token: str

    @classmethod
    def new(cls, host: str, port: int) -> Access:
        """With a token of 256 bits."""
        return cls(host, port, token_urlsafe(32))

    @property
    def origin(self) -> str:
        """Where a browser on this machine finds it."""
        host = "127.0.0.1" if self.host in ("0.0.0.0", "") else "[::1]" if self.host == "::" else self.host  # noqa: S104
        return f"http://{f'[{host}]' if ':' in host and not host.startswith('[') else host}:{self.port}"

    @property
    def link(self) -> str:
        """The link that is printed once."""
        return f"{self.origin}{OPEN}?token={self.token}"

    @property
    def cookie_name(self) -> str:
        """Cookies do not tell ports apart: two studios on one machine need two names."""
        return f"treadle_studio_{self.port}"

    @property
    def cookie(self) -> str:
        """Its value, derived from the token."""
        return blake2b(b"studio cookie", key=self.token.encode()[:64], digest_size=24).hexdigest()

    def knows_host(self, header: str) -> bool:
        """Whether a Host header names this service. A name that somebody else's DNS points here is none (rebinding)."""
        try:
            parts = urlsplit(f"//{header}")
            host, port = (parts.hostname or "").lower(), parts.port or 80
        except ValueError:
            return False
        if port != self.port or parts.username is not None:
            return False
        if host == self.host.lower() or (host in LOOPBACK and (is_loopback(self.host) or self.is_wildcard)):
            return True
        return self.is_wildcard and _is_address(host)

    @property
    def is_wildcard(self) -> bool:
        """Whether it listens on every address."""
        return self.host in ("0.0.0.0", "::")  # noqa: S104

    def knows_origin(self, header: str) -> bool:
        """Whether an Origin header is our own page."""
        scheme, found, rest = header.partition("://")
        return bool(found) and scheme == "http" and self.knows_host(rest)

    def admits(self, headers: dict[bytes, bytes]) -> bool:
        """Whether the request carries the cookie, or the token as a bearer (for programs)."""
        bearer = headers.get(b"authorization", b"").decode("latin-1")
        if bearer.startswith("Bearer ") and hmac.compare_digest(bearer[7:].encode(), self.token.encode()):
            return True
        try:
            cookies = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1"))
        except CookieError:
            return False
        found = cookies.get(self.cookie_name)
        return found is not None and hmac.compare_digest(found.value.encode(), self.cookie.encode())


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class Guard:
    """The outermost layer: nothing behind it runs for a request that it refuses."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuses, opens, or passes on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, _hardened(send))
        elif scope["path"] == OPEN:
            await self._open(scope)(scope, receive, _hardened(send))
        else:
            await self._app(scope, receive, _hardened(send))

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        headers, path = dict(scope["headers"]), scope["path"]
        host = headers.get(b"host", b"").decode("latin-1")
        origin = headers.get(b"origin")
        if not self._access.knows_host(host):
            return problem(
                421, "unknown-host", "This address does not belong to this studio. Use the link that it printed."
            )
        if origin is not None and not self._access.knows_origin(origin.decode("latin-1")):
            return problem(403, "foreign-origin", "Another site's page asks; only the studio's own may.")
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > MAX_BODY_BYTES:
            return problem(413, "too-large", f"A request may have {MAX_BODY_BYTES:,} bytes.")
        if path == OPEN or path in PUBLIC or self._access.admits(headers):
            return None
        if path.startswith("/api/"):
            said = "Open the link that treadle studio printed, or send the token as Authorization: Bearer."
            return problem(401, "unauthorised", said, headers={"www-authenticate": "Bearer"})
        from .pages import locked_page

        return locked_page()

    def _open(self, scope: Scope) -> ASGIApp:
        from starlette.responses import RedirectResponse

        from .pages import locked_page

        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if not hmac.compare_digest(given.encode(), self._access.token.encode()):
            return locked_page()
        response = RedirectResponse("/", 303, headers={"cache-control": "no-store"})
        response.set_cookie(self._access.cookie_name, self._access.cookie, httponly=True, samesite="strict", path="/")
        return response


def _hardened(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *_ALWAYS]
        await send(message)

    return sent
