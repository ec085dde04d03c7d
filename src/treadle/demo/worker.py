"""The process that the demo kills: starts its loop, or goes on with it, and says on its standard output what happens.

python -m treadle.demo.worker FOLDER BASE_URL EXECUTION
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio

from treadle.app.runtime import Reopening, Runtime
from treadle.app.stores import open_store
from treadle.core import events as ev
from treadle.core.errors import UnknownExecution
from treadle.core.messages import ModelResponded
from treadle.ports.clock import NO_CRASH_POINTS
from treadle.ports.observer import Observer, Progress
from treadle.runtime.document import to_json
from treadle.settings import load_settings

from .conversation import TASK
from .loop import demo_loop
from .toolset import WRITE

RESULT = "result "  # what the last line starts with


class Telling(Observer):
    """Says what is worth a line."""

    def notify(self, progress: Progress) -> None:
        """One line for a write, a check, a round."""
        data = progress.data
        match data:
            case ev.BaselineTaken():
                say(f"round {progress.state.round}")
            case ModelResponded():
                for call in data.calls:
                    if call.name == WRITE and isinstance(call.args, dict):
                        say(f"  write  {_written(str(call.args.get('code', '')))}")
            case ev.Judged():
                say(f"  check  {'every test passes' if data.accept else data.feedback}")
            case ev.ToolProbed():
                say(f"         the write that was in flight: {data.found}")
            case _:
                return


def say(line: str) -> None:
    """A line, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _written(code: str) -> str:
    head, _, body = code.partition("\n")
    return f"{head.removeprefix('def ').rstrip(':'):26} {body.strip().removeprefix('return ')}"


async def work(folder: Path, base_url: str, execution_id: str) -> dict[str, Any]:
    """Drives the execution until it rests; its document."""
    settings = load_settings()
    ledger = await open_store(f"sqlite:///{folder / 'treadle.db'}", NO_CRASH_POINTS)
    runtime = Runtime(ledger, settings, observers=(Telling(),), quota_wait_s=None)
    loop = demo_loop(folder / "kit", base_url)
    try:
        try:
            known = (await runtime.state(execution_id)).seq > 0
        except UnknownExecution:
            known = False
        if known:
            session = await runtime.resume(execution_id, loop, Reopening())
            doubt = session.state.total.in_doubt.requests
            say(f"resumed with {session.state.total.turns} turns done, {doubt} request in doubt")
        else:
            session = await runtime.start(loop, TASK, execution_id=execution_id)
        try:
            return await session.run()
        finally:
            await session.close()
    finally:
        await runtime.close()


def main() -> int:
    """One run of the worker."""
    folder, base_url, execution_id = sys.argv[1:4]
    document = anyio.run(work, Path(folder), base_url, execution_id)
    say(RESULT + to_json(document).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
