"""Flags of `treadle run` for what the acting agent is equipped with: MCP servers and skills."""

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
