"""Runs the peers beside Treadle, each in an environment of its own that uv makes, and prints a verdict.

python bench/peers/run.py [--turns 10,100,1000] [--repeats 1] [--json FILE] [--only NAME,..]

Peers are taken turn about. The load of the machine is written down with each figure: ratios of one run say more than times.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
KILL_TURNS = 12


class Peer(NamedTuple):
    """A script and what it needs; nothing: the environment of Treadle itself."""

    script: str
    needs: tuple[str, ...] = ()


PEERS = {
    "floor": Peer("floor.py"),
    "treadle": Peer("treadle_loop.py"),
    "langgraph": Peer("langgraph_sqlite.py", ("langgraph==1.2.24", "langgraph-checkpoint-sqlite==3.1.2")),
    "pydantic-ai": Peer("pydantic_ai_plain.py", ("pydantic-ai-slim==2.68.0",)),
}
LEAST_GAIN = 8  # at 1,000 turns, over LangGraph's default saver on its minimal graph


def python_of(peer: Peer) -> list[str]:
    """How its Python is called."""
    if not peer.needs:
        return [sys.executable]
    uv = shutil.which("uv") or str(HERE.parent.parent / ".uv" / "bin" / "uv")
    given = [part for need in peer.needs for part in ("--with", need)]
    return [uv, "run", "--quiet", "--no-project", "--python", sys.executable, *given, "python"]


def phase(peer: Peer, name: str, turns: int, folder: Path) -> dict[str, Any]:
    """What one process of it says; it may kill itself."""
    command = [*python_of(peer), str(HERE / peer.script), name, str(turns), str(folder)]
    environ = {**os.environ, "LANGSMITH_TRACING": "false"}
    done = subprocess.run(command, capture_output=True, text=True, env=environ, check=False)
    said = [line[1:] for line in done.stdout.splitlines() if line.startswith("@")]
    if not said and name != "kill":
        raise SystemExit(f"{' '.join(command)} said nothing:\n{done.stderr[-2000:]}")
    return json.loads(said[-1]) if said else {}


def timed(peer: Peer, turns: int) -> dict[str, Any]:
    """Time a turn, bytes and resume."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        load = os.getloadavg()[0]
        found = phase(peer, "time", turns, folder)
        found["bytes_a_turn"] = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / turns
        found.update(phase(peer, "resume", turns, folder))
        return {"turns": turns, **found, "load": round(load, 1)}


def killed(peer: Peer) -> dict[str, Any]:
    """A paid call, then SIGKILL before it is answered: what is billed in all, and what the peer counts."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        phase(peer, "kill", KILL_TURNS, folder)
        found = phase(peer, "settle", KILL_TURNS, folder)
        billed = len((folder / "bill").read_text().splitlines())
        return {"billed": billed, "counted": found.get("counted"), "in_doubt": found.get("in_doubt", 0)}


def middle(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The median of each figure over the repeats."""
    return {
        key: None
        if any(row.get(key) is None for row in rows)
        else round(statistics.median(row[key] for row in rows), 4)
        for key in rows[0]
    }


def verdict(results: dict[str, Any]) -> list[str]:
    """What was promised and does not hold."""
    found: list[str] = []
    peers = results["peers"]
    ours = {row["turns"]: row for row in peers["treadle"]["rows"]}
    for row in peers.get("langgraph", {"rows": []})["rows"]:
        gain = row["turn_ms"] / ours[row["turns"]]["turn_ms"]
        if gain <= 1 or (row["turns"] >= 1000 and gain < LEAST_GAIN):
            found.append(f"at {row['turns']:,} turns a turn is {gain:.1f} times as quick as LangGraph's")
    kill = peers["treadle"]["kill"]
    if not kill["counted"] <= kill["billed"] <= kill["counted"] + kill["in_doubt"]:
        found.append(f"the accounts do not hold after a kill: {kill}")
    return found


def main() -> int:
    """0 where the verdict is good."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", default="10,100,1000")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    lengths = [int(part) for part in given.turns.split(",")]
    chosen = {name: peer for name, peer in PEERS.items() if not given.only or name in given.only.split(",")}
    rows: dict[str, dict[int, list[dict[str, Any]]]] = {name: {n: [] for n in lengths} for name in chosen}
    for turns in lengths:
        for _ in range(given.repeats):
            for name, peer in chosen.items():
                rows[name][turns].append(row := timed(peer, turns))
                print(
                    name,
                    json.dumps({k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()}),
                    flush=True,
                )
    results: dict[str, Any] = {
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}",
        "repeats": given.repeats,
        "peers": {},
    }
    for name, peer in chosen.items():
        results["peers"][name] = {
            "needs": peer.needs,
            "rows": [middle(rows[name][n]) for n in lengths],
            "kill": killed(peer),
        }
        print(name, "killed in a call:", json.dumps(results["peers"][name]["kill"]), flush=True)
    if given.json:
        given.json.write_text(json.dumps(results, indent=1) + "\n")
    faults = verdict(results) if "treadle" in chosen else []
    print("\n".join(f"FAILED: {fault}" for fault in faults) or "verdict: what is promised against peers holds")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
