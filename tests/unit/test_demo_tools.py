"""The demo's tools: what they offer at each moment, what they refuse, and what a killed run finds again."""

from __future__ import annotations

import pytest

from treadle.core.errors import ToolError
from treadle.core.messages import ToolCall
from treadle.demo.state import load, next_round, note
from treadle.demo.toolset import KitTools
from treadle.demo.workspace import lay_out
from treadle.ports.model import RawCall
from treadle.ports.toolset import ToolContext
from treadle.tools.validation import annotate

pytestmark = pytest.mark.anyio
ALL = ["is_adult", "full_name", "average", "is_palindrome", "squares", "evens", "without_spaces", "unique"]


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def folder(tmp_path):
    lay_out(tmp_path / "kit")
    return tmp_path / "kit"


class Hand:
    """Calls tools as the engine does: validated, each under a key of its own, on a toolset that remembers nothing."""

    def __init__(self, folder):
        self.folder, self.calls = folder, 0

    async def __call__(self, tool, /, key=None, **args):
        (call,) = annotate([RawCall("id", tool, args)], KitTools(self.folder).tools())
        assert call.kind != "invalid", call.problem
        self.calls += 1
        context = ToolContext(key=key or f"key-{self.calls}", started=lambda *_: None, output=None)
        return (await KitTools(self.folder).run(call, context)).content

    async def write(self, head, expression, **more):
        return await self("write_function", code=f"def {head}:\n    return {expression}", **more)


@pytest.fixture
def hand(folder):
    return Hand(folder)


def _offer(folder):
    (tool,) = KitTools(folder).tools()
    return tool


def _choices(folder):
    return _offer(folder).schema["properties"]["name"]["enum"]


async def test_every_function_without_a_body_is_to_be_read_first(folder):
    assert (_offer(folder).name, _offer(folder).kind, _choices(folder)) == ("read_function", "idempotent", ALL)


async def test_what_was_read_is_what_can_be_written(folder, hand):
    said = await hand("read_function", name="squares")
    assert said == "Write a Python function squares(n). List of the squares of 1..n."
    tool = _offer(folder)
    assert (tool.name, tool.kind) == ("write_function", "mutating")
    fits, other, two_lines = annotate(
        [
            RawCall("", "write_function", {"code": code})
            for code in (
                "def squares(n):\n    return [n]",
                "def evens(numbers):\n    return numbers",
                "def squares(n):\n    return n\nimport os",
            )
        ],
        [tool],
    )
    assert [fits.kind, other.kind, two_lines.kind] == ["mutating", "invalid", "invalid"]


async def test_a_written_function_is_in_the_file_and_no_longer_to_be_written(folder, hand):
    await hand("read_function", name="full_name")
    assert await hand.write("full_name(first, last)", 'first + " " + last') == "Written."
    assert load(folder).kit["full_name"].expression == 'first + " " + last'
    assert load(folder).kit["full_name"].doc == "Joins first and last with a space."
    assert _choices(folder) == [name for name in ALL if name != "full_name"]


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("sum(numbers", "not a Python expression"),
        ("(await numbers)", "not a Python expression"),
        ("numbers = 3", "not a Python expression"),
        ("(" * 400 + ")" * 400, "not a Python expression"),
        ("average(numbers)", "must not call itself"),
        ("mean(numbers)", "mean is not known here"),
        ("open('x').read()", "open is not allowed here"),
        ("__import__('os')", "__import__ is not allowed here"),
        ("numbers.__class__", "__class__ is not allowed here"),
        ("(lambda _: eval)(0)", "eval is not allowed here"),
    ],
)
async def test_what_is_no_expression_or_reaches_beyond_its_arguments_is_refused(folder, hand, expression, why):
    await hand("read_function", name="average")
    before = (folder / "kit.py").read_bytes()
    assert why in await hand.write("average(numbers)", expression)
    assert (folder / "kit.py").read_bytes() == before
    assert _offer(folder).name == "write_function"  # it may try again


