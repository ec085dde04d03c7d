"""Calls as the local model writes them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.models.local.dialect import call_text, chat_messages, read_call
from treadle.models.local.request import ChatMessage, FunctionDef, NamedArguments, Part, PastCall, Tool
from treadle.models.local.schema import functions

OFFERED = functions(
    [
        Tool(function=FunctionDef(name=name, parameters={"properties": properties, "required": required}))
        for name, properties, required in (
            ("write", {"code": {"type": "string"}}, ["code"]),
            ("read", {"path": {"type": "string"}, "start": {"type": "integer"}}, ["path"]),
            ("set", {"level": {"type": "number"}, "on": {"type": "boolean"}, "mode": {"enum": [1, "1", None]}}, []),
            ("limit", {"n": {"type": "integer"}}, ["n"]),
            ("finish", {}, []),
        )
    ]
)
LINES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"))


@given(
    st.one_of(
        st.tuples(st.just("write"), st.fixed_dictionaries({"code": st.text()})),
        st.tuples(st.just("read"), st.fixed_dictionaries({"path": LINES}, optional={"start": st.integers()})),
        st.tuples(
            st.just("set"),
            st.fixed_dictionaries(
                {},
                optional={
                    "level": st.integers() | st.floats(allow_nan=False, allow_infinity=False),
                    "on": st.booleans(),
                    "mode": st.sampled_from(["1", None]),
                },
            ),
        ),
        st.tuples(st.just("limit"), st.fixed_dictionaries({"n": st.integers()})),
        st.tuples(st.just("finish"), st.just({})),
    )
)
def test_a_call_that_is_written_down_reads_as_the_same_call(call):
    name, arguments = call
    text = call_text(name, json.dumps(arguments), OFFERED)
    read = read_call(text, OFFERED)
    assert read is not None
    assert read[0] == name
    if arguments.get("mode") == "1":
        assert read[1].pop("mode") == 1  # a choice of 1 and "1" looks the same in text: the first is taken
        arguments = {key: value for key, value in arguments.items() if key != "mode"}
    assert read[1] == arguments


def test_code_is_shown_without_quotes_or_escapes():
    code = 'def f(x):\n    return "a" + x'
    assert call_text("write", json.dumps({"code": code})) == f"write\n{code}"


@pytest.mark.parametrize(
    "text",
    [
        "wri",
        "write",
        "read\n",
        "read\nstart: 3",
        "read\npath: a\nstart: ",
        "limit\nn: true",
        "set\nlevel: x",
        "finish\nx",
    ],
)
def test_a_call_that_was_cut_short_is_no_call(text):
    assert read_call(text, OFFERED) is None


def test_malformed_arguments_of_an_earlier_call_are_shown_as_they_are():
    assert call_text("write", '{"code": ', OFFERED) == 'write\n{"code": '


def test_the_model_sees_results_as_what_the_user_said_and_calls_as_its_own_words():
    messages = [
        ChatMessage(role="developer", content="Be brief."),
        ChatMessage(role="user", content=[Part(type="text", text="Write"), Part(type="text", text="f.")]),
        ChatMessage(role="assistant", tool_calls=[PastCall(function=NamedArguments(name="finish"))]),
        ChatMessage(role="tool", content="Done."),
        ChatMessage(role="assistant", content="So:", tool_calls=[PastCall(function=NamedArguments(name="finish"))] * 2),
    ]
    assert chat_messages(messages, OFFERED) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Write\nf."},
        {"role": "assistant", "content": "finish"},
        {"role": "user", "content": "Done."},
        {"role": "assistant", "content": "So:\n\nfinish\n\nfinish"},
    ]
