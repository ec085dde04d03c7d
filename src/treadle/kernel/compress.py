"""Compacting a conversation, as pure rules: where it may be cut, what is pinned, what is folded, and what the new branch holds.

A call and its results are one piece and never come apart. The task, what a person said, the last rejection and the answers to
questions are pinned: they stay word for word, whatever is folded around them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from treadle.core.messages import Compacted, Depth, Message, ModelResponded, Prompted, ToolResult, ToolsFinished
from treadle.core.values import replace

from .texts import SUMMARY_HEAD, trimmed

TRIM_OVER, TRIM_TO = 600, 120  # characters of an old tool output from which on it becomes a stub, and what stays of it
TURNS_WHOLE = 3  # of the last turns no output is trimmed
TAIL_PERCENT: dict[Depth, int] = {
    "micro": 100,
    "auto": 30,
    "full": 10,
    "clamp": 50,
}  # of the budget that stays unfolded
LEAST_FOLDED_PERCENT = 5  # of the history: less is not worth a summary
LEAST_CLIP = 400  # characters of each output of the last turn that the clamp leaves


class Row(NamedTuple):
    """A message of a branch and the record that it came with (0: an example, which is always kept)."""

    seq: int
    message: Message


class Plan(NamedTuple):
    """What a compaction does, said of positions in the branch."""

    parent: int | None
    cut: int  # as in Compacted
    keep: tuple[int, ...]
    folded: tuple[int, ...]  # positions
    trim_before: int = 0
    clip_to: int | None = None


# ---- what holds of a conversation


def boundaries(messages: Sequence[Message]) -> list[int]:
    """Positions before which it may be cut: no call is open there."""
    found: list[int] = []
    open_calls = 0
    for position, message in enumerate(messages):
        if isinstance(message, ToolsFinished):
            open_calls -= len(message.results)
            continue
        if open_calls <= 0:
            found.append(position)
        open_calls = len(message.calls) if isinstance(message, ModelResponded) else open_calls
    return found


def pinned(messages: Sequence[Message]) -> list[int]:
    """Positions of what is never folded: task, a person's words, the last rejection, questions with their answers."""
    found: list[int] = []
    feedback: int | None = None
    asks = False
    for position, message in enumerate(messages):
        match message:
            case Prompted():
                asks = False
                if message.origin == "feedback":
                    feedback = position
                elif message.origin in ("task", "person"):
                    found.append(position)
            case ModelResponded():
                asks = any(call.kind == "ask" for call in message.calls)
                if asks:
                    found.append(position)
            case ToolsFinished():
                if asks:
                    found.append(position)
    return sorted(found if feedback is None else [*found, feedback])


# ---- what to do


