"""Calls are checked against the tools' schemas before any of them runs."""

from __future__ import annotations

import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.ports.model import RawCall, ToolDef
from treadle.tools.builtin import ControlTools, WorkspaceTools
from treadle.tools.schemas import left_out
from treadle.tools.validation import annotate, problems_of
from treadle.tools.verdict import VerdictTools

READ = ToolDef(
    "read_file",
    "",
    {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "start": {"type": "integer", "minimum": 1},
            "tags": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
        },
        "required": ["path"],
        "additionalProperties": False,
    },
    "read",
)
WRITE = ToolDef("write_file", "", {"type": "object", "properties": {"text": {"type": "string"}}}, "mutating")
TOOLS = (READ, WRITE)


def problems(args, name="read_file"):
    return [(problem.kind, problem.path) for problem in problems_of(RawCall("1", name, args), TOOLS)]


@pytest.mark.req("AG-15")
@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({}, [("missing", "$.path")]),
        ("", [("missing", "$.path")]),
        ({"path": 3}, [("mistyped", "$.path")]),
        ({"path": "a", "start": True}, [("mistyped", "$.start")]),
        ({"path": "a", "start": 0}, [("refused", "$.start")]),
        ({"path": "a", "strat": 1, "x": 2}, [("extra", "$.strat"), ("extra", "$.x")]),
        ({"path": "a", "tags": [{}, {"name": 5}]}, [("mistyped", "$.tags[1].name")]),
        ({"start": "1"}, [("mistyped", "$.start"), ("missing", "$.path")]),
        ('{"path": "a"', [("malformed-json", "$")]),
        ("[" * 100_000, [("malformed-json", "$")]),
        ('["a"]', [("mistyped", "$")]),
        ({"path": "a"}, []),
        ({"path": "a", "start": 3.0}, []),
        ('{"path": "a"}', []),
    ],
)
def test_what_is_wrong_is_typed_and_has_its_path(args, expected):
    assert sorted(problems(args)) == sorted(expected)


@pytest.mark.req("AG-15")
def test_an_unknown_tool_is_told_with_the_close_names():
    (close,) = problems_of(RawCall("1", "raed_file", {}), TOOLS)
    assert close.kind == "unknown-tool"
    assert "Did you mean read_file" in close.message
    (far,) = problems_of(RawCall("1", "zzz", {}), TOOLS)
    assert "There are: read_file, write_file" in far.message


@pytest.mark.req("AG-15")
def test_each_call_of_a_batch_gets_its_tools_kind_or_is_invalid_with_the_problem():
    raw = [
        RawCall("1", "read_file", {"path": "a"}),
        RawCall("1", "write_file", {}),
        RawCall("3", "read_file", {"a": 1}),
    ]
    first, second, third = annotate(raw, TOOLS)
    assert [(c.id, c.name, c.kind) for c in (first, second)] == [
        ("1", "read_file", "read"),
        ("1", "write_file", "mutating"),
    ]
    assert (first.args, first.problem) == ({"path": "a"}, "")
    assert third.kind == "invalid"
    assert third.args == {"a": 1}
    assert "$.path" in third.problem
    assert "$.a" in third.problem


def test_malformed_arguments_are_kept_as_they_came():
    (call,) = annotate([RawCall("1", "read_file", '{"path": }')], TOOLS)
    assert (call.kind, call.args) == ("invalid", '{"path": }')
    assert "line 1 column 10" in call.problem


def test_arguments_that_came_as_text_but_are_json_are_taken():
    (call,) = annotate([RawCall("1", "read_file", '{"path": "a"}')], TOOLS)
    assert (call.kind, call.args) == ("read", {"path": "a"})


def test_the_problem_of_a_huge_argument_is_short():
    (call,) = annotate([RawCall("1", "read_file", {"path": ["x" * 1_000_000], "y" * 1_000_000: 1})], TOOLS)
    assert len(call.problem) < 2000
    assert 'is not of type "string"' in call.problem


def test_many_problems_are_counted_rather_than_listed():
    (call,) = annotate([RawCall("1", "read_file", {"path": "a"} | {f"x{n}": 1 for n in range(50)})], TOOLS)
    assert "45 more" in call.problem


@pytest.mark.parametrize("value", [{1: 2}, {"path": object()}, {"path": {1, 2}}, {"path": b"x"}])
def test_what_is_no_json_at_all_is_a_problem_not_a_crash(value):
    (call,) = annotate([RawCall("1", "read_file", value)], TOOLS)
    assert call.kind == "invalid"
    assert call.problem


