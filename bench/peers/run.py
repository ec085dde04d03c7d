"""Runs the peers beside Treadle, each in an environment of its own, and prints a verdict.

python bench/peers/run.py [--turns 10,100,1000] [--repeats 1] [--json FILE] [--only NAME,..] [--limit SECONDS]

Peers are taken turn about. The load of the machine is written down with each figure: ratios of one run say more than times.
A peer whose turn takes so long that the next length would need more than --limit seconds is left out there, and the page says so.
"""

from __future__ import annotations

import argparse
import functools
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
VENVS = HERE.parent.parent / ".venv" / "peers"
sys.path.insert(0, str(HERE))
import pg  # noqa: E402

KILL_TURNS = 12
LOOPS, LOOP_TURNS = (1, 10, 100), 10  # so many at once in one process, of so many turns each
LANGGRAPH = ("langgraph==1.2.24", "langgraph-checkpoint-sqlite==3.1.2")


class Peer(NamedTuple):
    """A script and what it needs; nothing: the environment of Treadle itself."""

    script: str
    needs: tuple[str, ...] = ()
    postgres: bool = False
    is_durable: bool = True


PEERS = {
    "floor": Peer("floor.py", is_durable=False),
    "treadle": Peer("treadle_loop.py"),
    "langgraph": Peer("langgraph_sqlite.py", LANGGRAPH),
    "langgraph-delta": Peer("langgraph_delta.py", LANGGRAPH),
    "dbos": Peer("dbos_sqlite.py", ("dbos==3.4.0",)),
    "openai-agents": Peer("openai_agents.py", ("openai-agents==0.24.0",), is_durable=False),
    "pydantic-ai": Peer("pydantic_ai_plain.py", ("pydantic-ai-slim==2.68.0",), is_durable=False),
    "treadle-postgres": Peer("treadle_loop.py", postgres=True),
    "absurd": Peer("absurd_postgres.py", ("absurd-sdk==0.5.1", "absurdctl==0.5.1"), postgres=True),
}
LEAST_GAIN = 8  # at 1,000 turns, over LangGraph's default saver on its minimal graph


def python_of(peer: Peer) -> str:
    """Its Python: Treadle's own, or that of an environment in .venv/peers/, made when it is first wanted."""
    if not peer.needs:
        return sys.executable
    folder = VENVS / "-".join(need.replace("==", "-") for need in peer.needs)
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        uv = shutil.which("uv") or str(HERE.parent.parent / ".uv" / "bin" / "uv")
        run = functools.partial(subprocess.run, check=True)
        run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)])
        run([uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", str(python), *peer.needs])
        (folder / "complete").touch()
    return str(python)


def phase(
    peer: Peer, name: str, turns: int, folder: Path, store: str = "", loops: int = 1, limit: float | None = None
) -> dict[str, Any]:
    """What one process of it says; it may kill itself. TimeoutExpired."""
    command = [python_of(peer), str(HERE / peer.script), name, str(turns), str(folder), str(loops)]
    environ = {**os.environ, "LANGSMITH_TRACING": "false", "BENCH_STORE": store}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)  # everybody starts from bytecode
    done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=limit, check=False)
    said = [line[1:] for line in done.stdout.splitlines() if line.startswith("@")]
    if not said and name != "kill":
        raise SystemExit(f"{' '.join(command)} said nothing:\n{done.stderr[-2000:]}")
    return json.loads(said[-1]) if said else {}


class Place:
    """Where one run keeps what it stores."""

    names = iter(range(1_000_000))

    def __init__(self, peer: Peer, server: str | None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="treadle-bench-"))
        self.database = pg.Database(server, f"bench_{next(self.names)}") if peer.postgres and server else None

    @property
    def store(self) -> str:
        return self.database.url if self.database else ""

    def size(self) -> int:
        if self.database:
            return self.database.grown()
        return sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())

    def close(self) -> None:
        shutil.rmtree(self.folder)
        if self.database:
            self.database.drop()


def timed(peer: Peer, turns: int, server: str | None) -> dict[str, Any]:
    """Time a turn, bytes and resume."""
    place = Place(peer, server)
    try:
        load = os.getloadavg()[0]
        found = phase(peer, "time", turns, place.folder, place.store)
        found["bytes_a_turn"] = place.size() / turns
        found.update(phase(peer, "resume", turns, place.folder, place.store))
        return {"turns": turns, **found, "load": round(load, 1)}
    finally:
        place.close()


def together(peer: Peer, loops: int, server: str | None, limit: float) -> dict[str, Any]:
    """Turns a second of so many loops at once in one process; none where they take longer than that."""
    place = Place(peer, server)
    try:
        load = os.getloadavg()[0]
        found = phase(peer, "many", LOOP_TURNS, place.folder, place.store, loops, limit)
        return {**found, "load": round(load, 1)}
    except subprocess.TimeoutExpired:
        return {"loops": loops, "turns_s": None, "cpu_ms": None, "load": round(load, 1)}
    finally:
        place.close()


