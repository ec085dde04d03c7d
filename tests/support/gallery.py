"""The screens that pictures are kept of: a service on loops whose every number is fixed, and how a page comes to show each of them."""

from __future__ import annotations

import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio

from support.studio import Served, served
from treadle.core.usage import Usage
from treadle.demo import studio
from treadle.testing import Fault, Turn, VirtualClock

START_US = 1_791_000_000_000_000
NOW_MS = START_US // 1000 + 3_600_000  # what the page takes for now
TURN_S = 7.0
RUNNING_TURNS = 5  # then its next request hangs
TASKS = {
    "plan": "Move the settings to one file.",
    "question": "Settle what an odd line of the settings means.",
    "done": "Make the flaky configuration tests pass. Leave the public API alone.",
    "stopped": "Rename the reader everywhere.",
    "running": "Speed up the reader, and prove it.",
}
STEPS = [
    {"title": "Find the failing tests", "check": {"tool": "search"}},
    {"title": "Let the environment win", "check": {"tool": "edit_file"}},
    {"title": "Write the summary"},
]
OLD, NEW = "{**environment, **file, **defaults}", "{**defaults, **file, **environment}"


def _turn(text: str, *calls: tuple[str, dict[str, Any]]) -> Turn:
    return Turn(text=text, calls=calls)


def _edit(old: str, new: str) -> tuple[str, dict[str, Any]]:
    return "edit_file", {"path": "config.py", "old": old, "new": new}


QUESTION = {"question": "Should a line without '=' be skipped, or refused?", "choices": ["skip", "refuse"]}
LOOK = _turn("I look at what there is first.", ("list_dir", {}), ("read_file", {"path": "config.py"}))
PLAN = _turn("A plan for you to look at.", ("write_plan", {"steps": STEPS}))
SHORT = _turn("A plan for you to look at.", ("write_plan", {"steps": STEPS[:2]}))
FIND = _turn("Who calls it?", ("search", {"pattern": "merge"}), ("read_file", {"path": "test_config.py"}))
WRONG = _turn("Editing.", ("edit_file", {"path": "config.py"}))
HALF = _turn("Again, whole.", _edit(OLD, "{**file, **environment, **defaults}"))
EDIT = _turn("The order was not right yet.", _edit("{**file, **environment, **defaults}", NEW))
ASK = _turn("One decision is yours.", ("ask_person", QUESTION))
DONE = _turn("The order is right now.", ("finish", {"summary": "merge() lets the environment win."}))
SCRIPTS: dict[str, tuple[Turn | Fault, ...]] = {
    "plan": (LOOK, PLAN),
    "question": (LOOK, PLAN, FIND, WRONG, HALF, FIND, ASK),
    "done": (LOOK, SHORT, FIND, WRONG, HALF, DONE, FIND, EDIT, DONE),
    "stopped": (LOOK, WRONG, FIND),
    "running": (LOOK, PLAN, FIND, WRONG, HALF, Fault(hang=True)),
}
LOOP = """control: {{max_rounds: 4, plan: {plan}, max_turns: {turns}, max_cost: 2, max_time: 30m, warn_at: [80, 90]}}
perceive: {{budget: 2000}}
verify: {{check: ./check}}
"""
CHECK = """#!/bin/sh
grep -q 'file, ..environment}' config.py || { echo 'test_environment_wins: 1 is not 3'; exit 1; }
"""


class Gallery:
    """The service's link, and its executions by name."""

    def __init__(self, link: str, names: dict[str, str]) -> None:
        self.link, self.names = link, names


@contextmanager
def gallery() -> Iterator[Gallery]:
    """Served over a socket, from a thread of its own."""
    ready, found = threading.Event(), dict[str, Any]()
    with tempfile.TemporaryDirectory(prefix="treadle-looks-") as folder:
        thread = threading.Thread(target=lambda: _run(Path(folder), ready, found))
        thread.start()
        ready.wait()
        try:
            if fault := found.get("fault"):
                raise fault
            yield Gallery(found["link"], found["names"])
        finally:
            if "server" in found:
                found["server"].should_exit = True
            thread.join()


