"""Toolsets around toolsets, and the tools that steer the conversation."""

from __future__ import annotations

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.tools import call, context, refusal, use
from treadle.core.errors import DefinitionError, ToolError
from treadle.core.events import Probe
from treadle.ports.model import ToolDef
from treadle.ports.toolset import ToolOutput, Toolset
from treadle.tools.builtin import ControlTools
from treadle.tools.builtin.control import excerpt
from treadle.tools.clip import clip
from treadle.tools.combine import CombinedTools
from treadle.tools.select import SelectedTools
from treadle.tools.verdict import VerdictTools


class Named(Toolset):
    """Tools of these names, which say who they are; keeps note of what it was asked."""

    def __init__(self, who: str, *names: str) -> None:
        self.who, self.asked = who, []
        self.offer(*names)

    def offer(self, *names: str) -> None:
        self.definitions = tuple(ToolDef(name, "", {"type": "object"}, "mutating") for name in names)

    def tools(self):
        return self.definitions

    async def run(self, call, context):
        return ToolOutput(f"{self.who}.{call.name}")

    async def prepare(self, call):
        self.asked.append(("prepare", call.name))
        return (Probe(path=self.who, before="", after="x"),)

    async def probe(self, call, probes):
        self.asked.append(("probe", call.name))
        return "done"

    async def close(self):
        self.asked.append(("close", ""))


# ---- combined


def test_combined_tools_are_sorted_and_each_call_goes_to_its_owner():
    one, two = Named("one", "c", "a"), Named("two", "b")
    both = CombinedTools(one, two)
    assert [tool.name for tool in both.tools()] == ["a", "b", "c"]
    assert [use(both, name).content for name in "abc"] == ["one.a", "two.b", "one.c"]
    assert anyio.run(both.prepare, call(both, "b"))[0].path == "two"
    assert anyio.run(both.probe, call(both, "c"), ()) == "done"
    assert ("probe", "c") in one.asked
    assert ("prepare", "b") in two.asked


def test_the_combined_list_is_the_same_object_while_nothing_changes():
    both = CombinedTools(Named("one", "a"), Named("two", "b"))
    assert both.tools() is both.tools()


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(DefinitionError, match="a"):
        CombinedTools(Named("one", "a"), Named("two", "b", "a"))


def test_tools_that_come_and_go_are_followed():
    changing = Named("one", "a")
    both = CombinedTools(changing, Named("two", "b"))
    changing.offer("a", "late")
    assert [tool.name for tool in both.tools()] == ["a", "b", "late"]
    assert use(both, "late").content == "one.late"
    assert refusal(both, "gone").kind == "not-found"


def test_closing_closes_each_even_if_one_fails():
    class Broken(Named):
        async def close(self):
            raise ToolError("execution", "stuck")

    one, three = Named("one", "a"), Named("three", "c")
    with pytest.raises(ToolError, match="stuck"):
        anyio.run(CombinedTools(one, Broken("two", "b"), three).close)
    assert one.asked == three.asked == [("close", "")]


# ---- selected


def test_only_selected_tools_are_offered_and_can_be_called():
    inner = Named("one", "a", "b", "c")
    some = SelectedTools(inner, only=("a", "b"), without=("b",))
    assert [tool.name for tool in some.tools()] == ["a"]
    assert use(some, "a").content == "one.a"
    for name in ("b", "c"):
        assert refusal(some, name).kind == "permission"
        with pytest.raises(ToolError):
            anyio.run(some.prepare, call(inner, name))
    assert some.tools() is some.tools()
    anyio.run(some.close)
    assert inner.asked[-1] == ("close", "")


def test_all_but_some():
    assert [tool.name for tool in SelectedTools(Named("one", "a", "b", "c"), without=("b",)).tools()] == ["a", "c"]


# ---- control


def test_the_engines_own_tools_are_not_run():
    for name in ("ask_person", "finish"):
        assert refusal(ControlTools(), name).kind == "execution"
    assert refusal(VerdictTools(), "verdict", accept=True, feedback="").kind == "execution"


