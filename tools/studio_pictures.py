"""Makes the pictures of the studio in docs/images anew: the product itself on its sample loop, in Chromium, as the tests see it."""

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

PICTURES = {  # file: (scene, size, theme)
    "studio.png": ("question", "desk", "dark"),
    "studio-plan.png": ("plan", "phone", "dark"),
    "studio-question.png": ("question", "phone", "light"),
    "studio-compose.png": ("compose", "desk", "light"),
}


def main() -> int:
    """Writes all of them."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        workspace = home / "workspace"
        workspace.mkdir()
        prepare(workspace)
        environ = {"PATH": f"{Path(COMMAND).parent}:/usr/bin:/bin", "HOME": name, "LOGNAME": "ada"}
        command = [COMMAND, "studio", "--port", "0", "--workspace", str(workspace)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environ, text=True) as process:
            assert process.stdout is not None
            try:
                link = process.stdout.readline().strip()
                with ScriptedEndpoint(answer) as endpoint, launched() as browser:
                    for file, (scene, size, theme) in PICTURES.items():
                        with opened(browser, link, size, color_scheme=theme) as page:
                            SCENES[scene](Loop(page, endpoint))
                            page.locator(".toast").first.wait_for(state="detached")
                            page.screenshot(path=ROOT / "docs" / "images" / file)
            finally:
                process.terminate()
    return 0


if __name__ == "__main__":
    sys.exit(main())