def _run(folder: Path, ready: threading.Event, found: dict[str, Any]) -> None:
    try:
        anyio.run(_serve, folder, ready, found)
    except BaseException as fault:
        found["fault"] = fault
        ready.set()
        raise


async def _serve(folder: Path, ready: threading.Event, found: dict[str, Any]) -> None:
    import uvicorn

    from treadle.server.asgi import guarded

    clock = VirtualClock(start_us=START_US)

    def answer(body: dict[str, Any]) -> Turn | Fault:
        said = str(body["messages"])
        script = SCRIPTS[next(name for name, task in TASKS.items() if task in said)]
        spoken = sum(message["role"] == "assistant" for message in body["messages"])
        step = script[min(spoken, len(script) - 1)]
        clock.advance(TURN_S)
        if isinstance(step, Fault):
            return step
        usage = Usage(
            input_tokens=2400 + 610 * spoken,
            output_tokens=140 + 35 * (spoken % 4),
            cache_read_tokens=1800 * min(spoken, 1),
        )
        return Turn(text=step.text, calls=step.calls, usage=usage)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        async with served(folder, answer, clock=clock, port=listening.getsockname()[1], store="memory:") as it:
            names = await _begin(it)
            config = uvicorn.Config(
                guarded(it.studio, it.access),
                fd=listening.fileno(),
                log_level="error",
                lifespan="off",
                timeout_graceful_shutdown=1,
            )
            server = uvicorn.Server(config)
            found.update(link=it.access.link, names=names, server=server)
            ready.set()
            await server.serve()


async def _begin(it: Served) -> dict[str, str]:
    names: dict[str, str] = {}
    folder = it.studio.workspace
    studio.prepare(folder)
    (folder / "check").write_text(CHECK)
    (folder / "check").chmod(0o755)
    for number, (name, task) in enumerate(TASKS.items()):
        (folder / "config.py").write_text(studio.FILES["config.py"])
        limited = name == "stopped"
        text = LOOP.format(plan=str(not limited).lower(), turns=3 if limited else 24)
        names[name] = await it.start(it.loop(text).replace("name: test", f"name: {task}"), task, key=f"looks-{number}")
        asked = await it.rest(names[name])
        if name in ("plan", "stopped"):
            continue
        await it.post(f"/api/executions/{names[name]}/approve", {"seen": asked["head"]})
        if name != "running":
            await it.rest(names[name])
    with anyio.fail_after(60):
        while (await it.get(f"/api/executions/{names['running']}"))["live"]["turns"] < RUNNING_TURNS:  # noqa: ASYNC110 - it is asked over HTTP
            await anyio.sleep(0.01)
    return names


def _open(name: str, view: str = "watch") -> Callable[[Any, dict[str, str]], None]:
    def show(page: Any, names: dict[str, str]) -> None:
        page.evaluate("(hash) => { location.hash = hash }", f"#/{view}/{names[name]}")
        page.wait_for_selector("[data-g=hub]")

    return show


def _log(page: Any, names: dict[str, str]) -> None:
    _open("done")(page, names)
    if page.viewport_size["width"] < 700:
        page.locator(".phonelog").scroll_into_view_if_needed()
    else:
        page.locator(".react-flow__node[data-id=learn]").click()
        page.wait_for_selector(".logline")


def _compose(page: Any, names: dict[str, str]) -> None:
    page.evaluate("location.hash = '#/compose'")
    page.get_by_role("button", name="start from the sample loop").click()
    page.wait_for_selector("[data-id=perceive]")
    page.get_by_text("sound", exact=True).wait_for()


def _fleet(page: Any, names: dict[str, str]) -> None:
    page.evaluate("location.hash = '#/fleet'")
    page.wait_for_selector(".card")


def _compare(page: Any, names: dict[str, str]) -> None:
    page.evaluate("(hash) => { location.hash = hash }", f"#/compare/{names['done']}/{names['stopped']}")
    page.wait_for_selector(".compare tbody tr")


SCREENS: dict[str, Callable[[Any, dict[str, str]], None]] = {
    "fleet": _fleet,
    "compare": _compare,
    "plan": _open("plan"),
    "question": _open("question", "steer"),
    "running": _open("running"),
    "stopped": _open("stopped"),
    "log": _log,
    "compose": _compose,
}
