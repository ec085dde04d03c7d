"""LangGraph, the same minimal graph with its history in a DeltaChannel (beta): checkpoints hold what is new, the whole each 100 writes."""

from __future__ import annotations

import operator
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypedDict

sys.path.insert(0, str(Path(__file__).parent))
from langgraph.channels import DeltaChannel
from langgraph_sqlite import drive, many
from meter import Meter, main


def extend(old: list[dict[str, Any]], writes: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return [*old, *(message for write in writes for message in write)]


class DeltaState(TypedDict):
    said: Annotated[list[dict[str, Any]], DeltaChannel(extend)]
    requests: Annotated[int, operator.add]


def delta(meter: Meter, folder: Path, resuming: bool) -> None:
    drive(meter, folder, resuming, DeltaState)


if __name__ == "__main__":
    main(delta, partial(many, shape=DeltaState))
