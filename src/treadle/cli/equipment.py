"""Flags of `treadle run` for what the agent has and may touch: MCP servers, skills, lessons, permissions, a scope; gates."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from treadle.core.errors import ConfigurationError

from .arguments import Parser
from .values import one_of

LESSON_MODES = ("off", "recall", "on")


def equipment(made: Parser) -> None:
    """Adds them."""
    made.section("What it has, and may touch")
    made.option("--mcp", metavar="NAME=CMD|URL", action="append", help="an MCP server for act; may be repeated")
    made.option("--mcp-config", metavar="FILE", type=Path, help='a file of MCP servers: {"mcpServers": {NAME: {...}}}')
    made.option(
        "--lessons",
        metavar="MODE",
        type=one_of("--lessons", LESSON_MODES),
        help="what accepted runs have taught: on (told, and learnt; the default), recall (only told), off",
    )
    made.option(
        "--skills",
        metavar="DIR",
        action="append",
        help="a folder of skills; may be repeated (default: .treadle/skills and .claude/skills of the workspace)",
    )
    made.option(
        "--allow",
        metavar="CAPABILITY",
        action="append",
        help="what it may touch, such as fs.write:src/** or process.spawn:pytest*; with one, all else is closed; repeatable",
    )
    made.option(
        "--may-ask",
        metavar="CAPABILITY",
        action="append",
        help="what it may ask a person for besides --allow; may be repeated",
    )
    made.option("--protect", metavar="GLOB", action="append", help="paths that it may not write; may be repeated")
    made.flag("--plan", help="change nothing before a person has approved its plan (treadle plan)")
    made.flag("--sandbox", help="run its commands in a sandbox (bubblewrap)")
    made.flag("--isolate", help="act in a git worktree on a branch of its own, starting at HEAD")
    made.option(
        "--on-accept",
        metavar="merge|branch",
        type=one_of("--on-accept", ("merge", "branch")),
        help="what becomes of accepted work with --isolate (default: merge, into the branch that is checked out)",
    )


def gates(given: Any) -> dict[str, str]:
    """Gates by name, from NAME=CMD or a mapping. ConfigurationError."""
    if isinstance(given, Mapping):
        return {str(name): str(command) for name, command in given.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    found: dict[str, str] = {}
    for text in given or ():
        name, equals, command = str(text).partition("=")
        if not equals or not name.strip() or not command.strip():
            raise ConfigurationError(f"--gate {text!r} is no NAME=CMD. Example: --gate 'lint=ruff check .'")
        if name.strip() in found:
            raise ConfigurationError(f"Two gates have the name {name.strip()!r}.")
        found[name.strip()] = command.strip()
    return found
