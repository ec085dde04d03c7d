"""What comes from outside, structured and wrong: frames, loop files, steering, tool arguments, answers of MCP servers (SE-03)."""

from __future__ import annotations

import contextlib
import json
import tempfile
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from support.frames import fullest
from treadle.app.carry import read_export
from treadle.core.errors import InputError, ToolError, TreadleError
from treadle.core.messages import ToolCall
from treadle.kernel.frame import dump_frame, load_frame
from treadle.kernel.states import LoopState
from treadle.kernel.steering import decode, to_event
from treadle.ports.model import RawCall
from treadle.ports.toolset import ToolContext, ToolOutput
from treadle.spec import loopyaml
from treadle.spec.loopfile import LoopFileError, beyond_flags, flags
from treadle.tools.builtin import WorkspaceTools
from treadle.tools.validation import annotate

FEWER = max(10, settings.default.max_examples // 4)  # where an example costs some milliseconds
LEAVES = st.none() | st.booleans() | st.integers(-3, 10**20) | st.floats() | st.text(max_size=8)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
LOOP: dict[str, Any] = {
    "treadle": 1,
    "name": "test",
    "task": "mend it",
    "foundation": {"model": "openai:gpt-5-mini", "price": "1,2"},
    "verify": {"check": "true", "max_rounds": 3},
    "control": {"max_cost": "1.5", "max_time": "2h", "guards": {"repeat": 3}},
}


def changed(tree: Any, path: list[int], value: Any, name: str) -> Any:
    """The tree with one value, at any depth, replaced, or with a key that is not known."""
    if not path or not isinstance(tree, dict | list) or not tree:
        return value
    copy: Any = dict(tree) if isinstance(tree, dict) else list(tree)
    keys = list(copy) if isinstance(copy, dict) else list(range(len(copy)))
    key = keys[path[0] % len(keys)]
    copy[key] = changed(tree[key], path[1:], value, name)
    if isinstance(copy, dict) and path[0] % 5 == 0:
        copy[name] = value
    return copy


PATHS = st.lists(st.integers(0, 60), min_size=1, max_size=4)


@pytest.mark.req("SE-03", "FR-23")
@settings(max_examples=FEWER)
@given(PATHS, JSON, st.text(max_size=6))
def test_any_change_of_a_frame_is_a_frame_or_a_frame_error(path: list[int], value: Any, name: str) -> None:
    envelope = json.loads(dump_frame(fullest(), max_iterations=3))
    data = json.dumps(changed(envelope, path, value, name)).encode(errors="surrogatepass")
    for read in (lambda: load_frame(data, max_iterations=3), lambda: read_export(data)):
        with contextlib.suppress(TreadleError):
            read()


@pytest.mark.req("SE-03")
@settings(max_examples=FEWER)
@given(PATHS, JSON, st.text(max_size=6))
def test_any_change_of_a_loop_file_is_a_loop_file_or_a_finding(path: list[int], value: Any, name: str) -> None:
    text = json.dumps(changed(LOOP, path, value, name))  # YAML takes JSON
    file, findings = loopyaml.look(text)
    assert file is not None or findings
    if file is not None and not findings:
        try:
            flags(file)
            beyond_flags(file)
        except (LoopFileError, InputError):
            pass


@pytest.mark.req("SE-03")
@given(
    JSON
    | st.fixed_dictionaries(
        {"type": st.sampled_from(["answer", "cancel", "extend", "pin", "lease"])},
        optional={
            "actor": LEAVES,
            "request_id": LEAVES,
            "decision": LEAVES,
            "text": LEAVES,
            "max_rounds": LEAVES,
            "max_cost_usd": LEAVES,
            "guards": JSON,
            "capability": LEAVES,
            "op": LEAVES,
            "scope": LEAVES,
            "for_us": LEAVES,
        },
    )
)
def test_any_posted_request_is_an_event_or_an_input_error(wish: Any) -> None:
    with contextlib.suppress(InputError):
        to_event(LoopState(), decode(json.dumps(wish).encode()), 1)


@pytest.mark.req("SE-03", "AG-15", "AG-23")
def test_any_arguments_of_a_built_in_tool_give_an_output_or_a_tool_error() -> None:
    with tempfile.TemporaryDirectory() as root, start_blocking_portal() as portal:
        tools = WorkspaceTools(root, environ={"PATH": "/nonexistent"})
        known = tools.tools()
        named = [tool for tool in known if tool.name not in ("run_command", "git_status", "git_diff")]

        async def none(_: str) -> str:
            return ""

        context = ToolContext(key="x:1", started=lambda _pgid, _birth: None, output=none)

        async def run(call: ToolCall) -> None:
            try:
                tools.touches(call)
                await tools.prepare(call)
                assert isinstance(await tools.run(call, context), ToolOutput)
            except ToolError:
                pass

        @settings(max_examples=FEWER)
        @given(st.data())
        def one(data: st.DataObject) -> None:
            tool = data.draw(st.sampled_from(named))
            path = st.sampled_from(
                ["a", "a/b", ".", "..", "/etc/passwd", "a\x00b", "\ud800", "", "x" * 300, "[", "**/["]
            )
            args = data.draw(
                st.fixed_dictionaries(
                    {name: path | st.text(max_size=10) | st.integers(-2, 10**12) for name in tool.schema["properties"]}
                )
                | st.dictionaries(st.text(max_size=4), JSON, max_size=2)
            )
            (call,) = annotate([RawCall("1", tool.name, args)], known)
            if call.kind != "invalid":
                portal.call(run, call)

        one()


CONTENT = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["text", "image", "audio", "resource_link", "resource", "else"])},
        optional={
            "text": LEAVES,
            "data": LEAVES,
            "mimeType": LEAVES,
            "uri": LEAVES,
            "name": LEAVES,
            "resource": st.fixed_dictionaries({}, optional={"uri": LEAVES, "text": LEAVES, "blob": LEAVES}),
        },
    ),
    max_size=3,
)


@pytest.mark.req("SE-03", "AG-24")
@settings(max_examples=FEWER)
@given(CONTENT, st.booleans() | st.none(), JSON)
def test_any_answer_of_an_mcp_server_is_text_or_a_tool_error(content: Any, failed: Any, structured: Any) -> None:
    from mcp_types import CallToolResult

    from treadle.tools.mcp.results import answer

    raw = {"content": content, "structuredContent": structured}
    try:
        result = CallToolResult.model_validate(raw if failed is None else {**raw, "isError": failed})
    except ValidationError:
        return  # the SDK refuses it before we see it
    with contextlib.suppress(ToolError):
        assert isinstance(answer("srv", result), str)


@pytest.mark.req("SE-03", "AG-24")
@settings(max_examples=FEWER)
@given(
    st.lists(
        st.tuples(
            st.text(max_size=80),
            st.none() | st.text(max_size=20),
            st.dictionaries(
                st.sampled_from(["type", "properties", "$ref", "required", "anyOf", "pattern"]), JSON, max_size=4
            ),
        ),
        max_size=3,
    )
)
def test_any_tools_that_an_mcp_server_offers_are_taken_or_left_out(tools: Any) -> None:
    from mcp_types import Tool

    from treadle.tools.mcp import MCPServer
    from treadle.tools.mcp.definitions import offered

    found = [
        Tool(name=name, description=text, input_schema={"type": "object", **schema}) for name, text, schema in tools
    ]
    offer = offered(MCPServer(name="srv", command="true"), found)
    annotate([RawCall("1", tool.name, {"a": 1}) for tool in offer.tools], offer.tools)
