"""Writes web/openapi.json, what the studio's API says of itself: the page's types are generated from it."""

from __future__ import annotations

import json
from pathlib import Path

from treadle.server.asgi import openapi

FILE = Path(__file__).parents[1] / "web" / "openapi.json"


def main() -> None:
    """Writes the file."""
    FILE.write_text(json.dumps(openapi(), indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
