"""What the tests of the page share: one browser and one service for all of them, and a loop that somebody has open."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.browser import CHROMIUM, SIZES, answer, launched, opened
from support.commandline import COMMAND
from support.gallery import Gallery, gallery
from support.watching import Loop
from treadle.demo.studio import prepare
from treadle.server.pages import BUNDLE
from treadle.testing import ScriptedEndpoint


def pytest_addoption(parser: pytest.Parser) -> None:
    """For `make looks`."""
    parser.addoption("--renew", action="store_true", help="take the pictures of looks/ anew")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without a browser, or without the page, there is nothing to look at."""
    missing = ""
    if not CHROMIUM.exists():
        missing = f"there is no browser at {CHROMIUM}"
    elif not (BUNDLE / "index.html").exists():
        missing = "the page is not built: make page"
    for item in items:
        if Path(__file__).parent not in item.path.parents:
            continue
        if missing:
            item.add_marker(pytest.mark.skip(reason=missing))
        # A browser that gets no processor for a while drops touches as no person would make them; what fails twice is ours.
        item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(scope="package")
def endpoint() -> Iterator[ScriptedEndpoint]:
    """The model of every loop here: what it says depends on the task."""
    with ScriptedEndpoint(answer) as started:
        yield started


@pytest.fixture(scope="package")
def link(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The link of a studio on a workspace of its own."""
    home = tmp_path_factory.mktemp("studio")
    workspace = home / "workspace"
    workspace.mkdir()
    prepare(workspace)
    environ = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": str(home),
        "TREADLE_STATE": str(home / "state"),
    }
    command = [COMMAND, "studio", "--port", "0", "--workspace", str(workspace), "--as", "ada"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environ, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()
        assert process.wait(30) == 0


@pytest.fixture(scope="package")
def hung() -> Iterator[Gallery]:
    """The service whose every number is fixed."""
    with gallery() as found:
        yield found


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """Chromium."""
    with launched() as started:
        yield started


@pytest.fixture(scope="package")
def desk(browser: Any, link: str) -> Iterator[Any]:
    """A page at a desk that tests of this package share; nothing may go wrong in it unseen."""
    with opened(browser, link, "desk") as page:
        yield page


@pytest.fixture
def loop(desk: Any, endpoint: ScriptedEndpoint) -> Loop:
    """An execution on the shared page, to be opened."""
    return Loop(desk, endpoint)


@pytest.fixture
def planned(loop: Loop) -> Loop:
    """One that waits with a question, its plan not approved."""
    loop.open("PLANNED", "waiting-input")
    return loop


@pytest.fixture(scope="package", params=SIZES)
def sized(browser: Any, link: str, endpoint: ScriptedEndpoint, request: pytest.FixtureRequest) -> Iterator[Loop]:
    """An execution on a page at a size: desk, tablet, phone."""
    with opened(browser, link, request.param) as page:
        yield Loop(page, endpoint)
