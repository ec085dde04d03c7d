"""A persistent map is a dict of which every version stays as it was."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from treadle.core.persistent import PersistentMap, from_stored, to_stored

Version = tuple[PersistentMap[int | None], list[tuple[str, int | None]]]
KEYS = st.sampled_from([f"k{number}" for number in range(60)])
STEPS = st.lists(st.tuples(st.booleans(), KEYS, st.one_of(st.none(), st.integers())), max_size=200)


def play(entries: dict[str, int | None], steps: list[tuple[bool, str, int | None]]) -> list[Version]:
    """Each version with the dict that it has to equal."""
    found, model = PersistentMap[int | None](entries), dict(entries)
    versions: list[Version] = [(found, list(model.items()))]
    for put, key, value in steps:
        if put:
            found = found.put(key, value)
            model[key] = value
        else:
            found = found.without(key)
            model.pop(key, None)
        versions.append((found, list(model.items())))
    return versions


@given(st.dictionaries(KEYS, st.integers()), STEPS)
def test_every_version_keeps_its_entries_in_the_order_of_a_dict(
    entries: dict[str, int | None], steps: list[tuple[bool, str, int | None]]
) -> None:
    for found, model in play(entries, steps):
        assert list(found.items()) == model
        assert len(found) == len(model)
        assert all((f"k{n}" in found) == any(key == f"k{n}" for key, _ in model) for n in range(60))
        if model:
            assert found.first() == model[0][0]


def test_it_is_stored_as_an_object_and_comes_back() -> None:
    whole = PersistentMap({"a": 1}).put("b", 2).without("a")
    stored = msgspec.json.encode(whole, enc_hook=to_stored)
    assert stored == b'{"b":2}'
    assert msgspec.json.decode(stored, type=PersistentMap[int], dec_hook=from_stored) == whole


def test_a_step_copies_few_entries_however_many_there_are() -> None:
    whole = PersistentMap((f"k{number}", number) for number in range(10_000))
    copied: list[int] = []
    for number in range(10_000):
        after = whole.without(f"k{number}") if number % 2 else whole.put(f"k{number}", -1)
        copied.append(0 if after.shares_with(whole) else len(after))
        whole = after
    assert len(whole) == 5_000
    assert sum(copied) < 110 * 10_000
