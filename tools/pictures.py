"""Draws docs/images/run.svg: the product's own live view at a moment of a real loop with a scripted model, and its last lines."""

from __future__ import annotations

import io
import sys
import tempfile
from decimal import Decimal
from pathlib import Path

from rich.console import Console

from treadle import Agent, Loop, Usage, run_sync
from treadle.app.ending import rest_of
from treadle.models.prices import parse_price
from treadle.ports.observer import Observer, Progress
from treadle.telemetry.live import Board, render
from treadle.telemetry.progress import noteworthy
from treadle.testing import ScriptedModel, Turn

IMAGE = Path(__file__).parent.parent / "docs" / "images" / "run.svg"
COMMAND = 'treadle run "Fix the failing test" --check "python check.py" --model openai:gpt-5-mini --max-cost 1'
FEE = Usage(input_tokens=9_000, output_tokens=700)
WRONG = {"path": "calc.py", "old": "a - b", "new": "a + 1"}
RIGHT = {"path": "calc.py", "old": "a + 1", "new": "a + b"}
SCRIPT = [
    Turn(text="I read calc.py and the check, mend add, and run the check.", usage=FEE),
    Turn(calls=[("read_file", {"path": "calc.py"}), ("search", {"pattern": "add"})], usage=FEE),
    Turn(calls=[("edit_file", WRONG)], usage=FEE),
    Turn(calls=[("finish", {"summary": "add returns a + 1"})], usage=FEE),
    Turn(text="The check still fails for 2 + 2; add must use b.", usage=FEE),
    Turn(calls=[("edit_file", RIGHT)], usage=FEE),
    Turn(calls=[("run_command", {"command": "python check.py"})], usage=FEE),
    Turn(calls=[("finish", {"summary": "add adds now"})], usage=FEE),
]


class Photographer(Observer):
    """Keeps the lines that stay, and draws the board while the command of the second round runs."""

    def __init__(self, console: Console) -> None:
        self.console, self.board = console, Board()

    def notify(self, progress: Progress) -> None:
        """Takes one note."""
        self.board.take(progress)
        line = noteworthy(progress)
        if line is not None and progress.state.status == "running":
            self.console.print(line.text, style={"good": "green", "bad": "red"}.get(line.tone, "bright_black"))
        if progress.kind == "tool.started" and progress.data["name"] == "run_command":
            self.console.print()
            self.console.print(render(self.board))
            self.console.print()


def main() -> int:
    """Runs the loop and writes the picture."""
    console = Console(
        record=True, width=104, file=io.StringIO(), force_terminal=True, color_system="truecolor", highlight=False
    )
    console.print(f"[bold green]$[/] {COMMAND}", highlight=False)
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder) / "work"
        workspace.mkdir()
        (workspace / "calc.py").write_text("def add(a, b):\n    return a - b\n")
        (workspace / "check.py").write_text("from calc import add\n\nassert add(2, 2) == 4, add(2, 2)\n")
        model = ScriptedModel(SCRIPT, name="openai:gpt-5-mini", price=parse_price("0.25,2"))
        loop = Loop(
            name="run",
            act=Agent(model=model, max_turns=40),
            evaluate="python3 -B check.py",
            workspace=workspace,
            max_cost_usd=Decimal(1),
        )
        result = run_sync(loop, "Fix the failing test", store="memory:", observers=(Photographer(console),))
    rest = rest_of(result.execution_id, result.state)
    console.print(
        f"{result.execution_id} [green]{rest.label}[/] · {rest.accounts} · next: {rest.next}", highlight=False
    )
    IMAGE.parent.mkdir(parents=True, exist_ok=True)
    console.save_svg(str(IMAGE), title="treadle")
    return 0 if result.is_success else 1


if __name__ == "__main__":
    sys.exit(main())
