"""Case 28: a 50 MB history killed a run of 100 calls. A turn stores only what is new: the store grows with the turns alone."""

from pathlib import Path
from typing import Any

from support.driving import DONE, FEE, PLAN, in_runtime, scripted
from treadle import Agent, Loop, accept, tool
from treadle.testing import Turn

SIZE = 9_000


@tool(kind="read")
def page(number: int) -> str:
    """A page of text, different each time."""
    return f"{number} ".ljust(SIZE, chr(97 + number % 26))


def stored(tmp_path: Path, turns: int) -> int:
    """Bytes of the store after so many turns."""
    file = tmp_path / f"{turns}.db"
    model = scripted(PLAN, *[Turn(calls=[("page", {"number": n})], usage=FEE) for n in range(turns)], DONE)
    act = Agent(model=model, tools=(page,), compact="off", max_turns_per_act=1000, context_window=10_000_000)

    async def test(made: Any) -> None:
        session = await made.start(Loop(name="l", act=act, evaluate=lambda c, o: accept()), "Read.")
        assert (await session.run())["code"] == "accepted"
        await session.close()

    in_runtime(f"sqlite:///{file}", tmp_path, test)
    return sum(part.stat().st_size for part in tmp_path.glob(f"{turns}.db*"))


def test_ten_times_the_turns_are_ten_times_the_bytes(tmp_path: Path) -> None:
    few, many = stored(tmp_path, 20), stored(tmp_path, 200)
    assert many - few < 180 * (SIZE + 3_000)
