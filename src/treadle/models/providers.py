"""The table of providers: where each is, how it is spoken to and paid, which class of the model library knows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Wire = Literal["openai", "anthropic", "google"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One row of the table.

    `key` and `url_variable` name environment variables; `prices` is its name in the price data; `free`: a server of
    one's own, which charges nothing. `classes` are the model library's provider and model for the OpenAI wire.
    `streams`: whether it takes the request for usage that a stream needs. `ids`: the call ids that it takes.
    """

    url: str
    wire: Wire = "openai"
    key: tuple[str, ...] = ()
    url_variable: str = ""
    classes: tuple[str, str] = ("", "pydantic_ai.models.openai:OpenAIChatModel")
    prices: str = ""
    free: bool = False
    streams: bool = True
    ids: str = r"[\x21-\x7e]{1,40}"
    profile: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def package(self) -> str:
        """What is installed to have it."""
        return f"pydantic-ai-slim[{self.wire}]"


def _chat(name: str, cls: str, url: str, *key: str, model: str = "openai:OpenAIChatModel", **more: Any) -> Provider:
    classes = (f"pydantic_ai.providers.{name}:{cls}" if cls else "", f"pydantic_ai.models.{model}")
    return Provider(url=url, key=key, classes=classes, prices=more.pop("prices", name), **more)


_MISTRAL_REFUSES = {"openai_chat_send_back_thinking_parts": False}
_PLAIN = r"[A-Za-z0-9_-]{1,40}"

PROVIDERS: dict[str, Provider] = {
    "openai": _chat(
        "openai", "OpenAIProvider", "https://api.openai.com/v1", "OPENAI_API_KEY", url_variable="OPENAI_BASE_URL"
    ),
    "anthropic": Provider(
        wire="anthropic",
        url="https://api.anthropic.com",
        key=("ANTHROPIC_API_KEY",),
        url_variable="ANTHROPIC_BASE_URL",
        prices="anthropic",
        ids=_PLAIN,
    ),
    "google": Provider(
        wire="google",
        url="https://generativelanguage.googleapis.com",
        key=("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        url_variable="GOOGLE_GEMINI_BASE_URL",
        prices="google",
    ),
    "alibaba": _chat(
        "alibaba",
        "AlibabaProvider",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        "ALIBABA_API_KEY",
        "DASHSCOPE_API_KEY",
    ),
    "cerebras": _chat(
        "cerebras",
        "CerebrasProvider",
        "https://api.cerebras.ai/v1",
        "CEREBRAS_API_KEY",
        model="cerebras:CerebrasModel",
    ),
    "deepseek": _chat("deepseek", "DeepSeekProvider", "https://api.deepseek.com", "DEEPSEEK_API_KEY"),
    "fireworks": _chat("fireworks", "FireworksProvider", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    "groq": _chat("groq", "", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "mistral": _chat(
        "mistral",
        "",
        "https://api.mistral.ai/v1",
        "MISTRAL_API_KEY",
        streams=False,
        ids=r"[A-Za-z0-9]{9}",
        profile=_MISTRAL_REFUSES,
    ),
    "moonshotai": _chat("moonshotai", "MoonshotAIProvider", "https://api.moonshot.ai/v1", "MOONSHOTAI_API_KEY"),
    "nebius": _chat("nebius", "NebiusProvider", "https://api.studio.nebius.com/v1", "NEBIUS_API_KEY"),
    "openrouter": _chat(
        "openrouter",
        "OpenRouterProvider",
        "https://openrouter.ai/api/v1",
        "OPENROUTER_API_KEY",
        model="openrouter:OpenRouterModel",
        ids=_PLAIN,
    ),
    "sambanova": _chat("sambanova", "SambaNovaProvider", "https://api.sambanova.ai/v1", "SAMBANOVA_API_KEY"),
    "together": _chat("together", "TogetherProvider", "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "vercel": _chat("vercel", "VercelProvider", "https://ai-gateway.vercel.sh/v1", "VERCEL_AI_GATEWAY_API_KEY"),
    "xai": _chat("xai", "", "https://api.x.ai/v1", "XAI_API_KEY", prices="x-ai"),
    "zai": _chat("zai", "ZaiProvider", "https://api.z.ai/api/paas/v4", "ZAI_API_KEY", model="zai:ZaiModel"),
    "ollama": _chat(
        "ollama",
        "OllamaProvider",
        "http://127.0.0.1:11434/v1",
        url_variable="OLLAMA_BASE_URL",
        model="ollama:OllamaModel",
        free=True,
    ),
    "vllm": _chat("vllm", "VLLMProvider", "http://127.0.0.1:8000/v1", url_variable="VLLM_BASE_URL", free=True),
    "llamacpp": _chat("llamacpp", "", "http://127.0.0.1:8080/v1", url_variable="LLAMACPP_BASE_URL", free=True),
    "lmstudio": _chat("lmstudio", "", "http://127.0.0.1:1234/v1", url_variable="LMSTUDIO_BASE_URL", free=True),
}
