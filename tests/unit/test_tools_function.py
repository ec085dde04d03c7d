"""Plain functions as tools."""

from __future__ import annotations

import datetime as dt
import threading
from dataclasses import dataclass
from typing import Annotated, Literal

import anyio
import pytest
from pydantic import BaseModel, Field

from support.tools import call, context, refusal, use
from treadle.core.errors import DefinitionError, ToolError
from treadle.ports.model import RawCall
from treadle.ports.toolset import ToolContext, ToolOutput
from treadle.tools.function import FunctionTools, tool
from treadle.tools.validation import annotate


class Place(BaseModel):
    city: str
    zip: int | None = None


def weather(
    place: Place,
    day: dt.date,
    unit: Literal["C", "F"] = "C",
    hours: Annotated[int, Field(ge=1, le=24, description="How far ahead.")] = 3,
) -> str:
    """What the weather will be.

    By the hour.
    """
    return f"{place.city} {day:%d %b} {unit} {hours} {threading.current_thread() is threading.main_thread()}"


async def later(n: int) -> int:
    await anyio.lowlevel.checkpoint()
    return n + 1


def test_hints_and_docstring_become_the_definition():
    (definition,) = FunctionTools(weather).tools()
    assert definition.name == "weather"
    assert definition.description == "What the weather will be.\n\nBy the hour."
    assert definition.kind == "mutating"
    schema = definition.schema
    assert schema["required"] == ["place", "day"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["unit"]["enum"] == ["C", "F"]
    assert schema["properties"]["hours"]["maximum"] == 24
    assert schema["properties"]["hours"]["description"] == "How far ahead."
    assert "title" not in schema


def test_json_arguments_arrive_as_what_the_hints_say_in_a_thread_of_their_own():
    args = {"place": {"city": "Bonn"}, "day": "2026-05-01", "hours": 5}
    assert use(FunctionTools(weather), "weather", **args).content == "Bonn 01 May C 5 False"


def test_an_async_function_runs_on_the_event_loop():
    assert use(FunctionTools(later), "later", n=1).content == "2"


@pytest.mark.req("AG-15")
def test_calls_are_validated_against_the_schema_like_any_other():
    tools = FunctionTools(weather).tools()
    calls = annotate(
        [RawCall("1", "weather", {"place": {"city": 1}, "day": "2026-05-01"}), RawCall("2", "weather", {})], tools
    )
    assert [c.kind for c in calls] == ["invalid", "invalid"]
    assert "$.place.city" in calls[0].problem


def test_what_the_schema_cannot_say_is_an_argument_error():
    error = refusal(FunctionTools(weather), "weather", place={"city": "Bonn"}, day="2026-02-31")
    assert error.kind == "argument"
    assert "day" in str(error)


@dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", "text"),
        (None, "done"),
        (3, "3"),
        ([1], "[\n  1\n]"),
        (Point(1), '{\n  "x": 1\n}'),
        (Place(city="B"), '{\n  "city": "B",\n  "zip": null\n}'),
    ],
)
def test_what_it_returns_is_told(value, content):
    def give() -> object:
        return value

    assert use(FunctionTools(give), "give").content == content


def test_a_tool_output_is_taken_as_it_is():
    def give() -> ToolOutput:
        return ToolOutput("x", ("a.py",))

    assert use(FunctionTools(give), "give") == ToolOutput("x", ("a.py",))


def test_kind_and_name_can_be_said():
    (definition,) = FunctionTools(tool(later, kind="read", name="soon")).tools()
    assert (definition.name, definition.kind) == ("soon", "read")


def test_the_context_is_given_where_it_is_asked_for_and_not_shown():
    def pay(amount: int, context: ToolContext) -> str:
        return f"{amount} {context.key}"

    tools = FunctionTools(pay)
    assert list(tools.tools()[0].schema["properties"]) == ["amount"]

    async def main() -> ToolOutput:
        return await tools.run(call(tools, "pay", amount=3), context())

    assert anyio.run(main).content == f"3 {context().key}"


def test_a_tool_error_is_for_the_model_any_other_is_the_functions_own_fault():
    def fail(kind: str) -> None:
        raise ToolError("conflict", "taken") if kind == "tool" else RuntimeError("bug")

    assert refusal(FunctionTools(fail), "fail", kind="tool").kind == "conflict"
    with pytest.raises(RuntimeError, match="bug"):
        use(FunctionTools(fail), "fail", kind="x")


def no_hint(x):
    return x


def star(*args: int) -> None:
    pass


def stars(**kwargs: int) -> None:
    pass


def positional(x: int, /) -> None:
    pass


def opaque(x: threading.Lock) -> None:
    pass


def dangling(x: Missing) -> None:  # noqa: F821
    pass


@pytest.mark.parametrize("function", [no_hint, star, stars, positional, opaque, dangling])
def test_a_function_that_cannot_be_a_tool_is_a_definition_error_that_names_it(function):
    with pytest.raises(DefinitionError, match=function.__name__):
        FunctionTools(function)


def test_two_of_one_name_are_refused():
    with pytest.raises(DefinitionError, match="same name"):
        FunctionTools(later, tool(weather, name="later"))
