"""Draws docs/images/watch.svg and fleet.svg: what `treadle watch` shows of real loops with scripted models, read from their ledger."""

from __future__ import annotations

import io
import sys
import tempfile
import threading
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
from rich.console import Console

from treadle import Agent, Loop, Usage, run_sync
from treadle.app.stores import open_store
from treadle.app.watching import Fleet, Watched
from treadle.cli import dashboard
from treadle.models.prices import parse_price
from treadle.ports.clock import NO_CRASH_POINTS
from treadle.testing import ScriptedModel, Turn

IMAGES = Path(__file__).parent.parent / "docs" / "images"
FEE = Usage(input_tokens=9_200, output_tokens=640, cache_read_tokens=6_100)
WIDTH = 104


def turn(name: str, text: str = "", **args: Any) -> Turn:
    """One call."""
    return Turn(calls=[(name, args)], text=text, usage=FEE)


MENDS = [
    Turn(text="I read calc.py and the check, mend add, and run the check.", usage=FEE),
    Turn(calls=[("read_file", {"path": "calc.py"}), ("search", {"pattern": "def add"})], usage=FEE),
    turn("edit_file", path="calc.py", old="a - b", new="a + 1"),
    turn("finish", summary="add returns a + 1"),
    Turn(text="The check still fails for 2 + 2; add must use b.", usage=FEE),
    turn("edit_file", path="calc.py", old="a + c", new="a + b"),
    turn("edit_file", path="calc.py", old="a + 1", new="a + b"),
    turn("run_command", command="python3 -B check.py && sleep 30"),
]
OTHERS: dict[str, list[Turn]] = {
    "Translate the README to German": [Turn(text="I translate it.", usage=FEE), turn("finish", summary="translated")],
    "Remove the unused imports": [
        Turn(text="I look.", usage=FEE),
        turn("list_dir"),
        turn("finish", summary="there were none"),
    ],
    "Choose a name for the release": [
        Turn(text="I ask.", usage=FEE),
        turn("ask_person", question="Which of these?", choices=["Ada", "Grace", "Edsger"]),
    ],
}


def loop_of(turns: list[Turn], folder: Path, evaluate: Any) -> Loop:
    """A loop with a scripted model in a workspace of its own."""
    folder.mkdir()
    (folder / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (folder / "check.py").write_text("from calc import add\n\nassert add(2, 2) == 4, f'2 + 2 is {add(2, 2)}'\n")
    model = ScriptedModel(turns, name="openai:gpt-5-mini", price=parse_price("0.25,2"))
    act = Agent(model=model, max_turns=40)
    return Loop(name="run", act=act, evaluate=evaluate, workspace=folder, max_rounds=5, max_cost_usd=Decimal("0.05"))


async def draw(store: str) -> None:
    """Looks until the command of the second round runs."""
    ledger = await open_store(store, NO_CRASH_POINTS)
    fleet = Fleet(ledger, limit=20)
    while True:
        found, _ = await fleet.refresh()
        mended = next(one for one in found if "failing" in str(getattr(one.state, "task", "")))
        flight = mended.flight()
        if flight is not None and flight.what.startswith("run_command"):
            break
        await anyio.sleep(0.05)
    now_us = time.time_ns() // 1000 + 12_000_000
    save("watch", "treadle watch last", dashboard.one(mended, now_us, width=WIDTH))
    save("fleet", "treadle watch", dashboard.fleet(found, fleet.throughput(now_us), now_us, rows=20, width=WIDTH))
    waiting: Watched = next(one for one in found if one.state is not None and one.state.status == "waiting-input")
    save("watch-question", "treadle watch", dashboard.one(waiting, now_us, width=WIDTH))
    await ledger.close()


def save(name: str, command: str, drawn: Any) -> None:
    """One picture."""
    console = Console(
        record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor", highlight=False
    )
    console.print(f"[bold green]$[/] {command}", highlight=False)
    console.print(drawn)
    IMAGES.mkdir(parents=True, exist_ok=True)
    console.save_svg(str(IMAGES / f"{name}.svg"), title="treadle")


def main() -> int:
    """Runs the loops and draws them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = f"sqlite:///{folder / 't.db'}"
        for number, (task, turns) in enumerate(OTHERS.items()):
            evaluate = "true" if number != 1 else "echo 'two are left: os, sys'; false"
            run_sync(loop_of([*turns, *turns[-1:] * 5], folder / str(number), evaluate), task, store=store)
        mending = loop_of(MENDS, folder / "calc", "python3 -B check.py")
        work = threading.Thread(
            target=run_sync, args=(mending, "Fix the failing test"), kwargs={"store": store}, daemon=True
        )
        work.start()
        while not list(folder.glob("calc/calc.py")):
            time.sleep(0.05)
        time.sleep(0.5)
        anyio.run(draw, store)
    return 0


if __name__ == "__main__":
    sys.exit(main())
