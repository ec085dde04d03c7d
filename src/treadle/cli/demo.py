"""`treadle demo`."""

from __future__ import annotations

from .arguments import Namespace, Parser


def parser(name: str) -> Parser:
    """It takes no arguments."""
    return Parser(
        name,
        demo,
        "A small local model writes the missing functions of a module until its tests pass, in several rounds.\n"
        "Its worker is killed midway, and goes on. No key is needed.",
    )


def demo(_: Namespace) -> int:
    """Runs it."""
    from treadle.demo.main import run_demo

    return run_demo()
