"""Whether an endpoint is there at all, before anything is started or paid."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

import anyio

from treadle.core.errors import ConfigurationError

TIMEOUT_S = 5.0
PROXIES = ("https_proxy", "http_proxy", "all_proxy")


async def reachable(base_url: str | None, environ: Mapping[str, str]) -> None:
    """ConfigurationError where nothing listens at the address. Behind a proxy only that could tell: nothing is tried."""
    if base_url is None:
        return
    host, port = endpoint(base_url)
    if any(environ.get(name) or environ.get(name.upper()) for name in PROXIES) and not is_local(host):
        return
    try:
        with anyio.fail_after(TIMEOUT_S):
            stream = await anyio.connect_tcp(host, port)
    except (OSError, TimeoutError) as error:
        why = f"no answer within {TIMEOUT_S:g} s" if isinstance(error, TimeoutError) else str(error) or "refused"
        raise ConfigurationError(
            f"Nothing can be reached at --base-url {base_url} ({host}:{port}: {why})."
            " Start the server, or correct the address."
        ) from error
    await stream.aclose()


def endpoint(base_url: str) -> tuple[str, int]:
    """(host, port). ConfigurationError for what is no HTTP address."""
    try:
        parts = urlsplit(base_url)
        port = parts.port
    except ValueError as error:
        raise ConfigurationError(f"--base-url {base_url!r} is no address: {error}.") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(f"--base-url {base_url!r} is no address. Example: --base-url http://127.0.0.1:8080/v1")
    return parts.hostname, port or (443 if parts.scheme == "https" else 80)


def is_local(host: str) -> bool:
    """Whether a proxy would be left out."""
    return host in ("localhost", "::1") or host.startswith("127.")