STORED = "\n".join(f"line {number}" for number in range(1, 1001))


def read_output(**args) -> str:
    async def output(call_id: str) -> str:
        if call_id != "c9":
            raise ToolError("not-found", f"no call {call_id!r}")
        return STORED

    async def main() -> str:
        tools = ControlTools()
        return (await tools.run(call(tools, "read_output", **args), context(output=output))).content

    return anyio.run(main)


@pytest.mark.req("AG-16", "AG-23")
def test_read_output_gives_ranges_and_searches_of_a_stored_output():
    assert read_output(call_id="c9", start=7, end=9) == "7: line 7\n8: line 8\n9: line 9"
    assert read_output(call_id="c9", start=999) == "999: line 999\n1000: line 1000"
    assert read_output(call_id="c9", search="LINE 77") == "77: line 77\n" + "\n".join(
        f"{n}: line {n}" for n in range(770, 780)
    )
    assert read_output(call_id="c9", start=100, end=200, search="77") == "177: line 177"
    assert read_output(call_id="c9", end=3, search="zzz") == "[no line of 1-3 holds 'zzz']"


@pytest.mark.req("AG-16")
def test_what_does_not_fit_is_said_with_where_to_read_on():
    lines = read_output(call_id="c9").splitlines()
    assert lines[-2:] == ["400: line 400", "[and 600 more of 1,000 lines: read on from line 401]"]
    assert read_output(call_id="c9", start=401).splitlines()[0] == "401: line 401"


def test_one_line_that_is_too_long_is_clipped():
    shown = excerpt("x" * 1_000_000 + "\nnext", start=None, end=None, search=None)
    assert len(shown) < 41_000
    assert "[line clipped]" in shown
    assert "read on from line 2" in shown


@pytest.mark.parametrize("args", [{"start": 1001}, {"start": 5, "end": 4}])
def test_lines_that_are_not_there_are_told(args):
    with pytest.raises(ToolError, match="1,000 lines"):
        read_output(call_id="c9", **args)


def test_an_unknown_call_is_not_found():
    with pytest.raises(ToolError, match="c1"):
        read_output(call_id="c1")


# ---- clip


@pytest.mark.req("AG-16")
def test_a_clipped_output_has_its_ends_and_says_how_much_is_missing_and_how_to_get_it():
    text = "".join(f"line {number}\n" for number in range(10_000))
    shown = clip(text, 2000, "c7")
    assert shown.startswith("line 0\nline 1\n")
    assert shown.endswith("\nline 9998\nline 9999\n")
    assert "read_output(call_id='c7')" in shown
    assert len(shown) <= 2000
    left_out = [line for line in shown.splitlines() if line.startswith("[...")]
    assert len(left_out) == 1
    kept = [line for line in shown.splitlines() if line.startswith("line ")]
    assert f"({10_000 - len(kept):,} lines)" in left_out[0]
    assert set(kept) <= set(text.splitlines())


def test_what_fits_is_left_as_it_is():
    assert clip("x" * 100, 100, "c") == "x" * 100


@given(text=st.text(st.sampled_from("aé\n€😀"), max_size=600), limit=st.integers(1, 500))
def test_any_clip_is_a_head_and_a_tail_of_the_text_with_an_exact_count(text, limit):
    shown = clip(text, limit, "c1")
    if len(text) <= limit:
        assert shown == text
        return
    head, _, rest = shown.partition("[... ")
    size, _, rest = rest.partition(" bytes (")
    tail = rest.partition(" ...]\n")[2]
    assert text.endswith(tail)
    missing = len(text.encode()) - len(tail.encode()) - int(size.replace(",", ""))
    assert head.encode()[:missing] == text.encode()[:missing]
    assert head.encode()[missing:] in (b"", b"\n")  # a line end where the text had none
    assert len(shown) <= max(limit, 140)
