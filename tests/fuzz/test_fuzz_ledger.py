"""A damaged store: whatever is asked of it is answered by a value or a typed error of ours (SE-03, LG-08)."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from support.driving import DONE, LOOK, PLAN, a_loop, runtime, scripted
from treadle.core.codec import decode
from treadle.core.errors import TreadleError
from treadle.kernel.loop import advance
from treadle.kernel.snapshot import thaw
from treadle.kernel.states import LoopState
from treadle.ledger.sqlite import open_sqlite
from treadle.runtime.journal import load_state


@functools.cache
def stored() -> tuple[bytes, str]:
    """A store with one loop in it, and the loop's name."""

    async def make(folder: Path) -> str:
        async with runtime(f"sqlite:///{folder / 't.db'}", folder) as made:
            session = await made.start(a_loop(scripted(PLAN, LOOK, LOOK, DONE)), "the task")
            await session.run()
            await session.close()
            return session.execution_id

    with tempfile.TemporaryDirectory() as folder:
        name = anyio.run(make, Path(folder))
        return (Path(folder) / "t.db").read_bytes(), name


@functools.cache
def bodies() -> list[Any]:
    """Its records."""
    data, name = stored()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "t.db"
        file.write_bytes(data)

        async def read() -> list[Any]:
            ledger = await open_sqlite(file)
            found = await ledger.records(name)
            await ledger.close()
            return found

        return anyio.run(read)


async def use(file: Path, name: str) -> None:
    """Everything that reads, and one that writes."""
    try:
        ledger = await open_sqlite(file)
    except TreadleError:
        return
    try:
        for asked in (ledger.rows, ledger.verify, lambda: ledger.records(name), lambda: ledger.suspensions(name)):
            await answered(asked)
        await answered(lambda: load_state(ledger, name))
        await answered(lambda: ledger.chain(name, 8))
        await answered(lambda: ledger.acquire(name, owner="other"))
        await answered(lambda: ledger.post(name, "cancel", b"{}", at_us=1))
    finally:
        await answered(ledger.close)


async def answered(asked: Any) -> None:
    with suppress(TreadleError):
        await asked()


@contextmanager
def damaged() -> Iterator[tuple[BlockingPortal, Path]]:
    with tempfile.TemporaryDirectory() as folder, start_blocking_portal() as portal:
        yield portal, Path(folder) / "t.db"


@pytest.mark.req("SE-03", "LG-08")
def test_flipped_zeroed_and_missing_bytes_of_a_store_are_told_by_typed_errors() -> None:
    data, name = stored()
    with damaged() as (portal, file):

        @settings(
            phases=[Phase.explicit, Phase.reuse, Phase.generate]
        )  # making an example smaller takes longer than all
        @given(
            at=st.integers(0, len(data) - 1),
            length=st.integers(1, 300),
            how=st.sampled_from(["flip", "zero", "cut", "repeat"]),
            mask=st.integers(1, 255),
        )
        def one(at: int, length: int, how: str, mask: int) -> None:
            for left in file.parent.glob("t.db-*"):
                left.unlink()
            part = data[at : at + length]
            match how:
                case "flip":
                    part = bytes(byte ^ mask for byte in part[:4]) + part[4:]
                case "zero":
                    part = bytes(len(part))
                case "repeat":
                    part += part
                case _:
                    part = b""
            file.write_bytes(data[:at] + part + (data[at + length :] if how != "cut" else b""))
            portal.call(use, file, name)

        one()


@pytest.mark.req("SE-03")
@given(st.data())
def test_any_damage_to_a_record_is_an_event_or_a_typed_error(data: st.DataObject) -> None:
    records = bodies()
    place = data.draw(st.integers(0, len(records) - 1))
    record = records[place]
    body = bytearray(record.body)
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.sampled_from(b'{}[]":,0129-.eaz\x00\xff'))
    state = LoopState()
    try:
        for one in records[:place]:
            state = advance(state, decode(one.kind, one.version, one.body))
        advance(state, decode(record.kind, record.version, bytes(body)))
    except TreadleError:
        pass


@pytest.mark.req("SE-03")
@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode), st.integers(0, 5))
def test_any_snapshot_is_a_state_or_a_typed_error(body: bytes, version: int) -> None:
    with suppress(TreadleError):
        thaw(body, version)
