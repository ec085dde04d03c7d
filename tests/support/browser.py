"""Chromium with fingers, at the sizes that the page is made for, and the model that its loops run on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from treadle.demo import studio
from treadle.testing import Turn

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]
SIZES = {"desk": (1440, 900), "tablet": (820, 1180), "phone": (390, 844)}
PATIENCE_MS = 40_000

# The date alone stands still: Playwright's own clock stops what animates the canvas as well.
STOPPED = """
globalThis.Date = class extends Date {
  constructor(...given) { if (given.length) super(...given); else super(%d); }
  static now() { return %d; }
};
"""
PLAN = Turn(
    calls=(("write_plan", {"steps": [{"title": "Look", "check": "true"}, {"title": "Write"}, {"title": "Rest"}]}),)
)
ASK = Turn(calls=(("ask_person", {"question": "which?", "choices": ["a", "b"]}),))
CHIPS = Turn(calls=(("run_command", {"command": "seq 1 20000"}), ("edit_file", {"path": "config.py"})))
DONE = Turn(text="done", calls=(("finish", {"summary": "did it"}),))
LOOK = Turn(calls=(("list_dir", {}),))
FLOOD = Turn(calls=(("run_command", {"command": "yes 0123456789 | head -c 50000000"}),))
PACE_S = 0.25  # of a model that leaves a hand time to hold a button
SCRIPTS = {"PLANNED": (PLAN, ASK, DONE), "CHIPS": (Turn(calls=(("list_dir", {}),)), CHIPS), "FINE": (DONE,)}
SCRIPTS |= {"FLOOD": (FLOOD,), "PACED": (*[LOOK] * 6, DONE)}
LOOPS = {
    "PLANNED": "control: {plan: true}\nverify: {check: 'true'}\n",
    "CHIPS": "control: {max_turns: 2}\nact: {on_invalid: run_valid}\nverify: {check: 'true'}\n",
    "FLOOD": "control: {max_turns: 1}\nverify: {check: 'true'}\n",
    "PACED": "control: {max_rounds: 9}\nverify: {check: 'false'}\n",
    "FINE": "verify: {check: 'true'}\n",
}


def answer(body: dict[str, Any]) -> Turn:
    """By the word in the task; the sample loop of the studio otherwise, without its pauses."""
    said = str(body["messages"])
    if "PACED" in said:
        time.sleep(PACE_S)
    script = next((turns for name, turns in SCRIPTS.items() if name in said), None)
    if script is None:
        return studio.answer(body, pause_s=0)
    spoken = sum(message["role"] == "assistant" for message in body["messages"])
    return script[min(spoken, len(script) - 1)]


@contextmanager
def launched() -> Iterator[Any]:
    """A browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def opened(browser: Any, link: str, size: str, *, now_ms: int = 0, **more: Any) -> Iterator[Any]:
    """A page at the list of executions; `now_ms`: what it takes for now, always. An error in it that nobody caught fails the test."""
    width, height = SIZES[size]
    viewport = {"width": width, "height": height}
    context = browser.new_context(viewport=viewport, has_touch=True, **{"reduced_motion": "reduce", **more})
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    if now_ms:
        page.add_init_script(STOPPED % (now_ms, now_ms))
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    try:
        page.goto(link)
        page.wait_for_selector(".fleet")
        yield page
    finally:
        context.close()
    assert not faults
