"""MCP servers as toolsets (AG-24), over the official SDK: extra `mcp`, imported when a server is opened."""

from .servers import MCPServer, read_servers, server_from_text

__all__ = ["MCPServer", "read_servers", "server_from_text"]
