"""Keys of writes: the first answer again, a failure forgotten, and nothing done twice where it is not known whether it was done."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import anyio
import pytest

from treadle.server.once import FILE, Once
from treadle.server.problems import Problem
from treadle.server.schemas import ActedOut
from treadle.server.wishes import PinIn

BODY = PinIn(seen=3)


def _answer(seq: int) -> ActedOut:
    return ActedOut(execution_id="a", seq=seq, status="running", code="", given=False)


@pytest.mark.req("SV-04")
@pytest.mark.parametrize("repeatable", [False, True])
def test_what_a_service_began_before_it_was_killed_is_not_done_again_unseen(tmp_path: Path, repeatable: bool) -> None:
    done: list[int] = []

    async def act(killed: Path) -> ActedOut:
        done.append(len(done))
        if not killed.exists():  # noqa: ASYNC240
            killed.mkdir()  # noqa: ASYNC240
            shutil.copy(tmp_path / FILE, killed / FILE)  # what a kill at this moment leaves
        return _answer(len(done))

    async def test() -> None:
        doing = partial(act, tmp_path / "killed")
        first = await Once(tmp_path, "store").run("k", "pin", BODY, doing, ActedOut, repeatable=repeatable)
        assert await Once(tmp_path, "store").run("k", "pin", BODY, doing, ActedOut, repeatable=repeatable) == first
        assert len(done) == 1
        again = Once(tmp_path / "killed", "store")
        if repeatable:
            await again.run("k", "pin", BODY, doing, ActedOut, repeatable=True)
            assert len(done) == 2
            return
        with pytest.raises(Problem) as refused:
            await again.run("k", "pin", BODY, doing, ActedOut, repeatable=False)
        assert (refused.value.status, len(done)) == (409, 1)

    anyio.run(test)


@pytest.mark.req("SV-04")
def test_a_failure_is_not_kept_and_a_key_is_of_one_store_and_one_wish(tmp_path: Path) -> None:
    async def fails() -> ActedOut:
        raise Problem(409, "stale", "Look again.")

    async def works(seq: int) -> ActedOut:
        return _answer(seq)

    async def test() -> None:
        once = Once(tmp_path, "store", kept=2)
        with pytest.raises(Problem, match="Look again"):
            await once.run("k", "pin", BODY, fails, ActedOut, repeatable=False)
        assert (await once.run("k", "pin", BODY, partial(works, 1), ActedOut, repeatable=False)).seq == 1
        assert (await once.run("k", "pin", BODY, partial(works, 2), ActedOut, repeatable=False)).seq == 1
        other = Once(tmp_path, "another store")
        assert (await other.run("k", "pin", BODY, partial(works, 3), ActedOut, repeatable=False)).seq == 3
        with pytest.raises(Problem, match="another request"):
            await once.run("k", "pin", PinIn(seen=4), partial(works, 4), ActedOut, repeatable=False)
        for number in range(3):  # the oldest is forgotten in the end
            await once.run(f"k{number}", "pin", BODY, partial(works, 5), ActedOut, repeatable=False)
        assert (await once.run("k", "pin", BODY, partial(works, 6), ActedOut, repeatable=False)).seq == 6

    anyio.run(test)
