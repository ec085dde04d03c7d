"""Makes the golden store of the current version: `python tests/migration/make_golden.py`, once before it is released.

The store is `golden/v<N>.db`; what the port reads from it is `golden/v<N>.json`. A released one is never made again.
"""

from __future__ import annotations

import asyncio
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

from treadle.core import events, messages
from treadle.core.codec import encode
from treadle.core.digests import blob_address
from treadle.core.settings import LoopSettings
from treadle.core.usage import Usage
from treadle.core.values import Value
from treadle.ledger.sqlite import open_sqlite
from treadle.ledger.statements import migrations
from treadle.ports.ledger import Batch, Ledger, Ownership, Record, Snapshot, Summary

GOLDEN = Path(__file__).with_name("golden")
AT_US = 1_780_000_000_000_000
BLOB = b"all of a long output\n" * 40
USAGE = Usage(input_tokens=1200, output_tokens=80, requests=1, cost_usd=Decimal("0.0123"))
CALL = messages.ToolCall(id="c1", name="read_file", args={"path": "naïve.py"}, kind="read")

CONVERSATION: tuple[Value, ...] = (
    events.LoopStarted(
        settings=LoopSettings(loop_id="fix", role_key="coder"),
        step_exec_id="run-golden-1",
        input_json='"Fix the failing test"',
        task="Fix the failing test",
        fingerprint={"prompt": "0f" * 16},
        at_us=AT_US,
    ),
    messages.Prompted(parent=None, text="Fix the failing test"),
    messages.ModelResponded(
        parent=2, call="0.act.0.0", text="Looking.", calls=(CALL,), usage=USAGE, finish="tool_call", us=900_000
    ),
    messages.ToolsFinished(
        parent=3, results=(messages.ToolResult(id="c1", content="all of …", blob=blob_address(BLOB)),), us=1200
    ),
    events.UsageReported(usage=USAGE, receipt="invoice 1"),
    events.Judged(accept=False, feedback="one test fails still: “naïve”", us=5000),
    messages.Prompted(parent=4, text="one test fails still", origin="feedback"),
)


def stored(conversation: tuple[Value, ...]) -> list[Record]:
    """Records as a journal would make them."""
    made: list[Record] = []
    for seq, event in enumerate(conversation, 1):
        kind, version, body = encode(event)
        made.append(Record(seq, kind, version, getattr(event, "parent", None), AT_US + seq, body))
    return made


async def fill(ledger: Ledger) -> None:
    """One execution with something in every table, one that is empty, one that has no owner any more."""
    own = await ledger.create("run-golden-1", kind="loop", owner="host:1", at_us=AT_US)
    await ledger.post("run-golden-1", "answer", b'{"text":"taken"}', at_us=AT_US)
    await ledger.post("run-golden-1", "cancel", b"{}", at_us=AT_US)
    records = stored(CONVERSATION)
    await commit(
        ledger,
        own,
        records,
        receipts=[("loop", "invoice 1")],
        blobs=[(blob_address(BLOB), BLOB)],
        opened=[("s1", "question", b'{"prompt":"which?"}'), ("s2", "approval", b"{}")],
        closed=[("s1", b'{"text":"that"}')],
        taken=[1],
        snapshot=Snapshot(5, 1, b'{"folded":5}'),
        summary=Summary(7, b'{"status":"running"}'),
    )
    await ledger.create("run-golden-2", kind="loop", owner="host:2", at_us=AT_US + 1)
    released = await ledger.create("run-golden-3", kind="loop", owner="host:3", at_us=AT_US + 2)
    await commit(ledger, released, records[:1])
    await ledger.release(released)


async def commit(ledger: Ledger, own: Ownership, records: list[Record], **parts: Any) -> None:
    outcome = asyncio.get_running_loop().create_future()
    ledger.submit(Batch(own, records, **parts), outcome.set_result)
    error = await outcome
    if error is not None:
        raise error


async def dump(ledger: Ledger) -> dict[str, Any]:
    """All that the port can read, as JSON has it."""
    found: dict[str, Any] = {"blobs": {blob_address(BLOB): (await ledger.blob(blob_address(BLOB))).decode()}}
    for row in await ledger.rows():
        name = row.execution_id
        found[name] = {
            "row": row,
            "records": await ledger.records(name),
            "branch": [record.seq for record in await ledger.chain(name, 7 if row.head == 7 else None)],
            "receipts": sorted(await ledger.receipts(name, "loop")),
            "suspensions": await ledger.suspensions(name),
            "posted": await ledger.posted(name),
            "snapshot": await ledger.snapshot(name),
        }
    return json.loads(json.dumps(found, default=bytes.decode))


async def make() -> None:
    path = GOLDEN / f"v{migrations()[-1].number}.db"
    path.unlink(missing_ok=True)
    ledger = await open_sqlite(path)
    await fill(ledger)
    await ledger.close()
    ledger = await open_sqlite(path)
    text = json.dumps(await dump(ledger), indent=1, ensure_ascii=False, sort_keys=True)
    path.with_suffix(".json").write_text(text + "\n", "utf-8")
    await ledger.close()


if __name__ == "__main__":
    asyncio.run(make())
