"""The session log: records as entries that a person, a program or a later run can read. Typed, summarised, bounded (AG-20).

It is made from records whenever somebody asks. Replay reads the records themselves, never this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from treadle.core.codec import decode
from treadle.core.spoken import count
from treadle.core.values import Value
from treadle.ports.ledger import Record

from .said import describe

TEXT = 240  # characters of an entry's summary
LONGEST = 2_000  # characters of any one text in a body, unless it is wanted whole
TAIL_ENTRIES, TAIL_CHARACTERS = 40, 6_000  # what a later run is given of an earlier one

_BEGINS = ("baseline.taken", "prompted", "model.intended", "callback.started")


class Entry(Value, frozen=True, kw_only=True):
    """One record as the log shows it. Of a loop it says the round, phase and turn, of a workflow the task."""

    seq: int
    at_us: int
    kind: str
    version: int
    parent: int | None
    round: int = 0
    phase: str = ""
    turn: int = 0
    task: str = ""
    text: str
    body: bytes  # as stored


class Projection:
    """Turns the records of one execution into entries, in order from the first, since an entry says where it stands."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._round, self._phase, self._turn = 0, "", 0
        self._rejected = False

    def skip(self, record: Record) -> None:
        """Only takes note of where it stands."""
        self._place(record, None)

    def entry(self, record: Record) -> Entry:
        """LedgerTooNew and LedgerDamaged for a record that cannot be read."""
        event: Any = decode(record.kind, record.version, record.body)
        self._place(record, event)
        return Entry(
            seq=record.seq,
            at_us=record.at_us,
            kind=record.kind,
            version=record.version,
            parent=record.parent,
            round=self._round,
            phase=self._phase,
            turn=self._turn,
            task=str(getattr(event, "task", "")) if not self._round else "",
            text=self._redact(describe(event))[:TEXT],
            body=record.body,
        )

    def _place(self, record: Record, event: Any) -> None:
        kind = record.kind
        if kind == "loop.started":
            self._round, self._phase = 1, "act"
        elif kind in _BEGINS and self._rejected:
            self._round, self._phase, self._rejected = self._round + 1, "act", False
        elif kind in ("act.finished", "act.failed"):
            self._phase = "evaluate"
        elif kind == "model.responded":
            self._turn += 1
        elif kind == "judged":
            event = event or decode(record.kind, record.version, record.body)
            self._rejected = not event.accept


class Wanted(Value, frozen=True, kw_only=True):
    """Which entries. `kinds` are kinds or their beginnings (model, tool); `since` is the last seq that is already known."""

    kinds: tuple[str, ...] = ()
    round: int | None = None
    since: int = 0

    def __call__(self, entry: Entry) -> bool:
        """Whether it is one of them."""
        named = not self.kinds or any(entry.kind == kind or entry.kind.startswith(f"{kind}.") for kind in self.kinds)
        return named and entry.seq > self.since and self.round in (None, entry.round)


def entries(records: Iterable[Record], projection: Projection, wanted: Wanted) -> Iterator[Entry]:
    """Those that are wanted, in order."""
    for record in records:
        if record.seq <= wanted.since:
            projection.skip(record)
        elif wanted(entry := projection.entry(record)):
            yield entry


def document(entry: Entry, redact: Callable[[str], str], *, whole: bool = False) -> dict[str, Any]:
    """An entry as JSON. Long texts in its body are cut and say so, unless it is wanted whole."""
    body: Any = msgspec.Raw(entry.body)
    if not whole:
        text = entry.body.decode()
        if len(text) > LONGEST or redact(text) != text:
            body = _bounded(msgspec.json.decode(entry.body), redact)
    found: dict[str, Any] = {
        "seq": entry.seq,
        "at_us": entry.at_us,
        "kind": entry.kind,
        "version": entry.version,
        "parent": entry.parent,
        "text": entry.text,
        "body": body,
    }
    return found | (
        {"round": entry.round, "phase": entry.phase, "turn": entry.turn} if entry.round else {"task": entry.task}
    )


def _bounded(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        text = redact(value)
        return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text) - LONGEST:,} more characters)"
    if isinstance(value, list):
        return [_bounded(one, redact) for one in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {name: _bounded(one, redact) for name, one in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return value


def tail(found: Iterable[Entry], *, earlier: int = 0, characters: int = TAIL_CHARACTERS) -> str:
    """The end of a log in lines of text, at most so many characters of it, and how many records were left out before."""
    lines: list[str] = []
    size = 0
    for entry in reversed(list(found)):
        where = f"round {entry.round}" if entry.round else entry.task
        line = f"{entry.seq} {where} {entry.kind}: {entry.text}"
        size += len(line) + 1
        if size > characters:
            earlier += 1
        else:
            lines.append(line)
    if earlier:
        lines.append(f"({count(earlier, 'earlier record')} left out)")
    return "\n".join(reversed(lines))
