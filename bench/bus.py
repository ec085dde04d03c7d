"""Events a second that the bus takes with 0 and with 20 stalled subscribers, and with one that keeps up. The target is 200,000 with 20.

python bench/bus.py [--events 500000] [--repeats 3]
"""

from __future__ import annotations

import argparse
import json
import threading
import time

from treadle.kernel.states import LoopState
from treadle.ports.observer import Progress
from treadle.telemetry.bus import SIZE, Bus, Ring

TARGET = 200_000


def rate(events: int, stalled: int) -> float:
    """Events a second from one publisher to this many subscribers that never read."""
    bus = Bus()
    held = [bus.subscribe() for _ in range(stalled)]
    progress = Progress("bench0", 1, "model.responded", {}, LoopState(), 0)
    start = time.perf_counter()
    for _ in range(events):
        bus.notify(progress)
    seconds = time.perf_counter() - start
    assert all(one.dropped == events - SIZE for one in held)
    return events / seconds


def kept_up(events: int, stalled: int) -> tuple[float, int]:
    """The same with a thread that reads everything besides: (events a second, events that it lost)."""
    ring: Ring[int] = Ring()
    held = [ring.subscribe() for _ in range(stalled)]
    reader, seen = ring.subscribe(), 0

    def read() -> None:
        nonlocal seen
        while reader.wait():
            seen += len(reader.take())

    thread = threading.Thread(target=read)
    thread.start()
    start = time.perf_counter()
    for number in range(events):
        ring.publish(number)
    seconds = time.perf_counter() - start
    ring.close()
    thread.join()
    assert seen + reader.dropped == events
    assert len(held) == stalled
    return events / seconds, reader.dropped


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=500_000)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    alone, crowded = [], []
    for _ in range(given.repeats):
        alone.append(rate(given.events, 0))
        crowded.append(rate(given.events, 20))
    reading, lost = kept_up(given.events, 20)
    found = {
        "events_a_second": round(max(alone)),
        "with_20_stalled": round(max(crowded)),
        "ratio": round(max(alone) / max(crowded), 2),
        "with_20_stalled_and_a_reader": round(reading),
        "lost_by_the_reader": lost,
        "target": TARGET,
        "reached": min(crowded) >= TARGET,
    }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
