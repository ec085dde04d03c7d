"""Makes the pictures of the studio in docs/images anew: the product itself on its sample loop, in Chromium, as the tests see it.

`make pictures`, or python tools/studio_pictures.py [FILE...].
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.browser import answer, launched, opened  # noqa: E402
from support.commandline import COMMAND  # noqa: E402
from support.scenes import SCENES  # noqa: E402
from support.watching import Loop  # noqa: E402
from treadle.demo.studio import prepare  # noqa: E402
from treadle.testing import ScriptedEndpoint  # noqa: E402


def forked(loop: Loop) -> None:
    """A pin of a loop that waits, and the fork from it."""
    SCENES["plan"](loop)
    loop.hands.hold("[data-g=hub]")
    loop.hands.tap(".bead.pinned")
    loop.panel("pin").get_by_role("button", name="Fork from here").click()
    loop.page.wait_for_selector(".family .kin")


def compared(loop: Loop) -> None:
    """One that is accepted beside one that waits."""
    loop.page.evaluate("location.hash = '#/fleet'")
    loop.page.locator(".card.green .pick input").first.check()
    loop.page.locator(".card.violet .pick input").first.check()
    loop.page.get_by_role("button", name="Compare two").click()
    loop.page.wait_for_selector(".compare td")


def opened_map(loop: Loop) -> None:
    """The context map, spread open."""
    SCENES["plan"](loop)
    loop.hands.two("[data-g=perceive]", scale=2.5, apart=24)
    loop.panel("map").get_by_text("config.py").first.wait_for()


ALL = {**SCENES, "forked": forked, "compare": compared, "map": opened_map}
PICTURES = {  # file: (scene, size, theme); a later one sees what an earlier one has left in the store
    "studio.png": ("question", "desk", "dark"),
    "studio-plan.png": ("plan", "phone", "dark"),
    "studio-question.png": ("question", "phone", "light"),
    "studio-compose.png": ("compose", "desk", "light"),
    "studio-compose-phone.png": ("compose", "phone", "dark"),
    "studio-watch-phone.png": ("done", "phone", "dark"),
    "studio-map.png": ("map", "desk", "dark"),
    "studio-fork.png": ("forked", "desk", "light"),
    "studio-compare.png": ("compare", "desk", "dark"),
    "studio-fleet.png": ("fleet", "desk", "dark"),
    "studio-fleet-phone.png": ("fleet", "phone", "light"),
}


def main() -> int:
    """Writes all of them."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        workspace = home / "workspace"
        workspace.mkdir()
        prepare(workspace)
        environ = {"PATH": f"{Path(COMMAND).parent}:/usr/bin:/bin", "HOME": name}
        command = [COMMAND, "studio", "--port", "0", "--workspace", str(workspace), "--as", "ada"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environ, text=True) as process:
            assert process.stdout is not None
            try:
                link = process.stdout.readline().strip()
                with ScriptedEndpoint(answer) as endpoint, launched() as browser:
                    for file, (scene, size, theme) in PICTURES.items():
                        if sys.argv[1:] and file not in sys.argv[1:]:
                            continue
                        with opened(browser, link, size, color_scheme=theme) as page:
                            ALL[scene](Loop(page, endpoint))
                            page.add_style_tag(content=".toasts { display: none }")
                            page.screenshot(path=ROOT / "docs" / "images" / file)
            finally:
                process.terminate()
    return 0


if __name__ == "__main__":
    sys.exit(main())
