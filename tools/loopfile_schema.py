"""Writes the JSON Schema of loop files from the types: editors and the canvas read it. With --check it only compares."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from treadle.spec.loopyaml import schema

FILE = Path(__file__).parents[1] / "src" / "treadle" / "spec" / "loopfile.schema.json"


def main() -> int:
    """0 where the file says what the types say."""
    text = json.dumps(schema(), indent=2) + "\n"
    if "--check" not in sys.argv:
        FILE.write_text(text)
        return 0
    if FILE.read_text() == text:
        return 0
    print(f"{FILE.name} is out of date: run python tools/loopfile_schema.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
