"""A person's own function that acts."""

from __future__ import annotations

import threading

import anyio
import anyio.lowlevel
import pytest

from support.rounds import NotedContext
from treadle.core.errors import InvalidOutput
from treadle.effects.actors import FunctionActor
from treadle.ports.callback import ActorResult

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


def plain(context, feedback):
    return {"task": context.task, "feedback": feedback}


async def asynchronous(context, feedback):
    await anyio.lowlevel.checkpoint()
    return plain(context, feedback)


@pytest.mark.parametrize("function", [plain, asynchronous])
async def test_what_it_returns_is_the_output(function):
    actor = FunctionActor(function)
    assert await actor.act(NotedContext("act")) == ActorResult('{"task": "Fix it", "feedback": null}')
    again = await actor.act(NotedContext("act", feedback="ünï"))
    assert again == ActorResult('{"task": "Fix it", "feedback": "ünï"}')


async def test_it_may_say_itself_that_it_failed():
    said = ActorResult("null", "gave up")
    assert await FunctionActor(lambda context, feedback: said).act(NotedContext("act")) == said


@pytest.mark.parametrize(
    "output",
    [object(), {1, 2}, float("nan"), b"bytes", "\ud800", {(1,): 2}],
    ids=["object", "set", "nan", "bytes", "surrogate", "tuple key"],
)
async def test_what_is_no_json_value_is_a_typed_error(output):
    with pytest.raises(InvalidOutput, match="JSON"):
        await FunctionActor(lambda context, feedback: output).act(NotedContext("act"))


async def test_what_holds_itself_is_a_typed_error():
    knot: list = []
    knot.append(knot)
    with pytest.raises(InvalidOutput):
        await FunctionActor(lambda context, feedback: knot).act(NotedContext("act"))


async def test_a_synchronous_one_runs_in_a_thread_of_its_own():
    threads = []
    await FunctionActor(lambda context, feedback: threads.append(threading.current_thread())).act(NotedContext("act"))
    assert threads != [threading.current_thread()]
