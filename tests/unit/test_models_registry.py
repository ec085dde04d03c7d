"""Models by name: what is known, what is missing, what it costs and how much it reads."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from typing import Any

import anyio
import pytest

from treadle.core.errors import ConfigurationError
from treadle.core.usage import Usage
from treadle.models.prices import Price, parse_price
from treadle.models.providers import PROVIDERS
from treadle.models.registry import model_from_name
from treadle.ports.model import Model

NOW_US = 1_764_500_000_000_000
USAGE = Usage(input_tokens=1_000_000, output_tokens=100_000, cache_read_tokens=400_000)


def made(name: str, environ: dict[str, str] | None = None, **more: Any) -> Model:
    model = model_from_name(name, now_us=lambda: NOW_US, environ=environ or {}, **more)
    anyio.run(model.close)
    return model


def refused(name: str, environ: dict[str, str] | None = None, **more: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        made(name, environ, **more)
    return str(caught.value)


def test_an_unknown_provider_is_refused_with_close_names_and_the_known_ones() -> None:
    text = refused("opnai:gpt-5")
    assert "Did you mean openai" in text
    assert all(provider in text for provider in PROVIDERS)


@pytest.mark.parametrize("name", ["", "gpt-5", "openai:", ":gpt-5", "openai"])
def test_a_name_without_both_halves_is_refused_with_the_form(name: str) -> None:
    assert "provider:model" in refused(name)


@pytest.mark.parametrize("provider", [name for name, row in PROVIDERS.items() if row.key])
def test_a_missing_key_is_refused_naming_the_variable(provider: str) -> None:
    text = refused(f"{provider}:some-model")
    assert all(variable in text for variable in PROVIDERS[provider].key)
    assert "some-model" not in text


def test_an_empty_key_is_a_missing_key() -> None:
    assert "OPENAI_API_KEY" in refused("openai:gpt-5", {"OPENAI_API_KEY": " "})


def test_the_environment_is_the_one_that_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-process")
    assert "OPENAI_API_KEY" in refused("openai:gpt-5")


def test_a_server_of_ones_own_needs_no_key() -> None:
    assert made("openai:anything", base_url="http://127.0.0.1:1/v1").name == "openai:anything"
    assert made("openai:anything", {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}).name == "openai:anything"
    assert made("ollama:qwen3:8b").name == "ollama:qwen3:8b"


@pytest.mark.parametrize(
    "url", ["localhost", "localhost:8080/v1", "ftp://x/v1", "http://", "http://[::1", "http://x:y/"]
)
def test_what_is_no_url_is_refused(url: str) -> None:
    assert "no base URL" in refused("openai:gpt-5", base_url=url)


@pytest.mark.parametrize("provider", sorted(PROVIDERS))
def test_every_row_makes_a_model(provider: str) -> None:
    row = PROVIDERS[provider]
    name = f"{provider}:{'acme/' if provider == 'openrouter' else ''}some-model"
    model = made(name, dict.fromkeys(row.key, "key-of-no-use"))
    assert model.name == name
    assert model.context_window >= 4 * model.max_output_tokens > 0
    assert model.price(USAGE) == (Decimal(0) if row.free else None)


@pytest.mark.parametrize(
    ("name", "window", "cost"),
    [
        ("openai:gpt-4o", 128_000, Decimal("3.0")),
        ("anthropic:claude-sonnet-4-6", 1_000_000, None),
        ("openai:gpt-5", 400_000, None),
    ],
)
def test_known_models_have_their_window_and_price(name: str, window: int, cost: Decimal | None) -> None:
    row = PROVIDERS[name.partition(":")[0]]
    model = made(name, {row.key[0]: "key-of-no-use"})
    assert model.context_window == window
    found = model.price(USAGE)
    assert found is not None
    assert found > 0
    assert cost is None or found == cost


def test_a_name_that_the_provider_cannot_have_is_refused() -> None:
    assert "openai/some-model" in refused("openrouter:some-model", {"OPENROUTER_API_KEY": "key-of-no-use"})


def test_a_model_elsewhere_has_no_price_unless_one_is_given() -> None:
    url = "http://127.0.0.1:1/v1"
    assert made("openai:gpt-4o", base_url=url).price(USAGE) is None
    assert made("openai:gpt-4o", base_url=url, price=parse_price("1,2")).price(USAGE) == Decimal("1.2")


def test_a_server_of_ones_own_is_taken_to_read_little() -> None:
    model = made("openai:unheard-of", base_url="http://127.0.0.1:1/v1")
    assert (model.context_window, model.max_output_tokens) == (32_768, 8_192)
    sized = made("openai:unheard-of", base_url="http://127.0.0.1:1/v1", context_window=8_000)
    assert (sized.context_window, sized.max_output_tokens) == (8_000, 2_000)


@pytest.mark.req("FR-11")
def test_money_is_exact() -> None:
    price = parse_price("3, 15, 0.30, 3.75")
    usage = Usage(input_tokens=3, output_tokens=1, cache_read_tokens=1, cache_write_tokens=1)
    assert price.cost(usage) == Decimal("0.00002205")
    assert sum((price.cost(usage) for _ in range(1000)), Decimal(0)) == Decimal("0.02205")


def test_cached_tokens_cost_the_input_price_where_none_is_given() -> None:
    assert parse_price("2,0").cost(Usage(input_tokens=10, cache_read_tokens=6, cache_write_tokens=4)) == Decimal(
        "0.00002"
    )
    assert parse_price("2,0,0").cost(Usage(input_tokens=10, cache_read_tokens=6)) == Decimal("0.000008")


def test_more_cached_than_read_costs_no_less_than_nothing() -> None:
    assert parse_price("2,0,1").cost(Usage(input_tokens=1, cache_read_tokens=6, cache_write_tokens=9)) == Decimal(
        "0.000001"
    )


@pytest.mark.req("FR-11")
@pytest.mark.parametrize(
    "text",
    ["", "1", "1,2,3,4,5", "a,b", "-1,2", "1,-2", "NaN,1", "1,Infinity", "1,,2", "1;2", "1e9,1", "$1,2", "1,2,x"],
)
def test_what_is_no_price_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(ConfigurationError, match="IN,OUT"):
        parse_price(text)


def test_a_price_is_what_its_numbers_say() -> None:
    assert parse_price("0.15,0.6") == Price(input_usd_per_mtok=Decimal("0.15"), output_usd_per_mtok=Decimal("0.6"))


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_nothing_heavy_is_imported_until_a_model_is_made() -> None:
    code = (
        "import sys, treadle.models.registry, treadle.testing\n"
        "heavy = {'pydantic', 'pydantic_ai', 'httpx', 'httpx2', 'openai', 'anthropic', 'google', 'genai_prices'}\n"
        "print(sorted(heavy & {name.partition('.')[0] for name in sys.modules}))"
    )
    assert python(code) == "[]"


def test_a_missing_sdk_is_refused_naming_what_to_install() -> None:
    code = (
        "import sys; sys.modules['anthropic'] = None\n"
        "from treadle.models.registry import model_from_name\n"
        "from treadle.core.errors import ConfigurationError\n"
        "try: model_from_name('anthropic:x', now_us=lambda: 0, environ={'ANTHROPIC_API_KEY': 'k'})\n"
        "except ConfigurationError as error: print(error)"
    )
    assert "pip install 'pydantic-ai-slim[anthropic]'" in python(code)
