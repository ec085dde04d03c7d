"""A person's own function that judges."""

from __future__ import annotations

import functools
import threading

import anyio
import anyio.lowlevel
import pytest

from support.rounds import NotedContext
from treadle.core.errors import InvalidVerdict
from treadle.effects.checks import FunctionCheck
from treadle.ports.callback import Verdict, accept, reject

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


def plain(context, output):
    return accept() if output == {"n": context.round} else reject(f"not {output}")


async def asynchronous(context, output):
    await anyio.lowlevel.checkpoint()
    return plain(context, output)


class Judge:
    async def __call__(self, context, output):
        return plain(context, output)


class PlainJudge:
    def __call__(self, context, output):
        return asynchronous(context, output)


FUNCTIONS = [plain, asynchronous, Judge(), PlainJudge(), functools.partial(asynchronous)]


@pytest.mark.req("TC-14")
@pytest.mark.parametrize("function", FUNCTIONS, ids=["sync", "async", "object", "returns awaitable", "partial"])
async def test_its_verdict_is_the_verdict(function):
    check = FunctionCheck(function)
    assert await check.check(NotedContext(round=2), '{"n":2}') == accept()
    assert await check.check(NotedContext(round=2), "3") == Verdict(False, "not 3")


@pytest.mark.req("TC-14")
@pytest.mark.parametrize(
    "answer",
    [True, None, "accept", ("accept",), Verdict("yes"), Verdict(False, None), Verdict, object()],
    ids=["true", "none", "text", "tuple", "not a bool", "no text", "class", "object"],
)
async def test_anything_else_is_a_typed_error(answer):
    with pytest.raises(InvalidVerdict, match="must return accept"):
        await FunctionCheck(lambda context, output: answer).check(NotedContext(), "null")


async def test_a_synchronous_function_does_not_hold_up_the_event_loop():
    going, released = anyio.Event(), threading.Event()

    def waits(context, output):
        anyio.from_thread.run_sync(going.set)
        assert released.wait(30)
        return accept()

    async with anyio.create_task_group() as group:
        group.start_soon(FunctionCheck(waits).check, NotedContext(), "null")
        await going.wait()
        released.set()


async def test_a_synchronous_function_that_hangs_can_be_left_behind():
    released = threading.Event()
    with anyio.move_on_after(0.05) as scope:
        await FunctionCheck(lambda context, output: released.wait(30)).check(NotedContext(), "null")
    released.set()
    assert scope.cancelled_caught


async def test_what_it_raises_is_raised():
    with pytest.raises(ZeroDivisionError):
        await FunctionCheck(lambda context, output: 1 / 0).check(NotedContext(), "null")
