"""Kills the victim, resumes it until it ends, and judges by the files that outlived it."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio

from treadle.app.stores import open_store
from treadle.core.codec import decode
from treadle.core.messages import ModelResponded, ToolsFinished
from treadle.kernel.agent import call_key
from treadle.kernel.loop import advance
from treadle.kernel.states import LoopState
from treadle.ports.clock import NO_CRASH_POINTS
from treadle.runtime.journal import load_state

VICTIM = Path(__file__).with_name("victim.py")
LOOPS = ("loop0", "loop1", "loop2")
TURNS = {"loop0": (12, 12), "loop1": (14, 12), "loop2": (12, 12)}


class Faulty(AssertionError):
    """A promise was broken."""


def spawn(folder: Path, crash_at: str = "", victim: Path = VICTIM) -> subprocess.Popen[str]:
    env = {key: value for key, value in os.environ.items() if key != "TREADLE_CRASH_AT"}
    if crash_at:
        env["TREADLE_CRASH_AT"] = crash_at
    errors = (folder / "errors.txt").open("a")
    with errors:
        return subprocess.Popen(
            [sys.executable, str(victim), str(folder)], stdout=subprocess.PIPE, stderr=errors, env=env, text=True
        )


def case(
    folder: Path,
    crashes: tuple[str, ...] = (),
    random_kills: int = 0,
    seed: int = 0,
    trial: tuple[Path, Callable[[Path, dict[str, Any]], None]] | None = None,
) -> tuple[int, str]:
    """Runs to the end through these crashes. (kills, what is wrong: empty where nothing is)"""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    program, verdict = trial or (VICTIM, judge)
    chance = random.Random(seed)
    left, kills = list(crashes), 0
    for _ in range(60):
        crash = left.pop(0) if left else ""
        victim = spawn(folder, crash, program)
        assert victim.stdout is not None
        if not crash and random_kills > 0:
            random_kills -= 1
            victim.stdout.readline()
            time.sleep(chance.random() * 0.35)
            victim.kill()
        with victim.stdout:
            text = victim.stdout.read()
        code = victim.wait()
        if code == -signal.SIGKILL:
            kills += 1
            continue
        if code != 0:
            return kills, f"exit {code}: {(folder / 'errors.txt').read_text()[-2000:]}"
        try:
            verdict(folder, json.loads(text.strip().splitlines()[-1], parse_float=Decimal))
        except Faulty as fault:
            return kills, str(fault)
        return kills, ""
    return kills, "it never ended"


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line, parse_float=Decimal) for line in file.read_text().splitlines()] if file.exists() else []


def judge(folder: Path, found: dict[str, Any]) -> None:
    notes = lines(folder / "notes.jsonl")
    for name in LOOPS:
        document = found[name]
        _ended(name, document)
        _accounts(folder, name, document, notes)
    _effects(folder, notes, _results(folder))
    _orphans(folder)


def expect(holds: object, what: str) -> None:
    if not holds:
        raise Faulty(what)


def _ended(name: str, document: dict[str, Any]) -> None:
    expect((document["status"], document["code"]) == ("done", "accepted"), f"{name} ended {document}")
    expect(document["rounds"] == 2, f"{name} took {document['rounds']} rounds")
    total, act = TURNS[name]
    expect(document["turns_taken"] == total, f"{name} turns {document['turns_taken']}, not {total}")
    expect(document["act_turns_taken"] == act, f"{name} act turns {document['act_turns_taken']}, not {act}")


def _accounts(folder: Path, name: str, document: dict[str, Any], notes: list[dict[str, Any]]) -> None:
    bills = lines(folder / f"{name}.bill") + lines(folder / f"{name}-judge.bill")
    extras = sum(note.get("extra") == name for note in notes)
    billed = len(bills) + extras
    counted, doubt = document["usage"]["requests"], document["usage"]["in_doubt_requests"]
    expect(counted <= billed <= counted + doubt, f"{name}: counted {counted}, billed {billed}, in doubt {doubt}")
    money = sum((Decimal(str(line["cost_usd"])) for line in bills), Decimal(0))
    cost, in_doubt = Decimal(str(document["cost_usd"])), Decimal(str(document["in_doubt_usd"]))
    expect(cost <= money <= cost + in_doubt, f"{name}: counted ${cost}, billed ${money}, in doubt ${in_doubt}")
    tokens = document["usage"]["input_tokens"]
    expect(tokens <= 70 * len(bills) + extras, f"{name}: {tokens} input tokens counted, {len(bills)} responses billed")


def _effects(folder: Path, notes: list[dict[str, Any]], results: dict[str, tuple[str, str]]) -> None:
    """What was done is what the records say was done, and nothing was done twice."""
    starts = Counter(note["key"] for note in notes if "start" in note)
    twice = [key for key, count in starts.items() if count > 1]
    expect(not twice, f"done twice: {twice}")
    writes = {key: status for key, (name, status) in results.items() if name == "w"}
    expect(len(writes) == 2 * 2 * 3, f"{len(writes)} writes have results, not 12")
    done = {key for key, status in writes.items() if status == "ok"}
    expect(done <= set(starts), f"reported as done, and never started: {done - set(starts)}")
    expect(set(starts) <= set(writes), f"done without a result: {set(starts) - set(writes)}")
    expect(set(writes.values()) <= {"ok", "unknown"}, f"a write has failed: {writes}")
    log = (folder / "workspace" / "log.txt").read_text().split() if (folder / "workspace" / "log.txt").exists() else []
    commands = [status for name, status in results.values() if name == "run_command"]
    expect(all(log.count(n) <= 2 for n in "12"), f"a command ran twice: {log}")
    expect(len(log) >= 2 * commands.count("ok"), f"a command is said to have run: {log}, {commands}")
    expect((folder / "workspace" / "out.txt").read_text() == "Round 2\n", "the file is not what was written")


def _results(folder: Path) -> dict[str, tuple[str, str]]:
    """Call key -> (tool, status) of every result on record; the store is sound and folds to what the driver had."""
    found: dict[str, tuple[str, str]] = {}

    async def look() -> None:
        ledger = await open_store(f"sqlite:///{folder / 't.db'}", NO_CRASH_POINTS)
        wrong = await ledger.verify()
        expect(not wrong, f"the store is damaged: {wrong}")
        for name in LOOPS:
            records = await ledger.records(name)
            expect([r.seq for r in records] == list(range(1, len(records) + 1)), f"{name}: holes")
            state = LoopState()
            asked = answered = 0
            for record in records:
                event = decode(record.kind, record.version, record.body)
                asked += len(event.calls) if isinstance(event, ModelResponded) else 0
                if isinstance(event, ToolsFinished):
                    for index, result in enumerate(event.results, start=state.agent.answered):
                        found[f"{name}:{call_key(state, index)}"] = (state.agent.calls[index].name, result.status)
                        answered += 1
                state = advance(state, event)
            expect(asked == answered, f"{name}: {asked} calls, {answered} results")
            expect(state == (await load_state(ledger, name))[0], f"{name}: refolding gives another state")
        await ledger.close()

    anyio.run(look)
    return found


def _orphans(folder: Path) -> None:
    """No process works in the workspace any more."""
    workspace = str((folder / "workspace").resolve())
    for process in Path("/proc").glob("[0-9]*"):
        try:
            expect(str((process / "cwd").readlink()) != workspace, f"an orphan: {(process / 'cmdline').read_text()!r}")
        except OSError:
            continue  # it is gone, or is none of ours
