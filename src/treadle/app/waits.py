"""What a workflow that runs waits for: its own questions and timers, and those of what runs inside it, however deep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.core.errors import UnknownExecution
from treadle.ports.ledger import Ledger

Document = dict[str, Any]
Find = Callable[[str], Document | None]


def with_waits(found: Document, find: Find) -> Document:
    """The document of a running workflow with `waits`, where there are any. `find` gives that of an execution inside."""
    waits = _waits(found, find)
    return {**found, "waits": waits} if waits else found


def _waits(found: Document, find: Find) -> list[Document]:
    if found["status"] != "running":
        return []
    own: list[Document] = list(found.get("waits", ()))
    for inside in found.get("inside", ()):
        child = find(inside["execution_id"])
        if child is not None:
            own += [{**one, "task": inside["task"]} for one in _of_child(child, find)]
    return own


def _of_child(child: Document, find: Find) -> list[Document]:
    pending: Document | None = child["pending"]
    if child["status"] not in ("paused", "waiting-input"):
        return [{**one, "child": one["child"] or child["execution_id"]} for one in _waits(child, find)]
    told = {"child": child["execution_id"], "request_id": "", "prompt": "", "until_us": None}
    if pending is None:
        return [{**told, "for": "resume"}]
    told |= {name: pending[name] for name in ("request_id", "prompt", "until_us")}
    return [{**told, "for": WANTED.get(pending["kind"], "decision")}]


WANTED = {"quota": "quota", "question": "answer"}
SHORT = {"quota": "quota", "time": "", "answer": "a question", "decision": "a decision", "resume": "paused"}
LONG = {
    "quota": " for quota",
    "time": "",
    "answer": " for an answer",
    "decision": " for a decision",
    "resume": ", since it was paused",
}


async def documents_inside(ledger: Ledger, found: Document) -> dict[str, Document]:
    """Those of what runs inside, as deep as it goes, by the id that its workflow knows it by."""
    from .listing import UNREADABLE, listed

    known: dict[str, Document] = {}
    waiting = [one["execution_id"] for one in found.get("inside", ())]
    while waiting:
        child = waiting.pop()
        try:
            one = await listed(ledger, await ledger.row(child))
        except (UnknownExecution, *UNREADABLE):  # removed, or killed before its first record
            continue
        if one is not None:
            known[child] = one.document
            waiting += [inside["execution_id"] for inside in one.document.get("inside", ())]
    return known


def words(waits: list[Document], moment: Callable[[int], str]) -> str:
    """quota until 14:05:33 (inner) and 2 more; empty where there are none. `moment` says a wall time."""
    if not waits:
        return ""
    first = min(
        waits, key=lambda one: (one["for"] in ("quota", "time"), one["until_us"] or 0)
    )  # people's before time's
    more = f" and {len(waits) - 1} more" if len(waits) > 1 else ""
    return f"{SHORT[first['for']]}{_until(first, moment)} ({first['task']}){more}".lstrip()


def sentence(one: Document, moment: Callable[[int], str]) -> str:
    """inner waits for quota until 14:05:33."""
    return f"{one['task']} waits{LONG[one['for']]}{_until(one, moment)}"


def _until(one: Document, moment: Callable[[int], str]) -> str:
    return "" if one["until_us"] is None else f" until {moment(one['until_us'])}"
