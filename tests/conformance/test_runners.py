"""One suite over every runner: the same loop gives the same document, and a runner that dies is replaced by another."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from support import postgres, temporal
from support.proxy import CuttingProxy
from treadle.app.listing import state_of
from treadle.app.runtime import Runtime
from treadle.app.temporal import ring, serve
from treadle.kernel.steering import Answer, Cancel
from treadle.ledger.postgres import open_postgres
from treadle.models.prices import parse_price
from treadle.runtime.document import document
from treadle.runtime.temporal.client import Address, connect
from treadle.runtime.temporal.workflow import ExecutionV1
from treadle.settings import load_settings
from treadle.spec.commandline import CommandLineLoop, encode
from treadle.testing import Fault, ScriptedEndpoint, Turn

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(postgres.binaries() is None, reason="no Postgres server is installed"),
]
TURNS = 20
HISTORY = Path(__file__).parents[1] / "fixtures" / "temporal" / "execution.v1.json"
PER_EXECUTION = {"execution_id", "started_at", "finished_at", "workspace"}
SCRIPT = [
    Turn(text="I look first."),
    Turn(calls=[("write_file", {"path": "answer.txt", "text": "42\n"})]),
    Turn(calls=[("finish", {"summary": "wrote 42"})]),
]
LONG = [
    *(Turn(calls=[("write_file", {"path": f"f{n}.txt", "text": "x" * 500})]) for n in range(TURNS)),
    Turn(calls=[("write_file", {"path": "answer.txt", "text": "42\n"})]),
    Turn(calls=[("finish", {"summary": "wrote 42"})]),
]
QUOTA = [
    Fault(status=429, headers={"retry-after": "3"}, body={"error": {"message": "quota", "code": "insufficient_quota"}}),
    *SCRIPT,
]


@pytest.fixture
def anyio_backend():
    return "asyncio"


class Held:
    """A script whose first request is answered only when it is let go."""

    def __init__(self) -> None:
        self.asked, self.let_go = threading.Event(), threading.Event()

    def __call__(self, body: dict[str, Any]) -> Turn:
        if not self.asked.is_set():
            self.asked.set()
            self.let_go.wait(40)
        return SCRIPT[sum(message["role"] == "assistant" for message in body["messages"])]


class Bench:
    """A store, its runtime, and loops made of a script."""

    def __init__(self, runtime: Runtime, folder: Any, address: str) -> None:
        self.runtime, self.folder, self.address = runtime, folder, address
        self.said: list[str] = []

    async def start(self, endpoint: ScriptedEndpoint, *, name: str = "work", **more: Any) -> Any:
        folder = self.folder / name
        folder.mkdir()
        given = {"check": "grep -q 42 answer.txt", **more}
        loop = CommandLineLoop(workspace=str(folder), model="openai:s", base_url=endpoint.url, price="1,2", **given)
        return await self.runtime.start(loop.to_loop(), "Write the answer", definition=encode(loop))

    async def submit(self, endpoint: ScriptedEndpoint, **more: Any) -> str:
        session = await self.start(endpoint, **more)
        await session.close()
        await ring(self.runtime, self.address, session.execution_id)
        return session.execution_id

    async def document(self, execution_id: str) -> dict[str, Any]:
        row = await self.runtime.ledger.row(execution_id)
        return document(execution_id, await state_of(self.runtime.ledger, row))

    async def until(self, execution_id: str, *statuses: str) -> dict[str, Any]:
        with anyio.fail_after(60):
            while True:
                row = await self.runtime.ledger.row(execution_id)
                found = await self.document(execution_id)
                if found["status"] in statuses and not row.owner_alive:
                    return found
                await anyio.sleep(0.05)

    async def handle(self, execution_id: str) -> Any:
        client = await connect(Address.parse(self.address), {})
        return client.get_workflow_handle(execution_id)

    @asynccontextmanager
    async def worker(self, *, slice_s: float = 300.0, address: str = "") -> AsyncGenerator[None]:
        stop = anyio.Event()
        async with anyio.create_task_group() as group:

            async def work() -> None:
                where = address or self.address
                await serve(self.runtime, where, concurrency=4, say=self.said.append, stop=stop, slice_s=slice_s)

            group.start_soon(work)
            try:
                yield
            finally:
                stop.set()


@pytest.fixture
async def bench(tmp_path) -> AsyncGenerator[Bench]:
    ledger = await open_postgres(postgres.new_store())
    environ = {
        "TREADLE_STATE": str(tmp_path / "state"),
        "TREADLE_CONFIG": str(tmp_path / "none"),
        "OPENAI_API_KEY": "k",
    }
    queue = f"q{time.monotonic_ns()}"
    bench = Bench(Runtime(ledger, load_settings(environ=environ)), tmp_path, f"{temporal.server()}/default/{queue}")
    yield bench
    await ledger.close()


@asynccontextmanager
async def proxy(to: int | str) -> AsyncGenerator[CuttingProxy]:
    made = CuttingProxy(to)
    await made.start()
    try:
        yield made
    finally:
        await made.close()


def comparable(found: dict[str, Any]) -> dict[str, Any]:
    """Without what differs from run to run."""
    return {key: value for key, value in found.items() if key not in PER_EXECUTION and not key.endswith("elapsed_ms")}


@pytest.mark.req("RT-02")
async def test_the_same_loop_gives_the_same_document_here_and_on_temporal(bench):
    with ScriptedEndpoint(SCRIPT, price=parse_price("1,2")) as endpoint:
        session = await bench.start(endpoint, name="here")
        here = await session.run()
        await session.close()
        async with bench.worker():
            execution_id = await bench.submit(endpoint, name="there")
            there = await bench.until(execution_id, "done")
            assert await (await bench.handle(execution_id)).result() == "rest"
        assert here["code"] == "accepted"
        assert comparable(here) == comparable(there)
        assert len(endpoint.bill.charges) == 2 * len(SCRIPT)


@pytest.mark.req("RT-02")
async def test_slices_end_at_boundaries_pay_nothing_twice_and_leave_no_conversation_in_the_history(bench):
    with ScriptedEndpoint(LONG, price=parse_price("1,2")) as endpoint:
        async with bench.worker(slice_s=0.3):
            execution_id = await bench.submit(endpoint)
            found = await bench.until(execution_id, "done")
            handle = await bench.handle(execution_id)
            assert await handle.result() == "rest"
        assert (found["code"], found["usage"]["in_doubt_requests"]) == ("accepted", 0)
        assert len(endpoint.bill.charges) == len(LONG)
        history = await handle.fetch_history()
        text = history.to_json()
        assert "advance" in text
        assert "answer.txt" not in text
        assert "xxxx" not in text
        assert await replayed(history)


async def test_a_recorded_history_is_replayed_as_it_was():
    """A change of the workflow that fails here needs a new class under a new name: open executions go through the old one."""
    recorded = WorkflowHistory.from_json("recorded", HISTORY.read_text())
    assert await replayed(recorded)


async def replayed(history: Any) -> bool:
    """Whether today's workflow takes the same decisions. Raises where it does not."""
    result = await Replayer(workflows=[ExecutionV1]).replay_workflow(history)
    return result.replay_failure is None


