"""How old events are when a viewer has them: 10,000 a second through a real service, beside 20 viewers that never read, with reconnections.

python bench/stream.py [--rate 10000] [--seconds 10] [--frozen 20] [--json FILE]. The viewer is a process of its own and comes back with
Last-Event-ID each second; the age is that of every event, from its making to its parsing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

AIM_MS = 10
EXECUTION = "bench0000000"
RECONNECT_S = 1.0


def publish(notify: Any, rate: int, seconds: float) -> None:
    """Events at an even pace, each with a state as a real one has."""
    from treadle.kernel.states import LoopState
    from treadle.ports.observer import Progress

    state, began, made = LoopState(), time.perf_counter(), 0
    while made < rate * seconds:
        due = min(int((time.perf_counter() - began) * rate), int(rate * seconds))
        for _ in range(due - made):
            made += 1
            notify(Progress(EXECUTION, 0, "tool.progress", {"number": made}, state, time.time_ns() // 1000))
        time.sleep(0.001)


async def serve(rate: int, seconds: float) -> None:
    """The service as `treadle studio` puts it together, on a store of its own; begins when its standard input says so."""
    import uvicorn

    from treadle.app.observing import Bus
    from treadle.app.runtime import Runtime
    from treadle.app.stores import open_store
    from treadle.ports.clock import NO_CRASH_POINTS
    from treadle.server.asgi import guarded
    from treadle.server.feed import Feed
    from treadle.server.follower import Follower
    from treadle.server.security import Access
    from treadle.server.studio import Studio
    from treadle.settings import Settings

    with tempfile.TemporaryDirectory() as name, socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
        bus = Bus(16_384)
        ledger = await open_store(f"sqlite:///{Path(name) / 't.db'}", NO_CRASH_POINTS)
        runtime = Runtime(ledger, Settings(environ={}, state_dir=Path(name)), observers=(bus,))
        follower = Follower(ledger, bus, Feed(start=0))
        made = Studio(runtime, follower, workspace=Path(name), actor="", define=lambda _: sys.exit(), notes=print)
        access = Access("127.0.0.1", listening.getsockname()[1], "bench")
        config = uvicorn.Config(guarded(made, access), fd=listening.fileno(), log_level="critical", lifespan="on")
        server = uvicorn.Server(config)
        print(access.port, flush=True)

        def work() -> None:
            sys.stdin.readline()
            publish(bus.notify, rate, seconds)
            sys.stdin.readline()
            follower.feed.close()
            server.force_exit = server.should_exit = True

        threading.Thread(target=work, daemon=True).start()
        await server.serve()
        await ledger.close()


def connect(port: int, last: str = "") -> socket.socket:
    """A viewer that has asked."""
    found = socket.create_connection(("127.0.0.1", port))
    more = f"Last-Event-ID: {last}\r\n" if last else ""
    asked = f"GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer bench\r\n{more}\r\n"
    found.sendall(asked.encode())
    return found


def view(port: int, count: int, ready: Callable[[], None]) -> tuple[list[float], list[int], int, int]:
    """(ages in ms, numbers, gaps, connections) of a viewer that reads until it has seen the last."""
    ages: list[float] = []
    numbers: list[int] = []
    last, gaps, connections = "", 0, 0
    while not numbers or numbers[-1] < count:
        connections += 1
        with connect(port, last) as one, one.makefile("rb") as lines:
            until = time.monotonic() + RECONNECT_S
            for line in lines:
                if line.startswith(b"id: "):
                    last = line[4:].strip().decode()
                    ready()  # the first answer: all are here
                elif line.startswith(b"event: gap"):
                    gaps += 1
                elif line.startswith(b"data: ["):
                    found = json.loads(line[6:])
                    now = time.time_ns() // 1000
                    ages += [(now - event["at_us"]) / 1000 for event in found]
                    numbers += [event["data"]["number"] for event in found]
                    if numbers[-1] >= count or time.monotonic() > until:
                        break
    return ages, numbers, gaps, connections


def main() -> int:
    """Prints what was measured; 1 where an aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--frozen", type=int, default=20)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve(given.rate, given.seconds))
        return 0
    command = [sys.executable, __file__, "--serve", "--rate", str(given.rate), "--seconds", str(given.seconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        port = int(process.stdout.readline())
        said: list[int] = []

        def begin() -> None:
            if not said:
                said.append(process.stdin.write("go\n"))
                process.stdin.flush()

        frozen = [connect(port) for _ in range(given.frozen)]
        count = int(given.rate * given.seconds)
        ages, numbers, gaps, connections = view(port, count, begin)
        for one in frozen:
            one.close()
        process.communicate("end\n")
    ages.sort()
    lost = count - len(set(numbers))
    found = {
        "events_a_second": given.rate,
        "frozen_viewers": given.frozen,
        "age_ms": {
            name: round(ages[int(len(ages) * part)], 1) for name, part in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
        },
        "aim_p50_ms": AIM_MS,
        "connections": connections,
        "lost": lost,
        "twice": len(numbers) - len(set(numbers)),
        "gaps_told": gaps,
        "load": round(os.getloadavg()[0], 1),
    }
    print(json.dumps(found, indent=1))
    if given.json:
        given.json.write_text(json.dumps(found, indent=2))
    return int(lost > 0 or ages[len(ages) // 2] > AIM_MS)


if __name__ == "__main__":
    sys.exit(main())
