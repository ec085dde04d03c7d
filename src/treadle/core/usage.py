"""Usage and money. Money is exact: Decimal inside, finite, never negative (FR-11)."""

from __future__ import annotations

from decimal import Decimal

from .errors import InvalidUsage
from .values import Value

ZERO_USD = Decimal(0)


class Usage(Value, frozen=True, kw_only=True, array_like=True):
    """Tokens, requests and cost of one or more model calls. Stored as an array, since every turn carries one."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    requests: int = 0
    cost_usd: Decimal = ZERO_USD

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            requests=self.requests + other.requests,
            cost_usd=self.cost_usd + other.cost_usd,
        )

    def __sub__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens - other.input_tokens,
            output_tokens=self.output_tokens - other.output_tokens,
            cache_read_tokens=self.cache_read_tokens - other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens - other.cache_write_tokens,
            requests=self.requests - other.requests,
            cost_usd=self.cost_usd - other.cost_usd,
        )

    @property
    def tokens(self) -> int:
        """Input and output together; cached tokens are part of the input."""
        return self.input_tokens + self.output_tokens

    def checked(self) -> Usage:
        """Itself, or InvalidUsage: `bool` for `int`, negatives, NaN and infinities are refused."""
        cost = self.cost_usd
        if (
            type(self.input_tokens) is type(self.output_tokens) is type(self.cache_read_tokens) is int
            and type(self.cache_write_tokens) is type(self.requests) is int
            and min(self.input_tokens, self.output_tokens, self.cache_read_tokens, self.cache_write_tokens) >= 0
            and self.requests >= 0
            and type(cost) is Decimal
            and cost.is_finite()
            and cost >= 0
        ):
            return self
        for name in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "requests"):
            count: object = getattr(self, name)
            if type(count) is not int or count < 0:
                raise InvalidUsage(f"{name} must be a whole number >= 0, not {count!r}")
        check_money("cost_usd", self.cost_usd)
        return self


NO_USAGE = Usage()
MOST_USD = Decimal(10**9)
"""No limit is higher: beyond it an amount is a slip of the finger."""


def checked(usage: object) -> Usage:
    """What somebody's own code reports, or InvalidUsage."""
    if not isinstance(usage, Usage):
        raise InvalidUsage(f"usage is reported as a Usage, not as {usage!r:.100}")
    return usage.checked()


def check_money(name: str, amount: object) -> Decimal:
    """The amount, or InvalidUsage where it is no finite Decimal >= 0."""
    if type(amount) is not Decimal or not amount.is_finite() or amount < 0:
        raise InvalidUsage(f"{name} must be a finite amount >= 0, not {amount!r}")
    return amount
