"""Flags of `treadle run` for who acts, and with what: a coding agent by name, MCP servers, skills, permissions."""

from __future__ import annotations

from pathlib import Path

from .arguments import Parser


def equipment(made: Parser) -> None:
    """Adds them."""
    made.option("--mcp", metavar="NAME=CMD|URL", action="append", help="an MCP server for act; may be repeated")
    made.option("--mcp-config", metavar="FILE", type=Path, help='a file of MCP servers: {"mcpServers": {NAME: {...}}}')
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
    made.option(
        "--agent",
        metavar="NAME [ARGS]",
        help="a coding agent that acts instead of a model: claude, codex, gemini, opencode or aider",
    )
