"""Stores for workflow tests: each run or resume opens the store anew, as another process would."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import anyio

from treadle.app.workflows import WorkflowResult, resume_workflow, run_workflow
from treadle.core.errors import StaleEpoch
from treadle.core.usage import Usage
from treadle.ledger.inmemory import InMemoryLedger, MemoryStore
from treadle.ledger.sqlite import open_sqlite
from treadle.ports.ledger import Batch, Done, Ledger, Ownership
from treadle.spec.workflows import Workflow
from treadle.testing import VirtualClock

X = "x1-test"


def fee(cents: int = 1, requests: int = 1) -> Usage:
    from decimal import Decimal

    return Usage(input_tokens=10, output_tokens=5, requests=requests, cost_usd=Decimal(cents) / 100)


class LateLedger(InMemoryLedger):
    """Writes when the event loop runs next: what nobody waits for is not there yet."""

    def submit(self, batch: Batch, done: Done) -> None:
        asyncio.get_running_loop().call_soon(super().submit, batch, done)


class Lapsed(InMemoryLedger):
    """A store in which the lease of an owner lapses once it has begun."""

    away = False

    def lapsed(self, ownership: Ownership) -> bool:
        return self.away

    async def confirm(self, ownership: Ownership) -> None:
        raise StaleEpoch("it is another's")


class Place:
    """One store, opened by as many processes as a test needs."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder, self.path, self.shared = kind, folder, folder / "t.db", MemoryStore()
        self.clock = VirtualClock()

    async def open(self) -> Ledger:
        return InMemoryLedger(self.shared) if self.kind == "memory" else await open_sqlite(self.path)

    def run(self, workflow: Workflow, value: Any = None, **options: Any) -> WorkflowResult:
        return self._do(run_workflow, workflow, value, options)

    def resume(self, workflow: Workflow, execution_id: str = X, **options: Any) -> WorkflowResult:
        return self._do(resume_workflow, workflow, execution_id, options)

    def _do(self, function: Any, workflow: Workflow, value: Any, options: dict[str, Any]) -> WorkflowResult:
        async def main() -> WorkflowResult:
            ledger = await self.open()
            try:
                with anyio.fail_after(30):
                    named = {"execution_id": X} if function is run_workflow else {}
                    return await function(workflow, value, store=ledger, **{"clock": self.clock, **named, **options})
            finally:
                await ledger.close()

        return anyio.run(main)