@pytest.mark.req("RT-02")
async def test_a_quota_is_waited_for_by_a_timer_and_nobody_owns_it_meanwhile(bench):
    with ScriptedEndpoint(QUOTA, price=parse_price("1,2")) as endpoint:
        async with bench.worker():
            execution_id = await bench.submit(endpoint)
            waiting = await bench.until(execution_id, "paused", "done")
            found = await bench.until(execution_id, "done")
            handle = await bench.handle(execution_id)
            assert await handle.result() == "rest"
        assert (waiting["code"], found["code"]) == ("quota", "accepted")
        assert '"timerStartedEventAttributes"' in (await handle.fetch_history()).to_json()


@pytest.mark.req("RT-02")
@pytest.mark.parametrize("rings", [True, False])
async def test_an_answer_is_in_the_ledger_first_and_goes_on_with_or_without_its_doorbell(bench, rings):
    with ScriptedEndpoint(SCRIPT, price=parse_price("1,2")) as endpoint:
        async with bench.worker():
            execution_id = await bench.submit(endpoint, check="")
            await bench.until(execution_id, "waiting-input")
            pending = (await bench.runtime.state(execution_id)).pending
            assert pending is not None
            answer = Answer(request_id=pending.id, decision="approve", text="", actor="me")
            await bench.runtime.steer(execution_id, answer)
            if rings:
                await ring(bench.runtime, bench.address, execution_id)
            assert (await bench.until(execution_id, "done"))["code"] == "accepted"
            assert await (await bench.handle(execution_id)).result() == "rest"


@pytest.mark.req("RT-02")
async def test_one_that_was_cancelled_while_it_waited_ends_its_workflow_when_it_is_rung(bench):
    with ScriptedEndpoint(SCRIPT, price=parse_price("1,2")) as endpoint:
        async with bench.worker():
            execution_id = await bench.submit(endpoint, check="")
            await bench.until(execution_id, "waiting-input")
            await bench.runtime.steer(execution_id, Cancel(actor="me", reason="enough"))
            await ring(bench.runtime, bench.address, execution_id)
            assert await (await bench.handle(execution_id)).result() == "rest"
        assert (await bench.document(execution_id))["status"] == "cancelled"


async def tried_elsewhere(handle: Any) -> None:
    """Temporal has given its advance to somebody else."""
    with anyio.fail_after(60):
        while not any(one.attempt > 1 for one in (await handle.describe()).raw_description.pending_activities):  # noqa: ASYNC110 - nobody tells
            await anyio.sleep(0.1)


@pytest.mark.req("RT-02")
async def test_a_worker_that_is_cut_off_from_temporal_keeps_what_it_owns_in_the_ledger(bench):
    """Temporal gives it to another, whom the ledger refuses: no request is sent twice, and the other reports the end."""
    held = Held()
    with ScriptedEndpoint(held, price=parse_price("1,2")) as endpoint:
        there, _, rest = bench.address.partition("/")
        async with proxy(int(there.rpartition(":")[2])) as way, bench.worker(address=f"127.0.0.1:{way.port}/{rest}"):
            execution_id = await bench.submit(endpoint)
            await anyio.to_thread.run_sync(held.asked.wait, 60)
            way.cut()
            async with bench.worker():
                handle = await bench.handle(execution_id)
                await tried_elsewhere(handle)
                held.let_go.set()
                found = await bench.until(execution_id, "done")
                assert await handle.result() == "rest"
            way.heal()
        assert (found["code"], found["usage"]["in_doubt_requests"]) == ("accepted", 0)
        assert (await bench.runtime.ledger.row(execution_id)).epoch == 2  # the one who submitted it, and the worker
        assert len(endpoint.bill.charges) == len(SCRIPT)
