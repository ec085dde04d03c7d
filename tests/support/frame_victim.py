"""Run as a program: loops in which every field of the frame changes, each in processes of its own that are killed where one says.

What a loop ends with is its frame, how every field of that came to be, and what else was decided.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio

from support.whole_frame import ACT, DATES, FEE, LEASES, TASK, lesson, prepare, whole_loop
from treadle import Agent, Child, Command, Loop, Usage, accept
from treadle.app.frames import changes, plain
from treadle.app.runtime import Reopening, Runtime, resting
from treadle.app.stores import open_store
from treadle.core import events as ev
from treadle.core.codec import decode
from treadle.core.errors import UnknownExecution
from treadle.kernel.continuation import frame_of, identity_of
from treadle.kernel.frame import dump_frame, load_frame
from treadle.kernel.states import LoopState
from treadle.kernel.steering import Answer, ChangeLease, Extend
from treadle.models.prices import parse_price
from treadle.ports.clock import CrashPoints
from treadle.settings import Settings
from treadle.testing import Reached, ScriptedModel, Turn, crash_points

TIMES = ("elapsedDurationMs", "actElapsedDurationMs")
PRICE = parse_price("10,20")
LATE, GONE = "fs.write:docs/late.md", "process.spawn:grep*"
NOTE = "NOTE: so far it tells of a voyage."
PAGES = 14


def turn(*calls: tuple[str, dict[str, Any]]) -> Turn:
    return Turn(calls=list(calls), usage=FEE)


def done(summary: str = "done") -> Turn:
    return turn(("finish", {"summary": summary}))


def write(path: str, text: str) -> Turn:
    return turn(("write_file", {"path": path, "text": text}))


def scripted(name: str, *steps: Turn) -> ScriptedModel:
    return ScriptedModel([Turn(text="I look first.", usage=FEE), *steps], name=f"scripted:{name}", price=PRICE)


def whole(folder: Path) -> Loop:
    """A skill, scoped rules, leases asked for, expired and revoked, lessons, gates, the ladder, a scope that is merged."""
    late = write("docs/late.md", "too late\n"), turn(("run_command", {"command": "grep x README.md"}))
    return whole_loop(folder / "whole", act=(*ACT[:5], *late, *ACT[5:]))


def window(folder: Path) -> Loop:
    """A book in a window that holds a part of it: skill and rule are mounted once more after a summary."""

    def read_on(body: dict[str, Any]) -> Turn:
        long = sum(len(str(message["content"])) > 400 for message in body["messages"])
        paid = Usage(input_tokens=900 + 400 * long, output_tokens=60)  # no digit of an id counts
        return replace(_read_on(body), usage=paid)

    def _read_on(body: dict[str, Any]) -> Turn:
        if "hand-over note" in body["messages"][0]["content"]:
            return Turn(text=NOTE)
        said = [call["function"] for message in body["messages"] for call in message.get("tool_calls", ())]
        read = max((json.loads(one["arguments"])["end"] for one in said if one["name"] == "read_file"), default=0)
        if not any(one["name"] in ("activate_skill", "read_file") for one in said):
            return Turn(calls=[("activate_skill", {"name": "answers"})])
        if read >= PAGES * 40:
            return Turn(calls=[("finish", {"summary": "read"})])
        return Turn(
            text="I read on. " * 20,
            calls=[("read_file", {"path": "src/book.txt", "start": read + 1, "end": read + 40})],
        )

    model = ScriptedModel(read_on, name="scripted:reader", price=PRICE, context_window=4_500, max_output_tokens=500)
    return Loop(
        name="window",
        act=Agent(model=model, allow=("fs.read:src/**",)),
        evaluate=lambda ctx, output: accept(),
        workspace=folder / "window",
    )


def plan(folder: Path) -> Loop:
    """A plan that a person approves, and a limit that stops it until somebody extends it."""
    steps = [{"title": "write 42", "check": {"tool": "search", "args": {"pattern": "42"}}}]
    model = ScriptedModel(
        [
            turn(("write_plan", {"steps": steps})),
            write("answer.txt", "42\n"),
            turn(("run_command", {"command": "wc answer.txt"})),
            turn(("search", {"pattern": "42", "path": "answer.txt"})),
            done(),
        ],
        name="scripted:planner",
        price=PRICE,
    )
    check = "grep -q 42 answer.txt"
    return Loop(name="plan", act=Agent(model=model), evaluate=check, workspace=folder / "plan", plan=True, max_turns=3)


def clash(folder: Path) -> Loop:
    """Accepted work that is in conflict with what somebody committed meanwhile; the next round settles it."""
    origin = folder / "clash"

    def check(ctx: Any, output: Any) -> Any:
        if "theirs" not in git(origin, "log", "--format=%s"):
            (origin / "README.md").write_text("theirs\n")
            git(origin, "commit", "-qam", "theirs")
        return accept()

    steps = write("README.md", "ours\n"), done("first"), write("README.md", "theirs, and ours\n"), done("settled")
    return Loop(
        name="clash", act=Agent(model=scripted("clash", *steps)), evaluate=check, workspace=origin, isolate=True
    )


def family(folder: Path) -> Loop:
    """A child that asks a person, works by its parent's leases, and is counted with it."""
    asks = turn(("ask_person", {"question": "Which?", "choices": ["41", "42"]}))
    child = Loop(
        name="scout",
        act=Agent(model=scripted("scout", asks, write("src/child.txt", "42\n"), done("found")), allow=LEASES),
        evaluate="test -f src/child.txt",
    )
    parent = scripted(
        "parent", turn(("fork", {"child": "scout", "task": "Look."})), write("src/own.txt", "1\n"), done()
    )
    act = Agent(model=parent, allow=LEASES, children={"scout": Child(loop=child, about="Looks.")})
    return Loop(
        name="family", act=act, evaluate="test -f src/own.txt", workspace=folder / "family", max_cost_usd=Decimal(1)
    )


