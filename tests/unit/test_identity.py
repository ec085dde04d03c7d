"""In which words a changed definition is refused."""

from __future__ import annotations

from typing import Any

import pytest

from support.places import Place, X
from treadle.core.errors import DefinitionChanged, DefinitionError, InputError
from treadle.ports.callback import accept
from treadle.spec.definitions import Agent, Loop
from treadle.spec.workflows import ApprovalTask, Asks, LoopTask, RunTask, Task, Workflow
from treadle.testing import ScriptedModel


async def one(ctx: Any) -> None:
    raise RuntimeError("no")


async def other(ctx: Any) -> None:
    raise RuntimeError("no")


async def attempt(ctx: Any, feedback: Any) -> None: ...


async def check(ctx: Any, candidate: Any) -> Any: ...


async def sure(ctx: Any) -> bool:
    return True


async def works(ctx: Any) -> str:
    return "done"


def act(ctx: Any, feedback: Any) -> str:
    return "draft"


def loop(**options: Any) -> Loop:
    return Loop(name="l", act=act, evaluate=lambda ctx, value: accept(), **options)


def agent(instructions: str) -> Loop:
    model = ScriptedModel([])
    return Loop(name="l", act=Agent(model=model, instructions=instructions), evaluate=lambda ctx, value: accept())


LONG = "This is what has to be approved before anything at all is shipped to anybody"
A, B = Task("a", one), Task("b", one, after=("a",))


def flow(*tasks: Any, **options: Any) -> Workflow:
    return Workflow("w", tasks, **options)


@pytest.mark.req("TC-25", "FR-25")
@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        (flow(A), flow(A, B), "task b was added. Restore it, or start it anew"),
        (flow(A, B), flow(A), "task b was removed. Restore it, or start it anew"),
        (
            flow(A, B, Task("c", one, ("b",))),
            flow(A, B, Task("c", one, ("a", "b"))),
            "task c: what it comes after was b, is a and b",
        ),
        (flow(A, B), flow(A, Task("b", one)), "task b: what it comes after was a, is none"),
        (
            flow(A),
            flow(Task("a", other)),
            f"task a: perform was one, is other. Restore it, or adopt the change: treadle resume {X} --adopt",
        ),
        (flow(A), flow(A, version="2"), "version was 1, is 2"),
        (flow(A), flow(Task("a", one, condition=sure)), "task a: condition was none, is sure"),
        (flow(A), flow(Task("a", one, interaction=Asks())), "task a: whether it asks people was none, is yes"),
        (
            flow(A),
            flow(LoopTask("a", attempt, check, 1)),
            "task a: attempt was none, is attempt, check was none, is check, its kind was Task, is LoopTask, perform was one, is none",
        ),
        (
            flow(A, ApprovalTask("g", "Ship?", ("a",))),
            flow(A, ApprovalTask("g", "Go?", ("a",))),
            "task g: prompt was Ship?, is Go?",
        ),
        (
            flow(A, ApprovalTask("g", "Ship?", ("a",))),
            flow(A, ApprovalTask("g", LONG, ("a",))),
            "task g: prompt changed",
        ),
        (
            flow(A, RunTask("r", loop(), "x", ("a",))),
            flow(A, RunTask("r", loop(), "y", ("a",))),
            'task r: input was "x", is "y"',
        ),
        (
            flow(A, RunTask("r", agent("So"), "x", ("a",))),
            flow(A, RunTask("r", agent("Thus"), "x", ("a",))),
            "task r: what it runs (act prompt changed)",
        ),
        (
            flow(A, RunTask("r", flow(A), None, ("a",))),
            flow(A, RunTask("r", flow(Task("a", other)), None, ("a",))),
            "task r: what it runs (task a: perform was one, is other)",
        ),
        (
            flow(A, RunTask("r", loop(), "x", ("a",))),
            flow(A, RunTask("r", flow(A), None, ("a",))),
            "(act was removed; evaluate was removed; input schema was removed; protect was removed; task a was added; version",
        ),
    ],
)
def test_what_has_changed_is_told_in_words_before_anything_runs(
    tmp_path: Any, before: Workflow, now: Workflow, said: str
) -> None:
    place = Place("memory", tmp_path)
    assert place.run(before).status == "failed"
    with pytest.raises(DefinitionChanged) as refused:
        place.resume(now, retry_incomplete=True)
    assert said in str(refused.value)
    assert f"The definition has changed since {X} was started: " in str(refused.value)


@pytest.mark.req("TC-25")
def test_another_graph_inside_is_not_adopted_either(tmp_path: Any) -> None:
    place = Place("memory", tmp_path)

    def whole(*tasks: Any) -> Workflow:
        return flow(RunTask("middle", flow(RunTask("inner", flow(*tasks)))))

    place.run(whole(A))
    with pytest.raises(DefinitionChanged, match=r"\(task b was added\)\)\. Restore it, or start it anew"):
        place.resume(whole(A, B), retry_incomplete=True)
    with pytest.raises(InputError, match="start it anew"):
        place.resume(whole(A, B), retry_incomplete=True, adopt=True)


def test_the_command_names_a_store_that_is_not_the_usual_one() -> None:
    refusal = DefinitionChanged("x1", ["act"], ["act changed"]).with_store("sqlite:///a b.db")
    assert str(refusal).endswith("adopt the change: treadle resume x1 --adopt --store 'sqlite:///a b.db'")
    assert "--adopt" not in str(
        DefinitionChanged("x1", ["task a"], ["task a was added"], adoptable=False).with_store("s")
    )


@pytest.mark.req("TC-25")
def test_an_adopted_definition_is_adopted_by_what_runs_inside(tmp_path: Any) -> None:
    place = Place("memory", tmp_path)

    def whole(work: Any) -> Workflow:
        return flow(RunTask("middle", flow(RunTask("inner", flow(Task("a", work))))))

    assert place.run(whole(one)).status == "failed"
    with pytest.raises(DefinitionChanged, match=r"what it runs \(task inner: what it runs \(task a: perform was one"):
        place.resume(whole(works), retry_incomplete=True)
    assert place.resume(whole(works), retry_incomplete=True, adopt=True).status == "done"


@pytest.mark.req("TC-25")
@pytest.mark.parametrize(
    ("task", "said"),
    [
        (RunTask("r", loop()), "r: The task is empty"),
        (RunTask("r", flow(A), float("nan")), "r: input: JSON has no nan"),
        (RunTask("r", flow(A), {1: 2}), "r: "),
    ],
)
def test_an_input_that_cannot_be_taken_is_refused_before_anything_runs(tmp_path: Any, task: RunTask, said: str) -> None:
    with pytest.raises(DefinitionError, match=said):
        Place("memory", tmp_path).run(flow(A, task))
