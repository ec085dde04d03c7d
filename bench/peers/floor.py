"""The floor: two bare synced SQLite commits a turn, the model's answer and the tool's, and nothing else."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from meter import Meter, main
from workload import result, say


def drive(meter: Meter, folder: Path, _resuming: bool, name: str = "log") -> None:
    db = sqlite3.connect(folder / f"{name}.db", isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    db.execute("CREATE TABLE IF NOT EXISTS log (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")
    history = [json.loads(body) for (body,) in db.execute("SELECT body FROM log ORDER BY id")]
    turn = len(history) // 2
    while True:
        meter.asked(turn)
        if meter.ends and turn >= meter.turns:
            meter.settled(turn + 1)
            return
        for message in ({"by": "model", "text": say(turn), "call": turn}, {"by": "tool", "text": result(turn)}):
            db.execute("INSERT INTO log (body) VALUES (?)", (json.dumps(message),))
            history.append(message)
        turn += 1


def many(meter: Meter, folder: Path) -> Callable[[list[str]], None]:
    """A thread and a file for each."""

    def run(names: list[str]) -> None:
        with ThreadPoolExecutor(len(names)) as pool:
            list(pool.map(partial(drive, meter, folder, False), names))

    return run


if __name__ == "__main__":
    main(drive, many)