def plan(rows: Sequence[Row], weights: Sequence[int], depth: Depth, budget: int) -> Plan | None:
    """What a compaction of this depth does; None where there is too little that it could do. `budget` in quarter tokens."""
    messages = [row.message for row in rows]
    if depth == "micro":
        return _micro(rows, messages)
    cuts = boundaries(messages)
    pins = {position for position in pinned(messages) if rows[position].seq}
    tail = max(0, budget * TAIL_PERCENT[depth] // 100 - (depth == "clamp") * sum(weights[p] for p in pins))
    at = _cut(cuts, weights, tail)
    folded = tuple(p for p in range(at) if p not in pins and rows[p].seq)
    clip_to = _clip(messages[at:], sum(weights[at:]), tail) if depth == "clamp" else None
    if clip_to is None and sum(weights[p] for p in folded) * 100 <= sum(weights) * LEAST_FOLDED_PERCENT:
        return None
    keep = tuple(rows[p].seq for p in sorted(pins) if p < at)
    parent = next((rows[p - 1].seq for p in folded[:1] if p), None)
    return Plan(parent or None, rows[at].seq if folded else 0, keep, folded, clip_to=clip_to)


def _micro(rows: Sequence[Row], messages: Sequence[Message]) -> Plan | None:
    turns = [position for position, message in enumerate(messages) if isinstance(message, ModelResponded)]
    if len(turns) <= TURNS_WHOLE:
        return None
    before = turns[-TURNS_WHOLE]
    first = next((p for p in range(before) if rows[p].seq and _shorter(rows[p]) is not rows[p].message), None)
    if first is None:
        return None
    return Plan(rows[first - 1].seq or None if first else None, 0, (), (), trim_before=rows[before].seq)


def _shorter(row: Row) -> Message:
    return _cut_results(row, TRIM_OVER, TRIM_TO)


def _cut(cuts: Sequence[int], weights: Sequence[int], tail: int) -> int:
    """The earliest place after which no more than `tail` stands; the last place where nothing is that short."""
    left = sum(weights)
    past = 0
    for at in cuts:
        left -= sum(weights[past:at])
        past = at
        if left <= tail:
            return at
    return cuts[-1] if cuts else 0


def _clip(tail: Sequence[Message], weight: int, room: int) -> int | None:
    """Characters for each output of a tail that is too long even alone."""
    if weight <= room:
        return None
    results = [result for message in tail if isinstance(message, ToolsFinished) for result in message.results]
    if not any(len(result.content) > LEAST_CLIP for result in results):
        return None
    others = max(0, weight - sum(len(result.content) for result in results))
    return max(LEAST_CLIP, (room - others) // max(1, len(results)) // 2)


def saved_by_micro(rows: Sequence[Row]) -> int:
    """Quarter tokens, about: what trimming old outputs would save."""
    made = _micro(rows, [row.message for row in rows])
    if made is None:
        return 0
    saved = 0
    for row in rows:
        if row.seq == made.trim_before:
            break
        if row.seq and (short := _shorter(row)) is not row.message:
            assert isinstance(short, ToolsFinished)
            assert isinstance(row.message, ToolsFinished)
            pairs = zip(row.message.results, short.results, strict=True)
            saved += sum(len(old.content) - len(new.content) for old, new in pairs)
    return saved


# ---- what comes of it


def compacted(rows: Sequence[Row], seq: int, event: Compacted) -> list[Row]:
    """The new branch, made of the old one by what the event says. `seq` is the event's own record."""
    places = {row.seq: position for position, row in enumerate(rows) if row.seq}
    at = places.get(event.cut, 0) if event.cut else 0
    keep = set(event.keep)
    kept = [row for row in rows[:at] if row.seq == 0 or row.seq in keep]
    if event.summary:
        text = f"{SUMMARY_HEAD}\n\n{event.summary}"
        kept.append(Row(seq, Prompted(parent=event.parent, text=text, origin="summary")))
    if not event.trim_before and event.clip_to is None:
        return [*kept, *rows[at:]]
    trims = places.get(event.trim_before, 0)
    tail = [_cut_row(row, event, old=position < trims) for position, row in enumerate(rows[at:], at)]
    return [*kept, *tail]


def _cut_row(row: Row, event: Compacted, *, old: bool) -> Row:
    if row.seq and old:
        return Row(row.seq, _cut_results(row, event.trim_over, event.trim_to))
    if row.seq and event.clip_to is not None:
        return Row(row.seq, _cut_results(row, event.clip_to, event.clip_to))
    return row


def _cut_results(row: Row, over: int, to: int) -> Message:
    """The message with its long outputs cut; itself where none is long."""
    message = row.message
    if not isinstance(message, ToolsFinished) or all(len(r.content) <= over for r in message.results):
        return message
    results = tuple(_cut_result(result, row.seq, over, to) for result in message.results)
    return message if results == message.results else replace(message, results=results)


def _cut_result(result: ToolResult, seq: int, over: int, to: int) -> ToolResult:
    if len(result.content) <= over:
        return result
    stub = trimmed(result.content, f"{result.id}@{seq}", to)
    return replace(result, content=stub) if len(stub) < len(result.content) else result


# ---- what is summarised


def transcript(messages: Sequence[Message], limit: int) -> str:
    """The folded messages as text for whoever summarises them, within `limit` characters."""
    pieces = [_told(message) for message in messages]
    return shortened("\n\n".join(piece for piece in pieces if piece), limit)


def shortened(text: str, most: int) -> str:
    """Its beginning and its end, within about `most` characters."""
    if len(text) <= most:
        return text
    half = max(most // 2 - 30, 0)
    return f"{text[:half]}\n[... {len(text) - 2 * half:,} characters left out ...]\n{text[len(text) - half :]}"


def _told(message: Message) -> str:
    match message:
        case Prompted():
            who = "earlier summary" if message.origin == "summary" else message.origin
            return f"[{who}] {shortened(message.text, 8_000)}"
        case ModelResponded():
            calls = "\n".join(f"[call {call.name}] {shortened(str(call.args), 600)}" for call in message.calls)
            said = f"[agent] {shortened(message.text, 4_000)}" if message.text.strip() else ""
            return "\n".join(part for part in (said, calls) if part)
        case ToolsFinished():
            return "\n".join(f"[result, {r.status}] {shortened(r.content, 800)}" for r in message.results)


def recent_files(messages: Sequence[Message], most: int = 8) -> list[str]:
    """Paths that were read or changed last, newest first."""
    found: dict[str, None] = {}
    for message in reversed(messages):
        if isinstance(message, ToolsFinished):
            found.update(dict.fromkeys(path for result in message.results for path in result.changed))
        elif isinstance(message, ModelResponded):
            paths = (call.args.get("path") for call in message.calls if isinstance(call.args, dict))
            found.update(dict.fromkeys(path for path in paths if isinstance(path, str) and path))
        if len(found) >= most:
            break
    return list(found)[:most]
