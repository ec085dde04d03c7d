"""What goes wrong while somebody watches: another person is quicker, the service is started anew, an execution goes, an output is huge."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.browser import opened
from support.commandline import COMMAND
from support.watching import Loop, node
from treadle.testing import ScriptedEndpoint


@pytest.mark.req("CV-23", "CV-07")
def test_of_two_people_the_second_is_told_and_sees_what_the_first_did(
    browser: Any, link: str, planned: Loop, endpoint: ScriptedEndpoint
) -> None:
    with opened(browser, link, "desk") as page:
        page.route("**/api/events", lambda route: None)  # what it is told comes late: for ever
        other = Loop(page, endpoint)
        other.name = planned.name
        page.reload()
        other.show()
        page.wait_for_selector(".padlock.locked.asks")
        planned.hands.tap("[data-g=padlock]")
        planned.until("d.plan.approved")
        other.hands.tap("[data-g=padlock]")
        page.locator(".toast.bad").wait_for()
        page.wait_for_selector(".padlock.open")
        page.unroute_all(behavior="ignoreErrors")


@pytest.mark.req("CV-16")
def test_fifty_megabytes_of_output_are_read_a_part_at_a_time(loop: Loop) -> None:
    loop.open("FLOOD", "stopped")
    loop.hands.double_click(".chips button.chip")
    panel = loop.panel("output")
    panel.get_by_text(re.compile(r"4,19\d,\d{3} B stored")).wait_for()  # as much of it as is kept
    first = len(panel.locator("pre").inner_text())
    assert 1_000 < first < 200_000
    panel.get_by_role("button", name="More (4,1").wait_for()
    # A panel lies within the canvas: what is beyond its edge cannot be reached.
    loop.page.wait_for_function(
        """() => {
          const [held, canvas] = ['[data-panel=output]', '.react-flow'].map((one) => document.querySelector(one).getBoundingClientRect());
          return held.top >= canvas.top && held.bottom <= canvas.bottom;
        }"""
    )
    panel.get_by_role("button", name="More").click()
    grown = "(n) => document.querySelector('.output pre').textContent.length > n"
    loop.page.wait_for_function(grown, arg=first)
    loop.shut()


@pytest.mark.req("CV-23")
def test_step_does_one_turn_and_held_the_rest_of_the_round(loop: Loop) -> None:
    def held(what: str) -> Any:
        found = loop.until(f"d.live.status === 'paused' && !d.here && {what}")
        loop.page.get_by_role("button", name="Resume").wait_for()
        return found["live"]

    loop.start("PACED")
    loop.until("d.can.includes('step') && d.live.turns > 0")
    loop.show()
    loop.hands.tap(".step")  # while it runs
    turns = held("d.live.turns > 0")["turns"]
    loop.page.mouse.click(*loop.hands.middle(".step"))
    assert held(f"d.live.turns > {turns}")["turns"] == turns + 1
    loop.hands.hold(".step")
    assert held("d.live.round === 2")["turns"] == 7
    loop.hands.key(".step", "h")
    assert held("d.live.round === 3")["turns"] > 7


@contextmanager
def _service(home: Path, port: int) -> Iterator[str]:
    environ = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(home), "TREADLE_STATE": str(home)}
    command = [COMMAND, "studio", "--port", str(port), "--workspace", str(home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environ, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


@pytest.mark.req("CV-22", "SV-05")
def test_a_page_outlives_its_service_and_says_when_what_it_shows_is_gone(
    browser: Any, endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with ExitStack() as watching:
        with _service(tmp_path, port) as link:
            page = watching.enter_context(opened(browser, link, "desk"))
            loop = Loop(page, endpoint)
            loop.open("PLANNED", "waiting-input")
            events = int(page.locator(".timeline").get_attribute("aria-valuemax"))
        page.locator(".live.off").wait_for()
        with _service(tmp_path, port) as link:
            page.locator(".notice", has_text="Open the link that it has printed").wait_for()
            with page.context.expect_page() as fresh:
                page.evaluate("(link) => { window.open(link) }", link)
            fresh.value.wait_for_selector(".fleet")
            page.locator(".notice").wait_for(state="detached")
            page.locator(".live.you").wait_for()
            loop.hands.key(node("hub"), "h")  # what comes now is neither lost nor told twice
            page.wait_for_selector(".bead.pinned")
            assert int(page.locator(".timeline").get_attribute("aria-valuemax")) == events + 1
            page.get_by_role("button", name="Stop").click()
            loop.until("d.live.status === 'cancelled' && !d.here")
            page.locator(".live.rest", has_text="cancelled").wait_for()
            prune = [COMMAND, "ledger", "prune", "--keep", "0"]
            environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TREADLE_STATE": str(tmp_path)}
            subprocess.run(prune, env=environ, check=True, capture_output=True)
            loop.hands.key(node("hub"), "h")
            page.get_by_role("heading", name="It cannot be shown").wait_for()
            page.get_by_role("button", name="All executions", exact=True).click()
            page.get_by_text("No loop has run in this store yet").wait_for()
