"""A library model for each of the three wire formats, over one HTTP client, with the retries of its SDK turned off."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from .chat import post_plainly

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.models import Model as LibraryModel


class Connection(NamedTuple):
    """Where a model is and how it is reached. `own_url`: the address is not the provider's own."""

    provider: str
    model: str
    url: str
    own_url: bool
    key: str
    client: httpx2.AsyncClient
    organization: str | None = None
    project: str | None = None


class Built(NamedTuple):
    """A library model, the settings that each request to it carries, and how a request's own are told to it."""

    model: LibraryModel
    settings: Mapping[str, Any]
    adapt: Callable[[dict[str, Any]], dict[str, Any]] = dict


def openai_wire(to: Connection, *, provider_class: str, model_class: str, profile: Mapping[str, Any]) -> Built:
    """Chat completions. A stream must say that it is finished, or it was cut off."""
    from openai import AsyncOpenAI
    from pydantic_ai.profiles.openai import openai_model_profile
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    sdk = AsyncOpenAI(
        api_key=to.key,
        base_url=to.url,
        organization=to.organization,
        project=to.project,
        http_client=to.client,
        max_retries=0,
    )
    sdk.organization, sdk.project = to.organization, to.project  # nobody else is told what the environment says
    post_plainly(sdk)
    profile = {"openai_chat_streaming_requires_finish_reason": True, **profile}
    if to.own_url or not provider_class:
        # Servers of every kind: one system message, and the field for the output limit that the oldest of them knows,
        # except that OpenAI's reasoning models, reached through a proxy, refuse it.
        profile["openai_chat_supports_multiple_system_messages"] = False
        profile["openai_supports_strict_tool_definition"] = False
        if not openai_model_profile(to.model).get("openai_supports_reasoning", False):
            profile["openai_chat_supports_max_completion_tokens"] = False
    if (to.own_url and to.provider == "openai") or not provider_class:
        provider = OpenAICompatibleProvider(
            f"{to.provider}-compatible" if to.own_url else to.provider, openai_client=sdk
        )
    else:
        provider = _named(provider_class)(openai_client=sdk)
    return Built(_named(model_class)(to.model, provider=provider, profile=profile), {"cache": True})


def anthropic_wire(to: Connection) -> Built:
    """Messages. Tools, static instructions and the conversation carry cache markers."""
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    sdk = AsyncAnthropic(api_key=to.key, base_url=to.url, http_client=to.client, max_retries=0)
    model = AnthropicModel(to.model, provider=AnthropicProvider(anthropic_client=sdk))
    settings: dict[str, Any] = {
        "anthropic_cache_instructions": True,
        "anthropic_cache_tool_definitions": True,
        # The request-wide marker is Anthropic's own; what speaks its format knows the one on the last block.
        ("anthropic_cache_messages" if to.own_url else "anthropic_cache"): True,
    }
    if cast("Mapping[str, Any]", model.profile).get("anthropic_binds_thinking_blocks", False):
        # Otherwise reasoning whose prefix has changed is refused, and the library sends the request a second time.
        binding = {"prefix_mismatch_behavior": "drop_block"}
        settings["anthropic_thinking"] = {"type": "adaptive", "block_binding": binding}
        return Built(model, settings, _effort_of_thinking)
    return Built(model, settings)


def _effort_of_thinking(settings: dict[str, Any]) -> dict[str, Any]:
    """The library takes either its own `thinking` or Anthropic's with the binding: the level becomes the effort."""
    if "thinking" not in settings:
        return settings
    level = settings.pop("thinking")
    if level is False:
        settings.pop("anthropic_thinking", None)
        return {**settings, "thinking": False}
    if isinstance(level, str):
        settings.setdefault("anthropic_effort", "low" if level == "minimal" else level)
    return settings


def google_wire(to: Connection) -> Built:
    """generateContent of the Gemini API."""
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    class OneHop(GoogleModel):
        """Asks the SDK not to go on by itself where a response stops half-way: that would be another paid request."""

        async def _build_content_and_config(self, *args: Any, **named: Any) -> Any:
            inherited: Any = super()
            contents, config = await inherited._build_content_and_config(*args, **named)  # noqa: SLF001  # our base
            config["automatic_continuation"] = False
            return contents, config

    provider = GoogleProvider(api_key=to.key, base_url=to.url, http_client=to.client)
    return Built(OneHop(to.model, provider=provider), {})


def _named(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
