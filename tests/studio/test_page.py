"""The page in a real browser, on a real service that runs the example loop: watched, steered, composed, at three sizes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.commandline import COMMAND
from treadle.server.pages import BUNDLE

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]
SIZES = {"desk": (1440, 900), "tablet": (820, 1180), "phone": (390, 844)}
PATIENCE_MS = 60_000

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="there is no browser at /usr/bin/chromium"),
    pytest.mark.skipif(
        not (BUNDLE / "index.html").exists(), reason="the page is not built: npm run --prefix web build"
    ),
]


@pytest.fixture(scope="module")
def link(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The link of a studio that runs the example."""
    home = tmp_path_factory.mktemp("studio")
    workspace = home / "workspace"
    workspace.mkdir()
    environ = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": str(home),
        "TREADLE_STATE": str(home / "state"),
    }
    command = [COMMAND, "studio", "--port", "0", "--example", "--workspace", str(workspace)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environ, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()
        assert process.wait(30) == 0


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield started
        started.close()


@pytest.fixture(params=SIZES)
def page(browser: Any, link: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A page at a size; nothing may go wrong in it unseen."""
    width, height = SIZES[request.param]
    context = browser.new_context(viewport={"width": width, "height": height}, has_touch=True)
    opened = context.new_page()
    opened.set_default_timeout(PATIENCE_MS)
    faults: list[str] = []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.goto(link)
    opened.wait_for_selector(".card .open")
    yield opened
    context.close()
    assert not faults


@pytest.mark.req("CV-24", "SV-05")
def test_the_fleet_opens_an_execution_and_the_token_is_in_no_address(page: Any, link: str) -> None:
    assert "token" not in page.url
    page.locator("input[type=search]").fill("nothing has this name")
    page.get_by_text("Nothing fits the filter").wait_for()
    page.locator("input[type=search]").fill("flaky")
    page.locator(".card .open").first.click()
    page.wait_for_selector("[data-g=reason]")
    assert "#/watch/" in page.url


@pytest.mark.req("CV-22", "CV-26")
def test_a_loop_is_watched_until_it_asks_and_steered_to_its_end(page: Any) -> None:
    page.locator(".card .open").first.click()
    approve = page.get_by_role("button", name="Approve", exact=True)
    question = page.get_by_text("Should a line without").first
    rests = page.locator(".live.rest")
    approve.or_(question).or_(rests).first.wait_for()
    if approve.count():
        approve.first.click()
    choice = page.get_by_role("button", name="skip", exact=True)
    choice.or_(rests).first.wait_for()
    if choice.count():
        assert question.is_visible()
        choice.click()
    page.locator(".live.rest, .gauge", has_text="done").or_(page.get_by_label("Done:", exact=False)).first.wait_for()


@pytest.mark.req("CV-01", "CV-21")
def test_the_sample_is_composed_changed_undone_and_found_sound(page: Any) -> None:
    page.get_by_role("button", name="Compose", exact=True).click()
    page.get_by_role("button", name="start from the sample loop").click()
    page.wait_for_selector("[data-id=foundation]")
    page.wait_for_selector("[data-id=planning]")
    page.locator("[data-id=perceive]").click()
    page.keyboard.press("Delete")
    page.wait_for_selector("[data-id=perceive]", state="detached")
    page.locator("[data-palette=perceive]").press("Enter")
    page.wait_for_selector("[data-id=perceive]")
    page.locator("[data-palette=planning]").press("Enter")
    page.get_by_text("A loop has one entry").first.wait_for(state="attached")
    page.get_by_text("sound", exact=True).wait_for()
    page.get_by_role("button", name="Undo").click()
    page.wait_for_selector("[data-id=perceive]", state="detached")
