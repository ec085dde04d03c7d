"""Absurd on PostgreSQL: one task, a step for each model call and each tool call. A killed task is claimed again when its lease is over."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from absurd_sdk import Absurd
from meter import Meter, main
from workload import result, say

LEASE_S = 3  # as Treadle's on Postgres; its own default is 120


def drive(meter: Meter, _folder: Path, resuming: bool) -> None:
    url = os.environ["BENCH_STORE"]
    app = Absurd(url, queue_name="bench")

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
                os._exit(0)
            history.append(ctx.step("tool", partial(call_tool, turn)))

    if resuming:
        began = time.perf_counter()
        while True:
            meter.waited(time.perf_counter() - began)
            app.work_batch(claim_timeout=LEASE_S)
            time.sleep(0.05)
    absurdctl = Path(sys.executable).with_name("absurdctl")
    for command in (["init"], ["create-queue", "bench"]):
        environ = {**os.environ, "ABSURD_DATABASE_URL": url}
        subprocess.run([absurdctl, *command], env=environ, check=True, stdout=subprocess.DEVNULL)
    app.spawn("agent", {"task": "Collect every record."})
    app.work_batch(claim_timeout=LEASE_S)


if __name__ == "__main__":
    main(drive)
