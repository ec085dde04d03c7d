"""LangGraph: its minimal graph, a node for the model and one for the tool, with SqliteSaver and durability="sync"."""

from __future__ import annotations

import operator
import sqlite3
import sys
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


def drive(meter: Meter, folder: Path, resuming: bool, shape: type = State) -> None:
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
    first: Any = None if resuming else {"said": [{"by": "user", "text": "Collect every record."}], "requests": 0}
    config: Any = {"configurable": {"thread_id": "bench"}, "recursion_limit": 2 * meter.turns + 10}
    ended = graph.compile(checkpointer=saver).invoke(first, config, durability="sync")
    meter.settled(ended["requests"])


if __name__ == "__main__":
    main(drive)
