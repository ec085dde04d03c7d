"""`treadle ls`."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import anyio

from .arguments import Namespace, Parser
from .values import whole

if TYPE_CHECKING:
    from treadle.app.listing import Listed

    from .place import Place

SHOWN = 30


def parser(name: str) -> Parser:
    """Its arguments."""
    made = Parser(
        name, ls, "List executions, newest first. With --json all of them, as the documents that show prints."
    )
    made.option(
        "-n", "--limit", metavar="N", type=whole("--limit"), help=f"at most so many (default for people: {SHOWN})"
    )
    made.option("--status", metavar="STATUS", default="", help="only these: running, done, failed, …")
    return made.store().json()


def ls(given: Namespace) -> int:
    """Prints the list."""
    from .output import print_json
    from .place import place

    limit: int | None = given.limit
    found = anyio.run(_listed, place(given.store), limit if limit or given.json else SHOWN + 1, given.status)
    if given.json:
        print_json([one.document for one in found])
    else:
        _print(found if limit else found[:SHOWN], more=limit is None and len(found) > SHOWN)
    return 0


async def _listed(where: Place, limit: int | None, status: str) -> list[Listed]:
    from treadle.app.listing import listing
    from treadle.app.stores import is_absent

    from .place import opened

    if not where.named_store and is_absent(where.store):
        return []  # nothing has been run yet: an empty list, not an error
    async with opened(where) as ledger:
        return await listing(ledger, limit=limit, status=status)


def _print(found: list[Listed], *, more: bool) -> None:
    from rich.text import Text

    from treadle.core.spoken import duration, money, one_line

    from .table import print_table

    if not found:
        sys.stderr.write("No executions yet. Start one: treadle run TASK --check CMD --model provider:model\n")
        return
    now_us = time.time_ns() // 1000
    rows: list[tuple[Text, ...]] = []
    for one in _nested(found):
        document = one.document
        label, style = status_words(document)
        age = duration(max(0, now_us - one.created_us))
        cost = money(document["cost_usd"] + document["in_doubt_usd"])
        name = f"└ {document['execution_id']}" if one.parent else document["execution_id"]
        row = (Text(name), Text(label, style=style), Text(str(document["rounds"])), Text(cost), Text(age))
        rows.append((*row, Text(one_line(str(document["task"]), 120))))
    heads = ("id", "status", "rounds", "at most", "age", "task")
    print_table(heads, rows, right=frozenset({"rounds", "at most"}), spare="age", gives="status")
    if more:
        sys.stderr.write(f"The newest {SHOWN}; --limit N shows more.\n")


def _nested(found: list[Listed]) -> list[Listed]:
    """Executions inside a workflow below it, where that is listed, too."""
    known = {one.document["execution_id"] for one in found}
    inside: dict[str, list[Listed]] = {}
    for one in found:
        if one.parent in known:
            inside.setdefault(one.parent, []).append(one)
    ordered: list[Listed] = []
    waiting = [one for one in reversed(found) if one.parent not in known]
    while waiting:
        ordered.append(one := waiting.pop())
        waiting += reversed(inside.get(one.document["execution_id"], []))
    return ordered


def moment(at_us: int) -> str:
    """Local wall time: of today without the day."""
    from datetime import datetime

    at = datetime.fromtimestamp(at_us / 1e6).astimezone()
    today = datetime.now().astimezone().date() == at.date()
    return at.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M")


def status_words(document: dict[str, Any]) -> tuple[str, str]:
    """What people read of a status, and its style."""
    from treadle.core.endings import ending

    from .output import STYLES

    status, code = document["status"], document["code"]
    if status == "running":
        from treadle.app.waits import words

        waits = words(document.get("waits", []), moment)
        alive = document.get("owner_alive", True)
        label, style = ("running", "blue") if alive else ("running (owner gone: resume)", "amber")
        return f"{label}, {waits}" if waits else label, STYLES[style]
    if status == "unreadable":
        return "unreadable (see show)", STYLES["red"]
    label = status if code in (status, "") else f"{status}, {code}"
    pending: dict[str, Any] | None = document["pending"]
    if pending and pending.get("child"):
        names = {one["execution_id"]: one["name"] for one in document.get("children", ())}
        label = f"{label} of {names.get(pending['child'], pending['child'])}"
    until_us: int | None = pending["until_us"] if pending else None
    if until_us is not None:
        label = f"{label}, until {moment(until_us)}"
    return label, STYLES[ending(status, code).colour]
