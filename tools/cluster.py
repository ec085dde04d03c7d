"""Many machines on one: Postgres, Temporal, two workers and a few loops with a scripted model. One worker is killed, and the other goes on.

`make cluster`. Everything is temporary and is taken down at the end; with --keep it stays up until Ctrl-C, to be tried by hand.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import anyio

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support import postgres, temporal  # noqa: E402
from treadle.app.listing import listing  # noqa: E402
from treadle.app.stores import open_store  # noqa: E402
from treadle.models.prices import parse_price  # noqa: E402
from treadle.ports.clock import NO_CRASH_POINTS  # noqa: E402
from treadle.testing import ScriptedEndpoint, Turn  # noqa: E402

PRICE = "1,2"
STEPS = 6
LIMIT_S = 120


def answer(body: dict[str, Any]) -> Turn:
    """The scripted model: one step after another. A step whose outcome is unknown, since its worker was killed, is taken again."""
    said = [str(message.get("content")) for message in body["messages"] if message["role"] == "tool"]
    step = sum("Outcome unknown" not in one for one in said)
    if not any(message["role"] == "assistant" for message in body["messages"]):
        return Turn(text="I take one step after another and then say that I am done.")
    if step < STEPS:
        patience = "until test -e ../go; do sleep 0.1; done" if step == STEPS // 2 else "sleep 1"
        return Turn(calls=[("run_command", {"command": f"{patience}; echo done > step{step}.txt"})])
    return Turn(calls=[("finish", {"summary": f"{STEPS} steps"})])


class Owned(NamedTuple):
    """One execution as the store has it."""

    owner: int  # the process
    epoch: int
    code: str


@dataclass
class Cluster:
    """Where everything is, and how the command is called."""

    store: str
    address: str
    folder: Path

    @property
    def environ(self) -> dict[str, str]:
        """What a person would export."""
        given = {"TREADLE_STORE": self.store, "TREADLE_ENGINE": "temporal", "TREADLE_ADDRESS": self.address}
        own = {
            "TREADLE_STATE": str(self.folder / "state"),
            "TREADLE_CONFIG": str(self.folder / "none"),
            "COLUMNS": "110",
        }
        return {**os.environ, **given, **own}

    def treadle(self, *arguments: str, shown: bool = True) -> str:
        """Runs the command, and shows what was typed and said."""
        command = [Path(sys.executable).with_name("treadle"), *arguments]
        done = subprocess.run(command, env=self.environ, cwd=self.folder, stdout=subprocess.PIPE, text=True, check=True)
        if shown:
            say(f"\n$ treadle {' '.join(arguments)}\n{done.stdout.rstrip()}")
        return done.stdout.strip()

    @contextmanager
    def worker(self, name: str) -> Generator[subprocess.Popen[bytes]]:
        """One of them, as `treadle worker` on a machine of its own."""
        log = self.folder / f"{name}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                [Path(sys.executable).with_name("treadle"), "worker"],
                env=self.environ,
                cwd=self.folder,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
            try:
                say(f"worker {name}    process {process.pid}, says in {log}")
                yield process
            finally:
                process.terminate()
                try:
                    process.wait(40)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def owned(self) -> dict[str, Owned]:
        """Who has what."""
        return anyio.run(self._owned)

    async def _owned(self) -> dict[str, Owned]:
        ledger = await open_store(self.store, NO_CRASH_POINTS)
        try:
            codes = {one.document["execution_id"]: str(one.document["code"]) for one in await listing(ledger)}
            rows = await ledger.rows()
        finally:
            await ledger.close()
        return {
            row.execution_id: Owned(int(row.owner.rpartition(":")[2] or 0), row.epoch, codes.get(row.execution_id, ""))
            for row in rows
        }


def say(text: str) -> None:
    """One line for who watches."""
    print(text, flush=True)


def submit(cluster: Cluster, endpoint: ScriptedEndpoint, loops: int) -> list[str]:
    """The loops, given to whichever worker is free."""
    check = f"test $(ls step*.txt | wc -l) -eq {STEPS}"
    flags = ["--check", check, "--model", "openai:scripted", "--base-url", endpoint.url, "--price", PRICE, "--detach"]
    folders = [cluster.folder / f"work{number}" for number in range(loops)]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(loops) as pool:
        task = f"Take {STEPS} steps"
        given = [
            pool.submit(cluster.treadle, "run", task, *flags, "--workspace", str(folder), shown=False)
            for folder in folders
        ]
        return [one.result() for one in given]


def wait(cluster: Cluster, what: str, until: Callable[[dict[str, Owned]], bool]) -> dict[str, Owned]:
    """The owners as soon as `until(owners)` holds. SystemExit when it never does."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        if until(owners := cluster.owned()):
            return owners
        time.sleep(0.1)
    raise SystemExit(f"FAILED: {what} has not come in {LIMIT_S} s. What the workers said: {cluster.folder}")


