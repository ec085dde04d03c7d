"""LangGraph: its minimal graph, a node for the model and one for the tool, with SqliteSaver and durability="sync"."""

from __future__ import annotations

import operator
import sqlite3
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypedDict

sys.path.insert(0, str(Path(__file__).parent.parent))
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from meter import Meter, main
from workload import result, say


class State(TypedDict):
    said: Annotated[list[dict[str, Any]], operator.add]
    requests: Annotated[int, operator.add]  # what its users count usage with


def compiled(meter: Meter, folder: Path, shape: type) -> Any:
    def model(state: Any) -> dict[str, Any]:
        turn = (len(state["said"]) - 1) // 2
        meter.asked(turn)
        return {"said": [{"by": "model", "text": say(turn), "call": turn}], "requests": 1}

    def tool(state: Any) -> dict[str, Any]:
        return {"said": [{"by": "tool", "text": result(state["said"][-1]["call"])}]}

    def after(state: Any) -> str:
        return END if meter.ends and state["said"][-1]["call"] >= meter.turns else "tool"

    graph = StateGraph(shape)
    graph.add_node("model", model)
    graph.add_node("tool", tool)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", after, ["tool", END])
    graph.add_edge("tool", "model")
    saver = SqliteSaver(sqlite3.connect(folder / "checkpoints.db", check_same_thread=False))
    return graph.compile(checkpointer=saver)


def invoked(graph: Any, meter: Meter, name: str, resuming: bool = False) -> None:
    first: Any = None if resuming else {"said": [{"by": "user", "text": "Collect every record."}], "requests": 0}
    config: Any = {"configurable": {"thread_id": name}, "recursion_limit": 2 * meter.turns + 10}
    meter.settled(graph.invoke(first, config, durability="sync")["requests"])


def drive(meter: Meter, folder: Path, resuming: bool, shape: type = State) -> None:
    invoked(compiled(meter, folder, shape), meter, "bench", resuming)


def many(meter: Meter, folder: Path, shape: type = State) -> Callable[[list[str]], None]:
    graph = compiled(meter, folder, shape)

    def run(names: list[str]) -> None:
        with ThreadPoolExecutor(len(names)) as pool:
            list(pool.map(partial(invoked, graph, meter), names))

    return run


if __name__ == "__main__":
    main(drive, many)