def test_a_pattern_that_the_validator_refuses_is_reported_and_left_out(caplog):
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": "(?P<x>a)(?P=x)"}, "b": {"type": "integer"}},
    }
    tools = (ToolDef("t", "", schema, "read"),)
    with caplog.at_level(logging.WARNING):
        calls = annotate(
            [RawCall("1", "t", {"a": "zz", "b": 1}), RawCall("2", "t", {"a": 1}), RawCall("3", "t", {"b": "x"})], tools
        )
    assert [call.kind for call in calls] == ["read", "invalid", "invalid"]
    assert len(left_out(schema)) == 1
    assert "properties.a.pattern" in left_out(schema)[0]
    assert "properties.a.pattern" in caplog.text
    assert schema["properties"]["a"]["pattern"] == "(?P<x>a)(?P=x)"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "objekt", "properties": {"a": {"type": "integer"}}},
        {"$schema": "http://example.com/none", "properties": {"a": {"type": "integer"}}},
        {"patternProperties": {"(a": {}}, "properties": {"a": {"type": "integer"}}},
    ],
)
def test_of_a_broken_schema_the_rest_is_used(schema):
    tools = (ToolDef("t", "", schema, "read"),)
    assert left_out(schema)
    assert [c.kind for c in annotate([RawCall("1", "t", {"a": 1}), RawCall("2", "t", {"a": "x"})], tools)] == [
        "read",
        "invalid",
    ]


def test_a_schema_that_points_elsewhere_is_never_fetched():
    schema = {"$ref": "http://127.0.0.1:9/schema.json"}
    assert "etrieval is disabled" in left_out(schema)[0]
    assert annotate([RawCall("1", "t", {"x": 1})], (ToolDef("t", "", schema, "read"),))[0].kind == "read"


def test_an_expression_that_explodes_does_not_hang():
    schema = {"properties": {"a": {"pattern": "^(?=(a+)+$)b"}}}
    (call,) = annotate([RawCall("1", "t", {"a": "a" * 5000})], (ToolDef("t", "", schema, "read"),))
    assert call.kind == "invalid"


def test_two_tools_with_equal_ids_over_time_do_not_share_a_validator():
    """Definitions come and go, and ids of objects are used again."""
    for number in range(3000):
        schema = {"properties": {"a": {"const": number}}}
        tools = (ToolDef("t", "", schema, "read"),)
        assert [c.kind for c in annotate([RawCall("1", "t", {"a": number}), RawCall("2", "t", {"a": -1})], tools)] == [
            "read",
            "invalid",
        ]
        del schema, tools


@pytest.mark.req("AG-23")
def test_the_built_in_tools_have_these_names_arguments_and_kinds(tmp_path):
    tools = (*WorkspaceTools(tmp_path).tools(), *ControlTools().tools())
    found = {
        tool.name: (
            tool.kind,
            tool.schema["required"],
            sorted(tool.schema["properties"].keys() - set(tool.schema["required"])),
        )
        for tool in tools
    }
    assert found == {
        "ask_person": ("ask", ["question"], ["choices"]),
        "edit_file": ("mutating", ["path", "old", "new"], []),
        "finish": ("finish", ["summary"], []),
        "git_diff": ("read", [], ["path"]),
        "git_status": ("read", [], []),
        "glob": ("read", ["pattern"], []),
        "list_dir": ("read", [], ["path"]),
        "read_file": ("read", ["path"], ["end", "start"]),
        "read_output": ("read", ["call_id"], ["end", "search", "start"]),
        "run_command": ("mutating", ["command"], ["timeout_s"]),
        "search": ("read", ["pattern"], ["path"]),
        "write_file": ("mutating", ["path", "text"], []),
    }
    assert all(tool.schema["additionalProperties"] is False for tool in (*tools, *VerdictTools().tools()))
    assert all(not left_out(tool.schema) for tool in tools)
    names = [tool.name for tool in WorkspaceTools(tmp_path).tools()]
    assert names == sorted(names)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.req("SE-03")
@given(
    st.dictionaries(st.sampled_from(["path", "start", "tags", "x"]) | st.text(max_size=5), JSON, max_size=4) | st.text()
)
def test_any_arguments_are_either_taken_or_have_a_problem(args):
    (call,) = annotate([RawCall("1", "read_file", args)], TOOLS)
    assert (call.kind == "read") == (not problems_of(RawCall("1", "read_file", args), TOOLS))
    assert bool(call.problem) == (call.kind == "invalid")
    if call.kind == "read":
        assert isinstance(call.args["path"], str)
        assert call.args.keys() <= {"path", "start", "tags"}


@given(st.dictionaries(st.text(max_size=4), JSON, max_size=3))
def test_text_that_is_json_is_judged_like_the_json_itself(args):
    assert problems(json.dumps(args)) == problems(args)
