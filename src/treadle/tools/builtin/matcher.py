"""Matches files line by line where there is no ripgrep, as a process: `python -I -S matcher.py PATTERN WIDTH`.

Names come on stdin, separated by NUL, relative to the current folder. Exit code 0: something matched, 1: nothing,
2: the pattern is no regular expression.
"""
# ruff: noqa: PTH123, T201 - a program, quick to start

from __future__ import annotations

import os
import re
import sys

MOST_MATCHES = 1000
LARGEST_FILE = 32 * 1024 * 1024


def content(name: bytes) -> bytes:
    """The file, where it is an ordinary text file of reasonable size; otherwise nothing."""
    try:
        with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            data = file.read(LARGEST_FILE)
    except OSError:  # gone meanwhile, a folder, or not ours to read
        return b""
    return b"" if b"\0" in data[:8192] else data


def main() -> int:
    """Prints each match as path:line:text."""
    try:
        pattern = re.compile(os.fsencode(sys.argv[1]).decode(errors="replace"))
    except (re.error, RecursionError, OverflowError) as error:
        print(f"not a regular expression: {error}")
        return 2
    width, found = int(sys.argv[2]), 0
    for name in sys.stdin.buffer.read().split(b"\0"):
        for number, line in enumerate(content(name).decode(errors="replace").split("\n"), 1):
            if pattern.search(line.rstrip("\r")):
                text = f"{name.decode(errors='replace')}:{number}:{line[:width]}\n"
                sys.stdout.buffer.write(text.encode(errors="replace"))
                found += 1
            if found >= MOST_MATCHES:
                return 0
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
