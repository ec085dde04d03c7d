"""Absurd on PostgreSQL: one task, a step for each model call and each tool call. A killed task is claimed again when its lease is over."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from absurd_sdk import Absurd
from meter import Meter, main
from workload import result, say

LEASE_S = 3  # as Treadle's on Postgres; its own default is 120


def application(meter: Meter) -> Absurd:
    app = Absurd(os.environ["BENCH_STORE"], queue_name="bench")

    @app.register_task(name="agent")
    def agent(params: Any, ctx: Any) -> None:
        history: list[dict[str, Any]] = [{"by": "user", "text": params["task"]}]
        requests = 0  # what its users count usage with

        def call_model() -> dict[str, Any]:
            turn = (len(history) - 1) // 2
            meter.asked(turn)
            return {"by": "model", "text": say(turn), "call": turn}

        def call_tool(turn: int) -> dict[str, Any]:
            return {"by": "tool", "text": result(turn)}

        while True:
            history.append(ctx.step("model", call_model))
            requests += 1
            turn = history[-1]["call"]
            if meter.ends and turn >= meter.turns:
                meter.settled(requests)
                if meter.phase == "many":
                    return
                os._exit(0)
            history.append(ctx.step("tool", partial(call_tool, turn)))

    return app


def drive(meter: Meter, _folder: Path, resuming: bool) -> None:
    app = application(meter)
    if resuming:
        began = time.perf_counter()
        while True:
            meter.waited(time.perf_counter() - began)
            app.work_batch(claim_timeout=LEASE_S)
            time.sleep(0.05)
    prepare()
    app.spawn("agent", {"task": "Collect every record."})
    app.work_batch(claim_timeout=LEASE_S)


def prepare() -> None:
    absurdctl = Path(sys.executable).with_name("absurdctl")
    for command in (["init"], ["create-queue", "bench"]):
        environ = {**os.environ, "ABSURD_DATABASE_URL": os.environ["BENCH_STORE"]}
        subprocess.run([absurdctl, *command], env=environ, check=True, stdout=subprocess.DEVNULL)


def many(meter: Meter, _folder: Path) -> Callable[[list[str]], None]:
    prepare()

    def run(names: list[str]) -> None:
        app = application(meter)
        tasks = [app.spawn("agent", {"task": "Collect every record."}) for _ in names]
        worker = threading.Thread(target=app.start_worker, kwargs={"concurrency": len(names), "poll_interval": 0.01})
        worker.start()
        waiter = application(meter)  # its connection is its own
        for task in tasks:
            waiter.await_task_result(task["task_id"])
        app.stop_worker()
        worker.join()

    return run


if __name__ == "__main__":
    main(drive, many)
