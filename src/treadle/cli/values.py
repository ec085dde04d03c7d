"""What people type, read exactly or refused with an example: flags, environment and configuration files alike."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from treadle.core.errors import ConfigurationError
from treadle.core.usage import MOST_USD
from treadle.settings import Settings

_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?", re.ASCII)
MAX_DAYS = 36_500
MAX_SECONDS = 10 * 366 * 86_400


def cost(name: str) -> Callable[[Any], Decimal]:
    """An amount in USD above 0."""

    def read(value: Any) -> Decimal:
        text = str(value).strip().removeprefix("$")
        try:
            amount = Decimal(text if text.isascii() else "NaN")
        except InvalidOperation:
            amount = Decimal("NaN")
        if isinstance(value, bool) or not amount.is_finite() or not 0 < amount <= MOST_USD:
            raise ConfigurationError(
                f"{name} {value!r} is no amount in US dollars above 0, at most {MOST_USD:,}. Example: {name} 2.50"
            )
        return amount

    return named(read, "usd")


def whole(name: str, least: int = 1) -> Callable[[Any], int]:
    """A whole number of at least 1, or of another least one."""

    def read(value: Any) -> int:
        text = str(value).strip()
        if isinstance(value, bool) or not re.fullmatch(r"\d{1,9}", text, re.ASCII) or int(text) < least:
            raise ConfigurationError(f"{name} {value!r} is no whole number of at least {least}. Example: {name} 10")
        return int(text)

    return named(read, "n")


def from_zero(name: str) -> Callable[[Any], int]:
    """A whole number of at least 0."""

    def read(value: Any) -> int:
        text = str(value).strip()
        if isinstance(value, bool) or not re.fullmatch(r"\d{1,9}", text, re.ASCII):
            raise ConfigurationError(f"{name} {value!r} is no whole number of at least 0. Example: {name} 2")
        return int(text)

    return named(read, "n")


def tokens(name: str) -> Callable[[Any], int]:
    """The size of a window: a whole number, 32k, 1M."""

    def read(value: Any) -> int:
        from treadle.spec.definitions import LEAST_WINDOW

        match = re.fullmatch(r"(\d{1,9})([kKmM]?)", "" if isinstance(value, bool) else str(value).strip(), re.ASCII)
        found = int(match[1]) * {"": 1, "k": 1_000, "m": 1_000_000}[match[2].lower()] if match else 0
        if not LEAST_WINDOW <= found <= 100_000_000:
            raise ConfigurationError(
                f"{name} {value!r} is no number of tokens of at least {LEAST_WINDOW:,}. Examples: {name} 32768, {name} 128k"
            )
        return found

    return named(read, "n")


def ratio(name: str) -> Callable[[Any], float]:
    """A share, from 0.1 to 1."""

    def read(value: Any) -> float:
        from treadle.spec.definitions import LEAST_RATIO

        try:
            found = 0.0 if isinstance(value, bool) else float(str(value).strip())
        except ValueError:
            found = 0.0
        if not LEAST_RATIO <= found <= 1:
            raise ConfigurationError(f"{name} {value!r} is no share between {LEAST_RATIO} and 1. Example: {name} 0.8")
        return found

    return named(read, "ratio")


def one_of(name: str, choices: tuple[str, ...]) -> Callable[[Any], str]:
    """One of these words."""

    def read(value: Any) -> str:
        found = "off" if value is False else str(value).strip()  # TOML and YAML may say off as false
        if found not in choices:
            raise ConfigurationError(f"{name} {value!r} is none of {', '.join(choices)}.")
        return found

    return named(read, "choice")


def seconds(name: str) -> Callable[[Any], float]:
    """A duration: 90, 90s, 10m, 2h, 1h30m."""

    def read(value: Any) -> float:
        text = "" if isinstance(value, bool) else str(value).strip().lower()
        match = _DURATION.fullmatch(text)
        parts = [float(part or 0) for part in match.groups()] if match and text else [0.0]
        found = sum(part * unit for part, unit in zip(parts, (3600, 60, 1), strict=False))
        if not 0 < found <= MAX_SECONDS:
            raise ConfigurationError(
                f"{name} {value!r} is no duration above 0. Examples: {name} 90s, {name} 10m, {name} 2h"
            )
        return found

    return named(read, "duration")


def days(name: str) -> Callable[[Any], float]:
    """An age in seconds: 30d, or any duration."""
    duration = seconds(name)

    def read(value: Any) -> float:
        text = str(value).strip().lower()
        if text.endswith("d"):
            number = text.removesuffix("d")
            if number.isascii() and number.isdecimal() and 0 < int(number) <= MAX_DAYS:
                return int(number) * 86_400.0
            raise ConfigurationError(f"{name} {value!r} is no age. Examples: {name} 30d, {name} 12h")
        return duration(value)

    return named(read, "age")


def named(read: Callable[[Any], Any], name: str) -> Callable[[Any], Any]:
    """The reader under the name that help shows as the kind of value."""
    read.__name__ = name
    return read


def text(name: str, value: Any) -> str:
    """A setting that must be text."""
    if not isinstance(value, str):
        raise ConfigurationError(f"{name} must be text, not {value!r}.")
    return value


def texts(name: str, value: Any) -> tuple[str, ...]:
    """A setting that is a list of texts, or one of them."""
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list) and all(isinstance(one, str) for one in value):  # pyright: ignore[reportUnknownVariableType]
        return tuple(str(one) for one in value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    raise ConfigurationError(f"{name} must be a list of texts, not {value!r}.")


def sink_names(given: list[str] | None, settings: Settings) -> tuple[str, ...]:
    """Where progress goes: as flags say, or the environment (separated by commas), or the user's file."""
    if given:
        return tuple(given)
    names = texts("sinks", settings.defaults.get("sinks") or [])
    return tuple(part.strip() for name in names for part in name.split(",") if part.strip())
