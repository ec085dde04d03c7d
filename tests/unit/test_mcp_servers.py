"""Which MCP servers there are, how their tools are named and of which kind they are, and what their answers become."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp_types import (
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)

from treadle import Agent, MCPServer
from treadle.core.errors import ConfigurationError, DefinitionError, ToolError
from treadle.tools.mcp import read_servers, server_from_text
from treadle.tools.mcp.definitions import LONGEST_NAME, MOST_TOOLS, kind, offered
from treadle.tools.mcp.results import answer
from treadle.tools.mcp.servers import expanded


def listed(name: str, **more: Any) -> Tool:
    return Tool(name=name, input_schema={"type": "object"}, **more)


def text(*texts: str, **more: Any) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=each) for each in texts], **more)


def test_a_server_is_a_command_or_a_url() -> None:
    assert server_from_text("git=uvx mcp-server-git --repository 'a b'").command == (
        "uvx",
        "mcp-server-git",
        "--repository",
        "a b",
    )
    assert server_from_text("remote = https://example.org/mcp").url == "https://example.org/mcp"


@pytest.mark.parametrize(
    "wrong",
    ["git", "git=", "=uvx x", "a__b=uvx x", "a b=uvx x", "x='open", "x=http://", "x=https://me:secret@example.org/mcp"],
)
def test_what_names_no_server_is_refused(wrong: str) -> None:
    with pytest.raises(ConfigurationError):
        server_from_text(wrong)


def test_a_file_in_the_shape_that_clients_share(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    servers = {
        "git": {"command": "uvx", "args": ["mcp-server-git"], "env": {"A": "${A:-b}"}, "alwaysAllow": ["git_log"]},
        "web": {"type": "http", "url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${T}"}},
        "off": {"command": "x", "disabled": True},
        "own": {"command": "x", "readOnlyTools": ["*"], "excludeTools": ["rm"], "timeoutSeconds": 5},
    }
    file.write_text(json.dumps({"mcpServers": servers}))
    git, web, own = read_servers(file)
    assert (git.command, git.env) == (("uvx", "mcp-server-git"), {"A": "${A:-b}"})
    assert web.headers == {"Authorization": "Bearer ${T}"}
    assert (own.read_only, own.exclude, own.call_timeout_s) == (("*",), ("rm",), 5.0)


@pytest.mark.parametrize(
    ("content", "where"),
    [
        ("{", "mcp.json"),
        ("[]", "mcpServers"),
        ('{"mcpServers": []}', "mcpServers"),
        ('{"mcpServers": {"a": 1}}', "mcpServers.a"),
        ('{"mcpServers": {"a": {}}}', "mcpServers.a"),
        ('{"mcpServers": {"a": {"command": ["x"]}}}', "mcpServers.a.command"),
        ('{"mcpServers": {"a": {"command": "x", "args": "y"}}}', "mcpServers.a.args"),
        ('{"mcpServers": {"a": {"command": "x", "env": {"A": 1}}}}', "mcpServers.a.env"),
        ('{"mcpServers": {"a": {"command": "x", "readonlyTools": ["y"]}}}', "readOnlyTools"),
        ('{"mcpServers": {"a": {"command": "x", "timeoutSeconds": true}}}', "timeoutSeconds"),
        ('{"mcpServers": {"a": {"type": "sse", "url": "https://x.org"}}}', "mcpServers.a.type"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(tmp_path: Path, content: str, where: str) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(content)
    with pytest.raises(ConfigurationError, match=where.replace(".", r"\.")):
        read_servers(file)


def test_a_variable_that_is_not_set_is_named() -> None:
    assert expanded("git", "${A} ${B:-b}", {"A": "a"}) == "a b"
    with pytest.raises(ConfigurationError, match="NOT_THERE"):
        expanded("git", "${NOT_THERE}", {})


def test_two_servers_of_one_name_are_refused() -> None:
    server = MCPServer(name="a", command=["x"])
    with pytest.raises(DefinitionError):
        Agent(model="test:x", mcp=[server, server])


@pytest.mark.req("AG-24")
def test_names_are_prefixed_and_fit_every_provider() -> None:
    tools = [listed("a.b"), listed("a_b"), listed("a/b"), listed("x" * 200), listed("x" * 199), listed("plain")]
    offer = offered(MCPServer(name="srv", command=["x"]), tools)
    names = [tool.name for tool in offer.tools]
    assert len(set(names)) == len(tools)
    assert "srv__plain" in names
    assert "srv__a_b" in names
    assert all(len(name) <= LONGEST_NAME and name.startswith("srv__") for name in names)
    assert sorted(offer.originals.values()) == sorted(tool.name for tool in tools)
    assert names == sorted(names)


@pytest.mark.req("AG-24")
def test_an_annotation_only_makes_it_stricter() -> None:
    unsaid = MCPServer(name="s", command=["x"])
    trusted = MCPServer(name="s", command=["x"], read_only=["look"])
    claims = ToolAnnotations(read_only_hint=True)
    admits = ToolAnnotations(destructive_hint=True)
    assert kind(unsaid, listed("look", annotations=claims)) == "mutating"
    assert kind(trusted, listed("look")) == "read"
    assert kind(trusted, listed("look", annotations=admits)) == "mutating"
    assert kind(trusted, listed("look", annotations=ToolAnnotations(read_only_hint=False))) == "mutating"
    assert kind(trusted, listed("other", annotations=claims)) == "mutating"


def test_a_flood_of_tools_is_bounded() -> None:
    tools = [listed(f"t{n}") for n in range(MOST_TOOLS + 5)]
    tools[3] = Tool(name="t3", input_schema={"type": "object", "description": "x" * 100_000})
    offer = offered(MCPServer(name="s", command=["x"], exclude=["t0"]), tools)
    assert len(offer.tools) <= MOST_TOOLS
    assert any("t3" in line for line in offer.left_out)
    assert "s__t0" not in offer.originals
    long = offered(MCPServer(name="s", command=["x"]), [listed("t", description="d" * 100_000)]).tools[0]
    assert len(long.description) < 5_000


@pytest.mark.req("AG-24")
def test_every_kind_of_content_is_told() -> None:
    said = answer(
        "s",
        CallToolResult(
            content=[
                TextContent(type="text", text="hello"),
                ImageContent(type="image", data="iVBORw==", mime_type="image/png"),
                ResourceLink(type="resource_link", uri="demo://1", name="one"),
                EmbeddedResource(type="resource", resource=TextResourceContents(uri="demo://2", text="two")),
                EmbeddedResource(type="resource", resource=BlobResourceContents(uri="demo://3", blob="AAAA")),
            ],
            structured_content={"a": 1},
        ),
    )
    assert "hello" in said
    assert "image image/png, 4 bytes" in said
    assert "demo://1" in said
    assert "demo://2]\ntwo" in said
    assert "demo://3" in said
    assert '"a": 1' in said


def test_what_is_said_twice_is_told_once() -> None:
    assert answer("s", text('{"a": 1}', structured_content={"a": 1})) == '{"a": 1}'
    assert answer("s", text("3", structured_content={"result": "3"})) == "3"
    assert answer("s", CallToolResult(content=[])) == "[no output]"


@pytest.mark.req("AG-24")
def test_an_error_is_typed_and_text_about_one_stays_data() -> None:
    assert answer("s", text("Error: no such thing")) == "Error: no such thing"
    with pytest.raises(ToolError, match="no such thing") as failed:
        answer("s", text("no such thing", is_error=True))
    assert failed.value.kind == "not-found"  # by its words: a server has no other way to say it
    assert not failed.value.transient
    with pytest.raises(ToolError) as long:
        answer("s", text("x" * 1_000_000, is_error=True))
    assert len(str(long.value)) < 5_000