@pytest.mark.parametrize(
    "expression",
    ["sum(x for x in numbers) / len(numbers)", "(lambda xs: sum(xs))(numbers)", "[y := 1, y][0]", "max(numbers) is 3"],
)
async def test_what_uses_arguments_own_names_and_harmless_builtins_is_written(hand, expression):
    await hand("read_function", name="average")
    assert await hand.write("average(numbers)", expression) == "Written."


async def test_after_three_refusals_the_function_is_left_for_the_next_round(folder, hand):
    await hand("read_function", name="unique")
    for _ in range(3):
        assert (await hand.write("unique(items)", "nothing")).startswith("Refused")
    assert "unique" not in _choices(folder)
    note(folder, next_round(load(folder), ["unique"]))
    assert _choices(folder) == ["unique"]


async def test_a_refusal_that_is_repeated_after_a_crash_counts_once(folder, hand):
    await hand("read_function", name="unique")
    for _ in range(5):
        await hand.write("unique(items)", "nothing", key="the same")
    assert _offer(folder).name == "write_function"


async def test_what_a_check_found_wrong_is_refused_from_then_on(folder, hand):
    await hand("read_function", name="evens")
    await hand.write("evens(numbers)", "numbers")
    note(folder, next_round(load(folder), ["evens"]))
    note(folder, next_round(load(folder), ["evens"]))
    await hand("read_function", name="evens")
    assert "you wrote this before" in await hand.write("evens(numbers)", "numbers")


async def test_when_nothing_is_left_to_write_finishing_is_all_that_is_offered(folder, hand):
    note(folder, next_round(load(folder), ["is_adult"]))
    await hand("read_function", name="is_adult")
    await hand.write("is_adult(age)", "age >= 18")
    tool = _offer(folder)
    assert (tool.name, tool.kind, tool.schema["properties"]) == ("finish", "finish", {})


async def test_a_read_that_runs_again_after_a_crash_changes_nothing(folder, hand):
    first = await hand("read_function", name="evens")
    before = _offer(folder)
    call = ToolCall(id="id", name="read_function", args={"name": "evens"})
    again = await KitTools(folder).run(call, ToolContext(key="k", started=lambda *_: None, output=None))
    assert (again.content, _offer(folder)) == (first, before)


async def test_a_look_after_a_crash_tells_whether_a_write_happened(folder, hand):
    await hand("read_function", name="is_adult")
    code = {"code": "def is_adult(age):\n    return age >= 18"}
    call = ToolCall(id="id", name="write_function", args=code, kind="mutating")
    probes = await KitTools(folder).prepare(call)
    assert [probe.path for probe in probes] == ["kit.py"]
    assert await KitTools(folder).probe(call, probes) == "not-started"
    await hand("write_function", **code)
    assert await KitTools(folder).probe(call, probes) == "done"
    (folder / "kit.py").write_text("def is_adult(age):\n    return False\n")
    assert await KitTools(folder).probe(call, probes) == "unknown"


async def test_a_write_that_will_be_refused_announces_no_change(folder, hand):
    await hand("read_function", name="is_adult")
    call = ToolCall(id="id", name="write_function", args={"code": "def is_adult(age):\n    return years"})
    assert await KitTools(folder).prepare(call) == ()


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("read_function", {"name": "other"}),
        ("read_function", {}),
        ("write_function", {"code": "def is_adult(age):\n    return True"}),
        ("write_function", {"code": "def evens(numbers):\n    return 1\n"}),
        ("write_function", "{"),
        ("other", {}),
    ],
)
async def test_a_call_that_does_not_fit_the_moment_is_an_error_with_a_class(folder, hand, name, args):
    await hand("read_function", name="evens")
    with pytest.raises(ToolError) as caught:
        await KitTools(folder).run(
            ToolCall(id="id", name=name, args=args), ToolContext(key="k", started=lambda *_: None, output=None)
        )
    assert caught.value.kind in ("argument", "not-found")


async def test_nothing_but_the_kit_and_the_hidden_notes_is_left_in_the_folder(folder, hand):
    await hand("read_function", name="is_adult")
    await hand.write("is_adult(age)", "age >= 18")
    assert sorted(path.name for path in folder.iterdir()) == [".gitignore", ".kit-state.json", "kit.py", "test_kit.py"]
    assert ".kit-state.json*" in (folder / ".gitignore").read_text().splitlines()
