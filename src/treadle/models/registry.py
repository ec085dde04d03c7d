"""Models by name, `provider:model`. Nothing heavy is imported until a model is made."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from difflib import get_close_matches
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from treadle.core.errors import ConfigurationError
from treadle.core.usage import Usage
from treadle.ports.model import Model

from .adapter import PydanticAIModel
from .clients import Connection, anthropic_wire, google_wire, openai_wire
from .prices import Price, known_cost
from .profiles import sizes_of
from .providers import PROVIDERS, Provider
from .service import Service
from .wire import http_client

if TYPE_CHECKING:
    from .clients import Built

NO_KEY = "no-key"  # what a server that wants none is sent
TIMEOUT_S = 600.0


def model_from_name(
    name: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    price: Price | None = None,
    timeout_s: float = TIMEOUT_S,
    now_us: Callable[[], int],
    environ: Mapping[str, str],
    context_window: int | None = None,
    max_output_tokens: int | None = None,
) -> Model:
    """The model `provider:model`. ConfigurationError for an unknown provider, a missing key or SDK, a bad URL.

    `base_url` makes `openai` any server of that format; without a key it is sent a placeholder. `timeout_s` is the
    longest silence of the provider; `now_us` is wall time. A price that is not given comes from offline data, but only
    at the provider's own address.
    """
    provider, model = _split(name)
    row = PROVIDERS[provider]
    url = _address(base_url or environ.get(row.url_variable) or row.url)
    own_url = url != row.url
    key, variable = _key(provider, row, api_key, environ, own_url=own_url)
    to = _connection(provider, model, url, own_url=own_url, key=key, environ=environ, timeout_s=timeout_s)
    built = _build(row, to)
    sizes = sizes_of(
        built.model,
        provider=row.prices,
        served=own_url or row.free,
        context_window=context_window,
        max_output_tokens=max_output_tokens,
    )

    def cost(usage: Usage) -> Decimal | None:
        if price is not None:
            return price.cost(usage)
        if row.free:
            return Decimal(0)
        return None if own_url else known_cost(usage, model=model, provider=row.prices, at_us=now_us())

    return PydanticAIModel(
        f"{provider}:{model}",
        built.model,
        client=to.client,
        service=Service(name=provider, url=url, key_variable=variable, secrets=(key,) if key != NO_KEY else ()),
        context_window=sizes.context_window,
        max_output_tokens=sizes.max_output_tokens,
        timeout_s=timeout_s,
        now_us=now_us,
        price=cost,
        settings=built.settings,
        adapt=built.adapt,
        legal_id=re.compile(row.ids),
        flags_errors=row.wire != "openai",
        streams=row.streams,
    )


def _split(name: str) -> tuple[str, str]:
    provider, colon, model = name.strip().partition(":")
    known = ", ".join(sorted(PROVIDERS))
    if not colon or not model or not provider:
        raise ConfigurationError(f"{name!r} is no model: say provider:model, such as openai:gpt-5. Providers: {known}")
    if provider not in PROVIDERS:
        close = get_close_matches(provider.lower(), PROVIDERS, n=2)
        hint = f" Did you mean {' or '.join(close)}?" if close else ""
        raise ConfigurationError(f"Unknown provider {provider!r}.{hint} Known: {known}")
    return provider, model


def _key(
    provider: str, row: Provider, api_key: str | None, environ: Mapping[str, str], *, own_url: bool
) -> tuple[str, str]:
    if api_key:
        return api_key, "the key that was given"
    for variable in row.key:
        if value := environ.get(variable, "").strip():
            return value, variable
    if own_url or not row.key:
        return NO_KEY, row.key[0] if row.key else ""
    raise ConfigurationError(f"No key for {provider}: set {' or '.join(row.key)} in the environment")


def _address(url: str) -> str:
    url = url.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, an open bracket
        usable = False
    if not usable:
        raise ConfigurationError(f"{url!r} is no base URL: give one such as http://127.0.0.1:8080/v1")
    return url


def _connection(
    provider: str, model: str, url: str, *, own_url: bool, key: str, environ: Mapping[str, str], timeout_s: float
) -> Connection:
    at_openai = provider == "openai" and not own_url
    return Connection(
        provider=provider,
        model=model,
        url=url,
        own_url=own_url,
        key=key,
        client=http_client(timeout_s),
        organization=environ.get("OPENAI_ORG_ID") if at_openai else None,
        project=environ.get("OPENAI_PROJECT_ID") if at_openai else None,
    )


def _build(row: Provider, to: Connection) -> Built:
    from pydantic_ai.exceptions import UserError

    try:
        if row.wire == "anthropic":
            return anthropic_wire(to)
        if row.wire == "google":
            return google_wire(to)
        provider_class, model_class = row.classes
        return openai_wire(to, provider_class=provider_class, model_class=model_class, profile=row.profile)
    except UserError as error:
        raise ConfigurationError(f"{to.provider}:{to.model} cannot be used: {error}") from error
    except ImportError as error:
        raise ConfigurationError(
            f"{to.provider} needs a package that is not installed ({error.name or error}): pip install '{row.package}'"
        ) from error