def killed(cluster: Cluster, ids: list[str], workers: dict[str, subprocess.Popen[bytes]]) -> bool:
    """Kills a worker that owns something and says how long it takes until the other has all of it."""
    pids = {process.pid for process in workers.values()}
    owners = wait(cluster, "a worker for each loop", lambda now: all(now[one].owner in pids for one in ids))
    time.sleep(2)
    victim = max(workers, key=lambda name: sum(owners[one].owner == workers[name].pid for one in ids))
    cluster.treadle("ls")
    owners = cluster.owned()
    left = [one for one in ids if owners[one].owner == workers[victim].pid and not owners[one].code]
    say(f"\nkill -9 {workers[victim].pid}: worker {victim}, which has {', '.join(left) or 'nothing'}")
    began = time.monotonic()
    workers[victim].kill()
    workers[victim].wait()
    wait(cluster, "the other worker", lambda now: all(now[one].epoch > owners[one].epoch for one in left))
    say(f"{time.monotonic() - began:.1f} s later the other worker goes on with all of it")
    (cluster.folder / "go").touch()  # in the middle each loop waits for this, so that the kill comes in time
    return bool(left)


def settled(cluster: Cluster, ids: list[str], endpoint: ScriptedEndpoint) -> list[str]:
    """What does not hold at the end."""
    import json

    wait(cluster, "an end of each loop", lambda now: all(now[one].code for one in ids))
    cluster.treadle("ls")
    documents = [one for one in json.loads(cluster.treadle("ls", "--json", shown=False)) if one["execution_id"] in ids]
    counted = sum(one["usage"]["requests"] for one in documents)
    doubt = sum(one["usage"]["in_doubt_requests"] for one in documents)
    billed = len(endpoint.bill.charges)
    say(f"\nrequests: counted {counted}, billed {billed}, in doubt {doubt}")
    faults = [f"{one['execution_id']} ended as {one['code']}" for one in documents if one["code"] != "accepted"]
    if not counted <= billed <= counted + doubt:
        faults.append("the accounts do not hold")
    return faults


def main() -> int:
    """0 where every loop was accepted and the accounts hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loops", type=int, default=4)
    parser.add_argument("--keep", action="store_true", help="leave all of it up until Ctrl-C")
    given = parser.parse_args()
    if postgres.binaries() is None:
        raise SystemExit("No Postgres server is installed (Debian: apt install postgresql).")
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="treadle-cluster-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        cluster = Cluster(postgres.new_store(), f"{temporal.server()}/default/cluster", folder)
        say(f"Postgres    {cluster.store}\nTemporal    {cluster.address}")
        endpoint = stack.enter_context(ScriptedEndpoint(answer, price=parse_price(PRICE)))
        workers = {name: stack.enter_context(cluster.worker(name)) for name in ("A", "B")}
        ids = submit(cluster, endpoint, given.loops)
        say(f"{len(ids)} loops    treadle run … --detach, each {STEPS + 2} turns")
        had_some = killed(cluster, ids, workers)
        faults = settled(cluster, ids, endpoint)
        if not had_some:
            faults.append("the worker that was killed had nothing")
        if given.keep:
            _keep(cluster)
    say(
        "\n".join(f"FAILED: {fault}" for fault in faults)
        or "verdict: every loop was accepted, and each request is accounted for"
    )
    return 1 if faults else 0


def _keep(cluster: Cluster) -> None:
    names = ("TREADLE_STORE", "TREADLE_ENGINE", "TREADLE_ADDRESS", "TREADLE_STATE")
    say(
        "\n".join(
            [
                "\nIt stays up until Ctrl-C. Elsewhere:",
                *(f"  export {name}='{cluster.environ[name]}'" for name in names),
            ]
        )
    )
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    sys.exit(main())
