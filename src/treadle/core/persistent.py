"""An immutable mapping whose next version costs little, however large it is: versions share what they have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeVar, cast, get_args

import msgspec

V = TypeVar("V")
_GONE: Final = object()
SMALLEST = 16  # changes that are kept apart in any case


class _Moved(NamedTuple):
    """The value of a key that went and has come again: its place is no longer that in the base."""

    value: Any


class PersistentMap(Mapping[str, V]):
    """In order of insertion, as a dict. `put` and `without` leave it as it is and give another one.

    A version is a base that it shares with others, and its own few changes. These are copied at each step, and once they are more than
    the root of the size a new base is made: a step costs about as much as copying a list of that root's length.
    """

    __slots__ = ("_base", "_changes", "_size")

    def __init__(self, entries: Mapping[str, V] | Iterable[tuple[str, V]] = ()) -> None:
        self._base: dict[str, V] = dict(entries)
        self._changes: dict[str, object] = {}
        self._size = len(self._base)

    def put(self, key: str, value: V) -> PersistentMap[V]:
        """With that entry; one that is there keeps its place."""
        changes = self._changes.copy()
        old = changes.get(key)
        if old is _GONE:
            del changes[key]
        moved = old is _GONE or type(old) is _Moved
        changes[key] = _Moved(value) if moved else value
        new = old is _GONE or (old is None and key not in self)
        return self._next(changes, self._size + new)

    def without(self, key: str) -> PersistentMap[V]:
        """Without that entry; itself where there is none."""
        if key not in self:
            return self
        changes = self._changes.copy()
        if key in self._base:
            changes[key] = _GONE
        else:
            del changes[key]
        return self._next(changes, self._size - 1)

    def first(self) -> str:
        """The oldest key. StopIteration where there is none."""
        return next(iter(self))

    def shares_with(self, other: PersistentMap[V]) -> bool:
        """Whether the two differ by their own few changes only."""
        return self._base is other._base

    def _next(self, changes: dict[str, object], size: int) -> PersistentMap[V]:
        found: PersistentMap[V] = PersistentMap.__new__(type(self))
        found._base, found._changes, found._size = self._base, changes, size
        if len(changes) > SMALLEST and len(changes) ** 2 > len(self._base):
            found._settle()
        return found

    def _settle(self) -> None:
        """Makes the changes a base of its own. Nobody else has this version yet."""
        base = self._base.copy()
        for key, value in self._changes.items():
            if value is _GONE:
                del base[key]
            elif type(value) is _Moved:
                base.pop(key, None)
                base[key] = value.value
            else:
                base[key] = cast("V", value)
        self._base, self._changes = base, {}

    def __getitem__(self, key: str) -> V:
        if key not in self._changes:
            return self._base[key]
        value = self._changes[key]
        if value is _GONE:
            raise KeyError(key)
        return cast("V", value.value if type(value) is _Moved else value)

    def __contains__(self, key: object) -> bool:
        changes = self._changes
        return changes[key] is not _GONE if key in changes else key in self._base  # type: ignore[index]

    def __iter__(self) -> Iterator[str]:
        base, changes = self._base, self._changes
        for key in base:
            change = changes.get(key)
            if change is not _GONE and type(change) is not _Moved:
                yield key
        for key, value in changes.items():
            if value is not _GONE and (key not in base or type(value) is _Moved):
                yield key

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"PersistentMap({dict(self)!r})"


def to_stored(value: object) -> object:
    """For an encoder: it is stored as an object."""
    if isinstance(value, PersistentMap):
        return dict(cast("PersistentMap[Any]", value))
    raise NotImplementedError(f"{type(value).__name__} cannot be stored")


def from_stored(wanted: Any, value: object) -> object:
    """For a decoder."""
    (of,) = get_args(wanted)
    return PersistentMap(msgspec.convert(value, dict[str, of]))
