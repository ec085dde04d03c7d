"""DBOS: one workflow, a step for each model call and each tool call, on its SQLite system database. A resume replays from the top."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from dbos import DBOS, SetWorkflowID
from meter import Meter, main
from workload import result, say

METERS: list[Meter] = []


@DBOS.step()
def call_model(history: list[dict[str, Any]]) -> dict[str, Any]:
    turn = (len(history) - 1) // 2
    METERS[0].asked(turn)
    return {"by": "model", "text": say(turn), "call": turn}


@DBOS.step()
def call_tool(turn: int) -> dict[str, Any]:
    return {"by": "tool", "text": result(turn)}


@DBOS.workflow()
def agent(task: str) -> int:
    history: list[dict[str, Any]] = [{"by": "user", "text": task}]
    requests = 0  # what its users count usage with
    while True:
        answer = call_model(history)
        requests += 1
        if METERS[0].ends and answer["call"] >= METERS[0].turns:
            METERS[0].settled(requests)
            if METERS[0].phase == "many":
                return requests
            os._exit(0)
        history += [answer, call_tool(answer["call"])]


def launch(meter: Meter, folder: Path) -> None:
    METERS.append(meter)
    DBOS(
        config={
            "name": "bench",
            "system_database_url": f"sqlite:///{folder / 'dbos.sqlite'}",
            "log_level": "ERROR",
            "application_version": "1",
        }
    )
    DBOS.launch()  # takes up what is pending, on a thread of its own


def drive(meter: Meter, folder: Path, resuming: bool) -> None:
    launch(meter, folder)
    if resuming:
        threading.Event().wait(600)
    with SetWorkflowID("bench"):
        agent("Collect every record.")


def many(meter: Meter, folder: Path) -> Callable[[list[str]], None]:
    launch(meter, folder)

    def started(name: str) -> Any:
        with SetWorkflowID(name):
            return DBOS.start_workflow(agent, "Collect every record.")

    def run(names: list[str]) -> None:
        for handle in [started(name) for name in names]:
            handle.get_result()

    return run


if __name__ == "__main__":
    main(drive, many)
