"""What a scripted model has charged, in a file that outlives a kill of anyone: the other side of every accounting."""

from __future__ import annotations

import os
import threading
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple, Self

import msgspec

from treadle.core.usage import Usage
from treadle.models.prices import Price


class Charge(NamedTuple):
    """One line of the bill. `n` counts from 1; `key` is the idempotency key that the request carried, or empty."""

    n: int
    key: str
    usage: Usage


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    n: int
    key: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_usd: str


class Bill:
    """Appends a line a charge and syncs it before the answer leaves. A bill that exists already is gone on with.

    `path` None keeps it in memory. Any thread may charge.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, price: Price | None = None) -> None:
        self.price = price
        self._lock = threading.Lock()
        self._charges: list[Charge] = []
        self._file: int | None = None
        if path is not None:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            self._charges = read_bill(path)
            os.ftruncate(self._file, _whole(path))

    def charge(self, key: str, usage: Usage) -> Usage:
        """Writes it down; the usage with its cost."""
        cost = self.price.cost(usage) if self.price else usage.cost_usd
        usage = msgspec.structs.replace(usage, requests=1, cost_usd=cost)
        with self._lock:
            charge = Charge(len(self._charges) + 1, key, usage)
            if self._file is not None:
                os.write(self._file, msgspec.json.encode(_as_line(charge)) + b"\n")
                os.fsync(self._file)
            self._charges.append(charge)
        return usage

    @property
    def charges(self) -> list[Charge]:
        """All of them, oldest first."""
        with self._lock:
            return list(self._charges)

    @property
    def total_usd(self) -> Decimal:
        """What they come to."""
        return sum((charge.usage.cost_usd for charge in self.charges), Decimal(0))

    def close(self) -> None:
        """Closes the file. Idempotent."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_bill(path: str | os.PathLike[str]) -> list[Charge]:
    """The charges in a bill's file, even while it is being written: a torn last line was never answered."""
    lines = Path(path).read_bytes()[: _whole(path)].splitlines()
    return [_as_charge(msgspec.json.decode(line, type=_Line)) for line in lines]


def _whole(path: str | os.PathLike[str]) -> int:
    return Path(path).read_bytes().rfind(b"\n") + 1


def _as_line(charge: Charge) -> _Line:
    usage = charge.usage
    return _Line(
        charge.n,
        charge.key,
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        str(usage.cost_usd),
    )


def _as_charge(line: _Line) -> Charge:
    usage = Usage(
        input_tokens=line.input_tokens,
        output_tokens=line.output_tokens,
        cache_read_tokens=line.cache_read_tokens,
        cache_write_tokens=line.cache_write_tokens,
        requests=1,
        cost_usd=Decimal(line.cost_usd),
    )
    return Charge(line.n, line.key, usage)
