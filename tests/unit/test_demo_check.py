"""The demo's check, on the kit's own tests, and the conversation that its rounds are made of."""

from __future__ import annotations

import pytest

from treadle.core.messages import ModelResponded, Prompted, ToolsFinished
from treadle.demo import conversation
from treadle.demo.check import KitCheck
from treadle.demo.kit_file import with_body
from treadle.demo.state import load
from treadle.demo.toolset import KitTools
from treadle.demo.workspace import lay_out
from treadle.ports.callback import RoundContext

pytestmark = pytest.mark.anyio
RIGHT = {
    "is_adult": "age >= 18",
    "full_name": "f'{first} {last}'",
    "average": "sum(numbers) / len(numbers)",
    "is_palindrome": "text == text[::-1]",
    "squares": "[i * i for i in range(1, n + 1)]",
    "evens": "[number for number in numbers if number % 2 == 0]",
    "without_spaces": "text.replace(' ', '')",
    "unique": "sorted(set(items))",
}


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def folder(tmp_path):
    lay_out(tmp_path / "kit")
    return tmp_path / "kit"


class Round(RoundContext):
    """Remembers which process groups were recorded."""

    def __init__(self):
        self.groups = []

    def started(self, pgid, birth):
        self.groups.append(pgid)

    def report_usage(self, usage):
        raise AssertionError("the check pays for nothing")

    def report_usage_once(self, receipt, usage):
        raise AssertionError("the check pays for nothing")

    async def intend(self, receipt, reserve):
        raise AssertionError("the check pays for nothing")

    async def checkpoint(self):
        raise AssertionError("the check has nothing to make durable")


def _write(folder, **bodies):
    for name, expression in bodies.items():
        standing = load(folder)
        (folder / "kit.py").write_text(with_body(standing.source, standing.kit[name], expression))


async def _check(folder, **more):
    return await KitCheck(folder, **more).check(Round(), "")


async def test_a_kit_without_bodies_fails_in_every_function(folder):
    verdict = await _check(folder)
    assert (verdict.accepted, verdict.feedback) == (False, f"Failing: {', '.join(RIGHT)}.")


async def test_a_right_kit_is_accepted(folder):
    _write(folder, **RIGHT)
    verdict = await _check(folder)
    assert verdict.accepted
    assert verdict.evidence.startswith("python -B -m unittest -q: exit 0\n")


async def test_feedback_names_what_fails_and_the_next_round_offers_just_that(folder):
    _write(folder, **RIGHT | {"evens": "numbers", "unique": "list(set(items))"})
    verdict = await _check(folder)
    assert verdict.feedback == "Failing: evens, unique."
    assert "[1, 2, 3, 4] != [2, 4]" in verdict.evidence
    (tool,) = KitTools(folder).tools()
    assert tool.schema["properties"]["name"]["enum"] == ["evens", "unique"]
    assert load(folder).notes.tried == {"evens": ("numbers",), "unique": ("list(set(items))",)}


async def test_a_check_that_runs_again_after_a_crash_finds_and_notes_the_same(folder):
    _write(folder, **RIGHT | {"evens": "numbers"})
    first, noted = (await _check(folder)).feedback, load(folder).notes
    assert ((await _check(folder)).feedback, load(folder).notes) == (first, noted)


async def test_tests_that_cannot_even_start_blame_every_function(folder):
    (folder / "test_kit.py").write_text("import nothing_of_the_kind\n")
    assert (await _check(folder)).feedback == f"Failing: {', '.join(RIGHT)}."


async def test_tests_that_do_not_end_are_ended_and_leave_nothing_behind(folder):
    _write(folder, evens="[1 for _ in iter(int, 1)]")
    verdict = await _check(folder, timeout_s=0.5)
    assert not verdict.accepted
    assert verdict.evidence.startswith("python -B -m unittest -q: ran out of time")


async def test_the_process_group_of_the_tests_is_recorded(folder):
    context = Round()
    await KitCheck(folder).check(context, "")
    assert len(context.groups) == 1


async def test_the_worked_example_is_a_whole_conversation_about_other_functions():
    messages = conversation.examples()
    assert isinstance(messages[0], Prompted)
    assert messages[0].text == conversation.TASK
    for said, answered in zip(messages[1::2], messages[2::2], strict=True):
        assert isinstance(said, ModelResponded)
        assert isinstance(answered, ToolsFinished)
        assert [call.id for call in said.calls] == [result.id for result in answered.results]
        assert not any(name in str(said.calls[0].args) for name in RIGHT)
