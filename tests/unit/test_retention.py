"""What of a store may go, and what an audit of it finds (LG-09)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.driving import DONE, PLAN, a_loop, in_runtime, scripted
from treadle import Person
from treadle.app.retention import Old, prunable, remove
from treadle.app.runtime import Reopening, Runtime
from treadle.core.digests import blob_address
from treadle.kernel.steering import Pause
from treadle.ledger.audit import Audited, audit
from treadle.ports.ledger import Record
from treadle.testing import VirtualClock

HOUR_US = 3_600_000_000


@pytest.mark.req("LG-09")
def test_only_what_has_ended_may_go_by_age_and_but_for_the_newest(tmp_path: Path) -> None:
    clock = VirtualClock()

    async def test(runtime: Runtime) -> None:
        async def ran(name: str, **changes: Any) -> None:
            session = await runtime.start(a_loop(scripted(PLAN, DONE), **changes), "the task", execution_id=name)
            await session.run()
            await session.close()
            clock.advance(3600)

        for name in ("old-1", "old-2", "old-3"):
            await ran(name)
        await ran("waits-1", evaluate=Person())
        session = await runtime.start(a_loop(scripted()), "the task", execution_id="paused-1")
        await session.close()
        await runtime.steer("paused-1", Pause(actor="ada"))
        assert (await runtime.state("paused-1")).status == "paused"

        async def may_go(**limits: Any) -> list[str]:
            found = await prunable(
                runtime.ledger,
                runtime.settings,
                now_us=clock.wall_us(),
                **{"older_than_us": None, "keep": None} | limits,
            )
            return [old.execution_id for old in found]

        assert await may_go() == ["old-1", "old-2", "old-3"]
        assert await may_go(keep=1) == ["old-1", "old-2"]
        assert await may_go(older_than_us=3 * HOUR_US) == ["old-1", "old-2"]
        assert await may_go(older_than_us=3 * HOUR_US, keep=2) == ["old-1"]
        session = await runtime.resume("waits-1", a_loop(scripted(), Person()), Reopening())
        assert not await remove(runtime.ledger, runtime.settings, Old("waits-1", "done", 0, ()))  # somebody runs it
        await session.close()

    in_runtime("memory:", tmp_path, test, clock=clock)


@pytest.mark.req("LG-09")
def test_an_audit_names_what_is_missing_changed_or_beyond_the_end() -> None:
    def record(seq: int, body: bytes = b'{"tree":"t"}', parent: int | None = None) -> Record:
        return Record(seq, "baseline.taken", 1, parent, 1, body)

    def found(*records: Record, folded: Any = (), blobs: Any = ()) -> list[str]:
        return list(audit([Audited("x1", records, folded)], blobs))

    assert found(record(1), record(2, parent=1), folded=[("snapshot", 2)], blobs=[(blob_address(b"b"), b"b")]) == []
    assert "records 2 to 3 are missing" in found(record(1), record(4))[0]
    assert "its parent 2 is not there" in found(record(1), record(2, parent=2))[0]
    assert "record 2: " in found(record(1), record(2, b"{"))[0]
    assert "beyond the last record 1" in found(record(1), folded=[("snapshot", 2)])[0]
    assert "is not what was stored" in found(record(1), blobs=[(blob_address(b"b"), b"c")])[0]
