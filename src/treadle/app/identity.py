"""What of a definition a stored execution must not meet changed, and in which words a change is told (FR-25, TC-25)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, cast

import msgspec

from treadle.core.errors import DefinitionChanged
from treadle.core.spoken import one_line

LONGEST = 60  # characters of a part that is kept readable; of a longer one only that it changed can be told
DIGEST = re.compile(r"#?[0-9a-f]{12}|[0-9a-f]{32}")
DIGITS = 12  # of a digest inside a part
PLAIN = {
    "after": "what it comes after",
    "runs": "what it runs",
    "kind": "its kind",
    "asks": "whether it asks people",
}
Parts = Mapping[str, Any]


def stored(parts: Parts) -> str:
    """The parts of one task, as the fingerprint of its workflow has them: readable, and short."""
    kept = {name: _shortened(value) for name, value in parts.items() if value not in ("", None, [], False)}
    return msgspec.json.encode(kept).decode()


def _shortened(value: Any) -> Any:
    if isinstance(value, dict):  # of what a task runs: digests, or texts like this one
        inner = cast("dict[str, str]", value)
        return {name: text if text.startswith("{") else text[:DIGITS] for name, text in inner.items()}
    return f"#{digest(value)[:DIGITS]}" if isinstance(value, str) and len(value) > LONGEST else value


def digest(value: Any) -> str:
    """Of what is not kept readable."""
    return blake2b(msgspec.json.encode(value), digest_size=16).hexdigest()


def changed(known: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The names of the parts that differ."""
    return [name for name in sorted({*known, *now}) if known.get(name) != now.get(name)]


def differences(known: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """In words, one for each part: task c was added; task b: perform was fetch, is fetch_all."""
    return [_difference(name, known.get(name), now.get(name)) for name in changed(known, now)]


def adoptable(known: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Whether the graph is the same, and that of every workflow that one of its tasks runs."""
    for name in changed(known, now):
        before, after = (_parts(each[name]) if name in each else None for each in (known, now))
        if before is None or after is None:
            if name.startswith("task "):
                return False
            continue
        runs = [one.get("runs", {}) for one in (before, after)]
        if before.get("after") != after.get("after") or not adoptable(*runs):
            return False
    return True


def refused(execution_id: str, known: Mapping[str, str], now: Mapping[str, str]) -> DefinitionChanged:
    """What is raised where they differ."""
    told = differences(known, now)
    return DefinitionChanged(execution_id, changed(known, now), told, adoptable=adoptable(known, now))


def _difference(name: str, known: str | None, now: str | None) -> str:
    if known is None or now is None:
        return f"{name} was {'added' if known is None else 'removed'}"
    before, after = _parts(known), _parts(now)
    if before is None or after is None:
        return f"{name} {_told(known, now)}"
    return f"{name}: {', '.join(_part(one, before.get(one), after.get(one)) for one in changed(before, after))}"


def _parts(text: str) -> dict[str, Any] | None:
    """Those of a task; None for what is kept as a digest."""
    return msgspec.json.decode(text) if text.startswith("{") else None


def _part(name: str, known: Any, now: Any) -> str:
    called = PLAIN.get(name, name)
    if isinstance(known, dict) and isinstance(now, dict):
        inside = differences(cast("dict[str, str]", known), cast("dict[str, str]", now))
        return f"{called} ({'; '.join(inside)})"
    return f"{called} {_told(known, now)}"


def _told(known: Any, now: Any) -> str:
    if any(isinstance(one, dict) or (isinstance(one, str) and DIGEST.fullmatch(one)) for one in (known, now)):
        return "changed"
    return f"was {_value(known)}, is {_value(now)}"


def _value(value: Any) -> str:
    match value:
        case None | []:
            return "none"
        case bool():
            return "yes" if value else "no"
        case list():
            return " and ".join(map(str, cast("list[Any]", value)))
        case _:
            return one_line(str(value), LONGEST)