def killed(peer: Peer, server: str | None) -> dict[str, Any]:
    """A paid call, then SIGKILL before it is answered: what is billed in all, and what the peer counts."""
    place = Place(peer, server)
    try:
        phase(peer, "kill", KILL_TURNS, place.folder, place.store)
        found = phase(peer, "settle", KILL_TURNS, place.folder, place.store)
        billed = len((place.folder / "bill").read_text().splitlines())
        return {"billed": billed, "counted": found.get("counted"), "in_doubt": found.get("in_doubt", 0)}
    finally:
        place.close()


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
    for name, peer in peers.items():
        ours = "treadle-postgres" if PEERS[name].postgres else "treadle"
        if not PEERS[name].is_durable or name == ours or ours not in peers:
            continue
        own = {row["turns"]: row for row in peers[ours]["rows"]}
        for row in peer["rows"]:
            gain = row["turn_ms"] / own[row["turns"]]["turn_ms"]
            if gain <= 1 or (name == "langgraph" and row["turns"] >= 1000 and gain < LEAST_GAIN):
                found.append(f"at {row['turns']:,} turns a turn of {ours} is {gain:.2f} times as quick as {name}'s")
        ours_together = {row["loops"]: row["turns_s"] for row in peers[ours].get("parallel") or ()}
        for row in peer.get("parallel") or ():
            gain = (ours_together[row["loops"]] or 0) / (row["turns_s"] or float("inf"))
            if row["turns_s"] and gain <= 1:
                found.append(f"{row['loops']} loops at once make {gain:.2f} times as many turns a second as {name}'s")
    for ours in ("treadle", "treadle-postgres"):
        kill = peers.get(ours, {}).get("kill")
        if kill and not kill["counted"] <= kill["billed"] <= kill["counted"] + kill["in_doubt"]:
            found.append(f"the accounts of {ours} do not hold after a kill: {kill}")
    return found


def measure(
    chosen: dict[str, Peer], lengths: list[int], given: argparse.Namespace, server: str | None
) -> dict[str, Any]:
    """Every row of every peer."""
    rows: dict[str, dict[int, list[dict[str, Any]]]] = {name: {n: [] for n in lengths} for name in chosen}
    for peer in chosen.values():
        timed(peer, 2, server)  # installs it, and compiles what it imports
    left_out: dict[str, int] = {}
    for before, turns in zip([0, *lengths], lengths, strict=False):
        for _ in range(given.repeats):
            for name, peer in chosen.items():
                last = rows[name][before][-1]["last_ms"] if before and rows[name][before] else 0
                if name in left_out or last * turns / 1000 > given.limit:
                    left_out.setdefault(name, turns)
                    continue
                rows[name][turns].append(row := timed(peer, turns, server))
                said = {k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()}
                print(name, json.dumps(said), flush=True)
    parallel = beside(chosen, given, server)
    found: dict[str, Any] = {}
    for name, peer in chosen.items():
        kept = [middle(rows[name][n]) for n in lengths if rows[name][n]]
        found[name] = {
            "needs": peer.needs,
            "rows": kept,
            "parallel": parallel[name],
            "kill": None if given.no_kills else killed(peer, server),
            "left_out": left_out.get(name),
        }
        print(name, "killed in a call:", json.dumps(found[name]["kill"]), flush=True)
    return found


def beside(chosen: dict[str, Peer], given: argparse.Namespace, server: str | None) -> dict[str, list[dict[str, Any]]]:
    """Loops in parallel, peers turn about."""
    rows: dict[str, dict[int, list[dict[str, Any]]]] = {name: {n: [] for n in LOOPS} for name in chosen}
    for loops in () if given.no_parallel else LOOPS:
        for _ in range(given.repeats):
            for name, peer in chosen.items():
                rows[name][loops].append(row := together(peer, loops, server, given.limit))
                print(name, json.dumps({k: v and round(v, 3) for k, v in row.items()}), flush=True)
    return {name: [middle(one) for one in found.values() if one] for name, found in rows.items()}


def main() -> int:
    """0 where the verdict is good."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", default="10,100,1000")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--no-kills", action="store_true", help="leave the kill test out")
    parser.add_argument("--no-parallel", action="store_true", help="leave loops in parallel out")
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    lengths = [int(part) for part in given.turns.split(",") if part]
    with pg.server() as server:
        wanted = set(given.only.split(",")) if given.only else set(PEERS)
        chosen = {name: peer for name, peer in PEERS.items() if name in wanted and (server or not peer.postgres)}
        if server is None:
            print("No Postgres server is installed: the peers that need one are left out.")
        peers = measure(chosen, lengths, given, server)
    system = (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}"
    )
    faults = verdict({"peers": peers}) if "treadle" in chosen else []
    results = {"machine": system, "repeats": given.repeats, "peers": peers, "faults": faults}
    if given.json:
        given.json.write_text(json.dumps(results, indent=1) + "\n")
    print("\n".join(f"FAILED: {fault}" for fault in faults) or "verdict: what is promised against peers holds")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