def command(folder: Path) -> Loop:
    """A command acts and another checks; the first round is rejected."""
    acts = "printf x >> src/tries.txt"
    return Loop(
        name="command",
        act=Command(command=f"test $TREADLE_ROUND -gt $(cat src/tries.txt 2>/dev/null | wc -c) && {acts} || true"),
        evaluate="test $(cat src/tries.txt | wc -c) -ge 2",
        workspace=folder / "command",
    )


LOOPS: dict[str, Callable[[Path], Loop]] = {one.__name__: one for one in (whole, window, plan, clash, family, command)}


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=n", "-c", "user.email=n@example.org")
    return subprocess.run(
        ["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True, env=os.environ | DATES
    ).stdout


def made(folder: Path, name: str) -> None:
    """The workspace of a loop, once."""
    if (folder / f"{name}.ready").exists():
        return
    prepare(folder / name)
    if name == "window":
        (folder / name / "src" / "book.txt").write_text("lorem ipsum dolor sit amet\n" * PAGES * 40)
    (folder / f"{name}.ready").touch()


async def state_of(runtime: Runtime, name: str) -> LoopState:
    try:
        return await runtime.state(name)
    except UnknownExecution:
        return LoopState()


async def go_on(runtime: Runtime, name: str, loop: Loop) -> LoopState:
    """To its end, with everything that a person has to say in between."""
    while True:
        state = await state_of(runtime, name)
        if not state.seq:
            if name == "whole":
                assert runtime.lessons is not None
                await runtime.lessons.add([lesson("whole.act", Path(str(loop.workspace)))])
            session = await runtime.start(loop, TASK, execution_id=name)
        elif state.status == "waiting-input":
            await said(runtime, name, state)
            continue
        elif state.code == "limit":
            await runtime.steer(name, Extend(actor="eve", max_cost_usd=Decimal(1), guards={"repeat": 9}))
            await runtime.steer(name, Extend(actor="eve", max_turns=20))
            continue
        elif resting(state, Reopening()):
            return state
        else:
            session = await runtime.resume(name, loop, Reopening())
        try:
            await session.run()
        finally:
            await session.close()


async def said(runtime: Runtime, name: str, state: LoopState) -> None:
    """A lease that ends at once, one that is taken away, and the answer."""
    assert state.pending is not None
    if name == "whole":
        known = {lease.capability: lease.op for lease in state.carried.leases}
        if LATE not in known:
            await runtime.steer(name, ChangeLease(actor="eve", op="grant", capability=LATE, for_us=1))
        if known.get(GONE) != "revoke":
            await runtime.steer(name, ChangeLease(actor="eve", op="revoke", capability=GONE))
    decision, text = ("answer", "42") if state.pending.kind == "question" else ("approve", "")
    answer = Answer(request_id=state.pending.id, decision=decision, text=text, actor="eve")
    await runtime.steer(name, answer)


async def told(runtime: Runtime, name: str) -> dict[str, Any]:
    """What it ended with. What differs from run to run is told by what it means: messages by their text, leases by what they say."""
    state = await runtime.state(name)
    sealed = dump_frame(frame_of(state), max_iterations=state.settings.max_rounds)
    frame = plain(load_frame(sealed, max_iterations=state.settings.max_rounds, identity=identity_of(state)))
    records = await runtime.ledger.records(name)
    texts: dict[str, str] = {}
    for record in records:
        if record.kind in ev.MESSAGE_KINDS:
            event: Any = decode(record.kind, record.version, record.body)
            texts[str(record.seq)] = str(getattr(event, "text", "") or getattr(event, "results", ""))
    history: dict[str, list[Any]] = {}
    for change in changes(records):
        if change.field not in TIMES:
            history.setdefault(change.field, []).append(_meant(change.field, change.after, texts))
    children = [await told(runtime, child) for child, _ in state.children]
    return {
        "frame": {field: _meant(field, value, texts) for field, value in frame.items() if field not in TIMES},
        "history": history,
        "ended": [state.status, state.code, state.round],
        "plan": [[one.step.title, one.status, one.by] for one in state.plan.steps] + [state.plan.approved_by],
        "limits": [state.settings.limits.max_turns, state.settings.guards.repeat]
        + ([] if state.parent else [str(state.settings.limits.max_cost_usd)]),  # a child's is what is not in doubt
        "window": [state.window.compactions, state.window.saved, state.window.spent.requests],
        "scope": None if state.scope is None else [state.scope.closed, list(state.scope.conflicts)],
        "ladder": [state.rung, dict(state.fires)],
        "memory": [state.memory.voted, state.memory.distilled],
        "children": children,
    }


def _meant(field: str, value: Any, texts: dict[str, str]) -> Any:
    if field == "preservedActLeafMessageId" and value is not None:
        return texts[value]
    if field == "activeSkillActivations" and value:
        return {skill: "In digits." in texts[mount["messageId"]] for skill, mount in value.items()}
    if field == "grantedLoopLeases" and value:
        return [[one["op"], one["capability"], one["scope"], "expiresAtMs" in one] for one in value]
    return value


async def life(folder: Path, name: str, crash_at: str) -> dict[str, Any]:
    """One process's worth of a loop: to its end, where no kill comes first."""
    made(folder, name)
    reached = Reached()
    points: CrashPoints = crash_points(crash_at) if crash_at else reached
    ledger = await open_store(f"sqlite:///{folder / 't.db'}", points)
    runtime = Runtime(ledger, Settings(environ={}, state_dir=folder / "state"), points=points)
    await go_on(runtime, name, LOOPS[name](folder))
    ended = await told(runtime, name)
    await runtime.close()
    return {"told": ended, "passed": dict(reached.counts)}


def serve() -> None:
    """A process for each line `{folder, name, crash_at}`: forked, so that it starts at once. Answers with its exit code."""
    for module in ("treadle.ledger.sqlite", "treadle.tools.builtin.workspace", "treadle.context.map", "ruamel.yaml"):
        import_module(module)
    for line in sys.stdin:
        asked = json.loads(line)
        if (child := os.fork()) == 0:
            folder = Path(asked["folder"])
            folder.mkdir(parents=True, exist_ok=True)
            sys.stderr = (folder / "errors.txt").open("a")
            ended = anyio.run(life, folder, asked["name"], asked["crash_at"])
            (folder / "ended.json").write_text(json.dumps(ended, default=str))
            sys.stderr.flush()
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    serve()
