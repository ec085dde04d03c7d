"""What tokens cost: a price that a person gave, or the offline data of the model library. Money is exact (FR-11)."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

from treadle.core.errors import ConfigurationError, InvalidUsage
from treadle.core.usage import Usage, check_money
from treadle.core.values import Value

_PER_MTOK = -6  # a shift of the decimal point, so that no division rounds
_DEAREST = Decimal(1_000_000)
_FORM = "IN,OUT[,CACHE_READ[,CACHE_WRITE]] in USD per million tokens, such as 3,15,0.30,3.75"


class Price(Value, frozen=True, kw_only=True):
    """USD per million tokens. A cache price that is not given is the input price."""

    input_usd_per_mtok: Decimal
    output_usd_per_mtok: Decimal
    cache_read_usd_per_mtok: Decimal | None = None
    cache_write_usd_per_mtok: Decimal | None = None

    def cost(self, usage: Usage) -> Decimal:
        """What this usage costs. Cached tokens are part of `input_tokens`, whatever they are."""
        read = min(usage.cache_read_tokens, usage.input_tokens)
        write = min(usage.cache_write_tokens, usage.input_tokens - read)
        fresh = usage.input_tokens - read - write
        micro = (
            fresh * self.input_usd_per_mtok
            + read * _or(self.cache_read_usd_per_mtok, self.input_usd_per_mtok)
            + write * _or(self.cache_write_usd_per_mtok, self.input_usd_per_mtok)
            + usage.output_tokens * self.output_usd_per_mtok
        )
        return micro.scaleb(_PER_MTOK).normalize() + 0


def _or(price: Decimal | None, otherwise: Decimal) -> Decimal:
    return otherwise if price is None else price


def parse_price(text: str) -> Price:
    """The price that the form IN,OUT[,CACHE_READ[,CACHE_WRITE]] names, or ConfigurationError."""
    fields = [field.strip() for field in text.split(",")]
    if not 2 <= len(fields) <= 4:
        raise ConfigurationError(f"{text!r} is no price: give {_FORM}")
    try:
        amounts = [check_money("price", Decimal(field)) for field in fields]
    except (InvalidOperation, InvalidUsage) as error:
        raise ConfigurationError(f"{text!r} is no price: amounts are finite and not negative; give {_FORM}") from error
    if max(amounts) > _DEAREST:
        raise ConfigurationError(f"{text!r} is no price: more than {_DEAREST:,} USD per million tokens; give {_FORM}")
    read, write = [*amounts[2:], None, None][:2]
    return Price(
        input_usd_per_mtok=amounts[0],
        output_usd_per_mtok=amounts[1],
        cache_read_usd_per_mtok=read,
        cache_write_usd_per_mtok=write,
    )


def known_cost(usage: Usage, *, model: str, provider: str, at_us: int) -> Decimal | None:
    """What the price data shipped with the model library says at that time; None for a model that it does not know."""
    from genai_prices import Usage as PricedUsage
    from genai_prices import calc_price

    read = min(usage.cache_read_tokens, usage.input_tokens)
    priced = PricedUsage(
        input_tokens=usage.input_tokens,
        cache_read_tokens=read,
        cache_write_tokens=min(usage.cache_write_tokens, usage.input_tokens - read),
        output_tokens=usage.output_tokens,
    )
    moment = datetime.fromtimestamp(at_us / 1_000_000, UTC)
    try:
        found = calc_price(priced, model, provider_id=provider, genai_request_timestamp=moment)
    except LookupError:
        return None
    return found.total_price
